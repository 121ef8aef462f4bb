package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/effects"
)

func mailCommand() *cobra.Command {
	return commandGroup("mail", "List the e-mails that wait to be sent", listMailCommand())
}

func listMailCommand() *cobra.Command {
	var organization string
	cmd := listCommand("list", "List what waits to be mailed, oldest first, with why it waits", func(ctx context.Context, _ *cobra.Command, svc *service.Service) ([]effects.WaitingMail, error) {
		id, err := anyOrganizationID(ctx, svc, organization)
		if err != nil {
			return nil, err
		}
		return svc.Effects.WaitingMail(ctx, id)
	}, waitingMailTable)
	cmd.Long = fmt.Sprintf(`List what waits to be mailed, oldest first: for each person an e-mail with notices of records and
addresses, one with notices about access, and sign-in links. At most %d are listed.`, effects.MaxWaitingMail)
	cmd.Flags().StringVar(&organization, "organization", "", "only to people of the organization with this key or id")
	return cmd
}

func waitingMailTable(w io.Writer, waiting []effects.WaitingMail) {
	fmt.Fprintln(w, "SINCE\tORGANIZATION\tPERSON\tMAIL\tATTEMPTS\tNEXT ATTEMPT\tREASON\t")
	for _, m := range waiting {
		reason := ""
		if m.Reason != nil {
			reason = *m.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t\n", m.Since, m.OrganizationID, m.PersonID, mailOf(m), m.Attempts, m.NextAt, cmp.Or(oneLine(reason), "not tried yet"))
	}
}

func mailOf(m effects.WaitingMail) string {
	switch m.Kind {
	case "link":
		return "sign-in link"
	case "security":
		return fmt.Sprintf("%d security notices", m.Count)
	default:
		return fmt.Sprintf("%d notices", m.Count)
	}
}
