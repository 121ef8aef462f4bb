package temporal

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"millwright/dev/process"
)

// Namespace is the namespace that the server starts with.
const Namespace = "default"

// startTimeout limits how long the server may take to answer. The first start
// on a busy machine with two cores takes a while.
const startTimeout = 2 * time.Minute

// Options are where the server stores its data and where it listens.
type Options struct {
	PostgresURL string
	// DatabasePrefix is the name of the first database; the second one's is the prefix
	// followed by "_visibility".
	DatabasePrefix string
	Port           int
	// UIPort is where the Web UI listens; zero means no Web UI.
	UIPort int
}

// Start prepares the databases, starts the server, and returns when its namespace
// answers. The returned function stops the server and waits for its end.
func Start(ctx context.Context, opts Options) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	for _, port := range []int{opts.Port, opts.UIPort} {
		if err := process.CheckPort(port); err != nil { // no Web UI is port 0, which is free
			return nil, err
		}
	}
	db, err := prepareDatabases(ctx, opts.PostgresURL, opts.DatabasePrefix)
	if err != nil {
		return nil, err
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "warn", Format: "console"}))
	cfg, hosts, err := serverConfig(db, opts.Port)
	if err != nil {
		return nil, err
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.WithStaticHosts(hosts),
		temporal.WithDynamicConfigClient(dynamicConfig()),
		temporal.WithLogger(logger),
		temporal.ForServices(temporal.DefaultServices),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot set up Temporal: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("cannot start Temporal: %w", err)
	}
	// It fails only if a service does not stop in time, and the process exits next anyway.
	stop = func() { _ = server.Stop() }
	if opts.UIPort != 0 {
		err = startUI(opts.Port, opts.UIPort)
	}
	if err == nil {
		err = awaitNamespace(ctx, opts.Port)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// awaitNamespace waits until the history service answers for the namespace: from then on a
// workflow can be started.
func awaitNamespace(ctx context.Context, port int) error {
	conn, err := grpc.NewClient(process.Address(port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("cannot connect to Temporal on port %d: %w", port, err)
	}
	defer conn.Close()
	client := workflowservice.NewWorkflowServiceClient(conn)
	err = process.Await(ctx, 20*time.Millisecond, func() error {
		if _, err := client.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace}); err != nil {
			return err
		}
		_, err := client.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: Namespace,
			Execution: &commonpb.WorkflowExecution{WorkflowId: "devstack-probe"},
		})
		// The workflow does not exist, but the response proves that its shard is served.
		if status.Code(err) == codes.NotFound {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("Temporal on port %d did not answer within %s: %w", port, startTimeout, err)
	}
	return nil
}
