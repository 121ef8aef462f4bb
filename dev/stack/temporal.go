package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"millwright/dev/process"
)

const (
	// Namespace is Temporal's namespace in every stack.
	Namespace = "default"
	// ReadyLine is what a server of the stack prints when it is ready.
	ReadyLine = "ready"

	temporalStartTimeout = 150 * time.Second // above the server's own limit, whose error says more
	temporalStopGrace    = 10 * time.Second
)

type temporalOptions struct {
	// postgresURL is passed in the environment: every user of the machine can read
	// arguments.
	postgresURL string
	port        int
	uiPort      int // zero: no Web UI
	log         string
	retention   time.Duration
}

// startTemporal starts `devstack temporal` as a child process and returns when it is
// ready.
func startTemporal(ctx context.Context, opts temporalOptions) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find devstack's path: %w", err)
	}
	log, err := openLog(opts.log)
	if err != nil {
		return nil, fmt.Errorf("cannot open Temporal's log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(self, "temporal",
		"--port", strconv.Itoa(opts.port),
		"--ui-port", strconv.Itoa(opts.uiPort),
		"--retention", opts.retention.String())
	cmd.Env = append(os.Environ(), "DATABASE_URL="+opts.postgresURL)
	ready := make(chan struct{})
	once := sync.OnceFunc(func() { close(ready) })
	cmd.Stdout = process.NewLines(func(line string) {
		if line == ReadyLine {
			once()
		}
	})
	cmd.Stderr = log
	temporal, err := process.Start(cmd, process.Options{
		Name:        "Temporal",
		DeathSignal: syscall.SIGKILL,
		StopSignals: []syscall.Signal{syscall.SIGTERM},
		StopGrace:   temporalStopGrace,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, temporalStartTimeout)
	defer cancel()
	select {
	case <-ready:
		return temporal, nil
	case <-temporal.Done():
		return nil, fmt.Errorf("Temporal did not start (%s):\n%s", temporal.Ending(), process.FileTail(opts.log))
	case <-ctx.Done():
		temporal.Kill()
		return nil, fmt.Errorf("stopped Temporal while it was starting: %w", context.Cause(ctx))
	}
}
