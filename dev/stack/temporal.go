package stack

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"millwright/dev/process"
)

const (
	// Namespace is Temporal's namespace in every stack.
	Namespace = "default"
	// ReadyLine is what a server of the stack prints when it is ready.
	ReadyLine = "ready"

	temporalStartTimeout = 150 * time.Second // above the server's own limit, whose error says more
)

// startTemporal starts `devstack temporal` as a child process and returns when it is
// ready. Without a port for its Web UI, which is then 0, there is none.
func startTemporal(ctx context.Context, databaseURL string, port, uiPort int, opts process.Options) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "temporal", "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort))
	// Not an argument: every user of the machine can read those.
	cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL)
	var ready atomic.Bool
	opts.Name = "Temporal"
	opts.Line = func(line string) {
		if line == ReadyLine {
			ready.Store(true)
		}
	}
	temporal, err := process.Start(cmd, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, temporalStartTimeout)
	defer cancel()
	return temporal, temporal.Await(ctx, func() error {
		if !ready.Load() {
			return errors.New("it is still starting")
		}
		return nil
	})
}
