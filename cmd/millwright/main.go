package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "millwright:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "millwright",
		Short:         "The integration API of a facility-maintenance service",
		Version:       currentBuild().Version,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		// The usage explains wrong arguments and flags, but no error of a command that has begun.
		// cobra itself looks for missing flags only after this.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return err
			}
			cmd.SilenceUsage = true
			return nil
		},
	}
	root.AddCommand(apiCommand(), workerCommand(), migrateCommand(), importCommand(), demoCommand(), configCommand(), listenCommand(), replayCommand(), openAPICommand(),
		healthCommand(), namespaceCommand(), resealCommand(), restoredCommand(), versionCommand(),
		organizationsCommand(), peopleCommand(), integrationsCommand(), webhooksCommand(), deliveriesCommand(), workOrdersCommand(), issuesCommand(),
		logCommand(), noticesCommand(), mailCommand(), triggerCommand())
	root.SetFlagErrorFunc(describeFlagError)
	addExamples(root)
	return root
}

// untilStopped returns a server's error. Being asked to stop is not one.
func untilStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
