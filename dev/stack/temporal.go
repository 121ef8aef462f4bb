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
	// ReadyLine is what a server of the stack prints when it answers.
	ReadyLine = "ready"

	temporalStartTimeout = 150 * time.Second // above the server's own limit, whose error says more
	temporalStopGrace    = 10 * time.Second
)

type temporalOptions struct {
	// postgresURL is handed over in the environment: arguments can be read
	// by every user of the machine.
	postgresURL string
	port        int
	uiPort      int // zero: no Web UI
	log         string
	retention   time.Duration
}

// startTemporal starts `devstack temporal` as a child process and returns when
// it answers.
func startTemporal(ctx context.Context, opts temporalOptions) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the path of devstack cannot be found: %w", err)
	}
	log, err := os.OpenFile(opts.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log of Temporal could not be opened: %w", err)
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
		return nil, fmt.Errorf("Temporal was stopped while starting: %w", context.Cause(ctx))
	}
}
