package stack

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

const (
	// Namespace is Temporal's namespace in every stack.
	Namespace = "default"
	// ReadyLine is what a server of the stack prints when it is ready.
	ReadyLine = "ready"

	temporalStartTimeout = 150 * time.Second // above the server's own limit, whose error says more
)

// addPostgres starts a Postgres cluster.
func (s *supervisor) addPostgres(opts postgres.Options) (*postgres.Cluster, error) {
	var cluster *postgres.Cluster
	err := s.add(func(ctx context.Context) (*process.Process, error) {
		var err error
		if cluster, err = postgres.Start(ctx, opts); err != nil {
			return nil, err
		}
		return cluster.Process, nil
	})
	return cluster, err
}

// temporalOptions describe a Temporal server.
type temporalOptions struct {
	databaseURL  string
	port, uiPort int // without a port for it there is no Web UI
	log          string
	throwaway    bool // its data need not survive a stop
}

// addTemporal starts `devstack temporal` as a child process.
func (s *supervisor) addTemporal(opts temporalOptions) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var stop syscall.Signal
	if opts.throwaway {
		stop = syscall.SIGKILL
	}
	return s.add(func(ctx context.Context) (*process.Process, error) {
		cmd := exec.Command(self, "temporal", "--port", strconv.Itoa(opts.port), "--ui-port", strconv.Itoa(opts.uiPort))
		// Not an argument: every user of the machine can read those.
		cmd.Env = append(os.Environ(), "DATABASE_URL="+opts.databaseURL)
		var ready atomic.Bool
		temporal, err := process.Start(cmd, process.Options{Name: "Temporal", Log: opts.log, StopSignal: stop, Line: func(line string) {
			if line == ReadyLine {
				ready.Store(true)
			}
		}})
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
	})
}
