package main

import (
	"context"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/store"
)

// readerFlags select the records that a list shows: all of an organization's, for its
// operator, or the records that a person may read.
type readerFlags struct {
	as           actorFlag
	organization string
}

// readerUsage is how the usage of a command shows these flags.
const readerUsage = " --organization KEY | --as PERSON"

// flag adds --organization and --as to the command, which needs one of them.
func (f *readerFlags) flag(cmd *cobra.Command) {
	f.as.flag(cmd)
	cmd.Flags().StringVar(&f.organization, "organization", "", "list the whole organization with this id or key")
	cmd.MarkFlagsMutuallyExclusive("as", "organization")
	cmd.MarkFlagsOneRequired("as", "organization")
}

// reader returns the operator of the organization, or the person of --as.
func (f *readerFlags) reader(ctx context.Context, cmd *cobra.Command, svc *service.Service) (store.Actor, error) {
	if cmd.Flags().Changed("as") {
		return f.as.actor(ctx, cmd, svc)
	}
	id, err := organizationID(ctx, svc, f.organization)
	return store.OperatorIn(id), err
}

// organizationID returns the id of an organization that is named by its id or key.
func organizationID(ctx context.Context, svc *service.Service, reference string) (string, error) {
	id, err := svc.People.OrganizationID(ctx, reference)
	return id, describeError(err, "organization "+reference+"; `millwright organizations list` shows their keys")
}

// anyOrganizationID is organizationID of an optional flag: without a reference the id is "", which stands for all.
func anyOrganizationID(ctx context.Context, svc *service.Service, reference string) (string, error) {
	if reference == "" {
		return "", nil
	}
	return organizationID(ctx, svc, reference)
}
