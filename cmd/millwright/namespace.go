package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// leastRetention is Temporal's own limit.
const leastRetention = 24 * time.Hour

func namespaceCommand() *cobra.Command {
	retention := 7 * 24 * time.Hour
	cmd := &cobra.Command{
		Use:   "namespace",
		Short: "Register the namespace of TEMPORAL_NAMESPACE if there is none of that name; not for Temporal Cloud",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if retention < leastRetention {
				return fmt.Errorf("--retention is at least %s", leastRetention)
			}
			s, err := loadSettings()
			if err != nil {
				return err
			}
			made, err := registerNamespace(cmd.Context(), s, retention)
			if err != nil {
				return fmt.Errorf("register the namespace %q: %w", s.Namespace, err)
			}
			if made {
				fmt.Fprintf(cmd.OutOrStdout(), "the namespace %q is registered\n", s.Namespace)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "the namespace %q was there already\n", s.Namespace)
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&retention, "retention", retention, "how long a new namespace keeps the histories of closed workflows")
	return cmd
}

// registerNamespace says whether it made one.
func registerNamespace(ctx context.Context, s settings, retention time.Duration) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	temporal, err := newTemporalClient(s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return false, err
	}
	defer temporal.Close()
	_, err = temporal.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        s.Namespace,
		Description:                      "Millwright: deliveries and the care of records",
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if _, there := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); there {
		return false, nil
	}
	return err == nil, err
}
