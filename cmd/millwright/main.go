// Command millwright is the whole service in one binary: the API server, the
// worker, migrations, imports and the operators' tools. `millwright help` lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version = "dev"

func main() {
	if err := run(); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "millwright:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "millwright",
		Short:         "The integration API of a facility-maintenance service",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(apiCommand(), workerCommand(), migrateCommand(), importCommand(), configCommand(), listenCommand(), openAPICommand(),
		healthCommand(), namespaceCommand(), resealCommand(), restoredCommand(),
		webhooksCommand(), deliveriesCommand(), integrationsCommand(), workOrdersCommand(), issuesCommand())
	return root.ExecuteContext(ctx)
}
