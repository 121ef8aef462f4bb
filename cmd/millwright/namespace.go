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

// minRetention is Temporal's own limit.
const minRetention = 24 * time.Hour

func namespaceCommand() *cobra.Command {
	retention := 7 * 24 * time.Hour
	cmd := &cobra.Command{
		Use:   "namespace",
		Short: "Register the namespace TEMPORAL_NAMESPACE if it does not exist; not for Temporal Cloud",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if retention < minRetention {
				return fmt.Errorf("--retention must be at least %s", minRetention)
			}
			s, err := loadSettings()
			if err != nil {
				return err
			}
			created, err := registerNamespace(cmd.Context(), s, retention)
			if err != nil {
				return fmt.Errorf("register the namespace %q: %w", s.Namespace, err)
			}
			if created {
				fmt.Fprintf(cmd.OutOrStdout(), "the namespace %q is registered\n", s.Namespace)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "the namespace %q already exists\n", s.Namespace)
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&retention, "retention", retention, "how long a new namespace keeps the histories of closed workflows")
	return cmd
}

// registerNamespace reports whether it created the namespace.
func registerNamespace(ctx context.Context, s settings, retention time.Duration) (created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	temporal, err := newTemporalClient(s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return false, err
	}
	defer temporal.Close()
	_, err = temporal.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        s.Namespace,
		Description:                      "Millwright: webhook deliveries and record workflows",
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if _, exists := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); exists {
		return false, nil
	}
	return err == nil, err
}
