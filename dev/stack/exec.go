package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

// throwawayRetention is longer than any command runs.
const throwawayRetention = 72 * time.Hour

// ExecOptions describe a stack for one command.
type ExecOptions struct {
	Command    []string
	NoTemporal bool
}

// Exec starts a throwaway stack, runs the command on it, removes everything, and
// returns the command's exit status. Signals are forwarded to the command. A signal
// that comes before the command has started ends the stack.
func Exec(signals <-chan os.Signal, opts ExecOptions) (int, error) {
	path, err := exec.LookPath(opts.Command[0])
	if err != nil {
		return 127, fmt.Errorf("cannot run %s: %w", opts.Command[0], err)
	}
	dir, err := throwawayDirectory()
	if err != nil {
		return 1, err
	}
	defer dir.remove()

	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	var stack *throwaway
	var startErr error
	started := make(chan struct{})
	go func() {
		defer close(started)
		stack, startErr = startThrowaway(ctx, dir.path, opts)
	}()
	var interrupt os.Signal
	select {
	case <-started:
	case interrupt = <-signals:
		stop(fmt.Errorf("%s", interrupt))
		<-started
	}
	if stack != nil {
		defer stack.stop()
	}
	switch {
	case interrupt != nil:
		return 128 + int(interrupt.(syscall.Signal)), nil
	case startErr != nil:
		return 1, startErr
	}
	return stack.run(path, signals, opts)
}

// throwaway is a running stack for one command.
type throwaway struct {
	self     string // devstack's own path
	env      []string
	postgres *postgres.Cluster
	temporal *process.Process // nil without Temporal
	logs     map[*process.Process]string
}

func startThrowaway(ctx context.Context, dir string, opts ExecOptions) (*throwaway, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find devstack's path: %w", err)
	}
	postgresLog, temporalLog := filepath.Join(dir, "postgres.log"), filepath.Join(dir, "temporal.log")
	s := &throwaway{self: self, logs: make(map[*process.Process]string)}
	s.postgres, err = postgres.Start(ctx, postgres.Options{
		Root: filepath.Join(dir, "postgres"), Log: postgresLog, Throwaway: true,
	})
	if err != nil {
		return nil, err
	}
	s.logs[s.postgres.Process] = postgresLog
	s.env = []string{
		"DEVSTACK=" + self,
		"POSTGRES_BIN=" + s.postgres.Programs.Dir,
		"DATABASE_URL=" + s.postgres.URL,
	}
	if opts.NoTemporal {
		return s, nil
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.temporal, err = startTemporal(ctx, temporalOptions{
		postgresURL: s.postgres.URL, port: ports[0], log: temporalLog, retention: throwawayRetention,
	})
	if err != nil {
		s.stop()
		return nil, err
	}
	s.logs[s.temporal] = temporalLog
	s.env = append(s.env,
		"TEMPORAL_ADDRESS="+process.Address(ports[0]),
		"TEMPORAL_NAMESPACE="+Namespace)
	return s, nil
}

// stop kills the stack: none of its data is kept.
func (s *throwaway) stop() {
	if s.temporal != nil {
		s.temporal.Kill()
	}
	s.postgres.Stop()
}

// run runs the command on the stack until it ends.
func (s *throwaway) run(path string, signals <-chan os.Signal, opts ExecOptions) (int, error) {
	dir, err := devDir(os.Getenv("DEV_DIR"))
	if err != nil {
		return 126, err
	}
	cmd := exec.Command(path, opts.Command[1:]...)
	cmd.Args[0] = opts.Command[0]
	// The settings of `make run`, which a terminal may have, are of another stack.
	cmd.Env = append(newEnviron(os.Environ(), readEnv(envFile(dir))).list(), s.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A killed test leaves its child processes running; the guard kills them.
	death := process.Guarded(s.self, cmd)
	command, err := process.Start(cmd, process.Options{
		Name: opts.Command[0], SharedGroup: true, DeathSignal: death,
	})
	if err != nil {
		return 126, err
	}
	ended := s.watchParts()
	for {
		select {
		case <-command.Done():
			return command.ExitStatus(), nil
		case sig := <-signals:
			// The terminal has already sent Ctrl-C to the command.
			if sig != os.Interrupt || !process.InForeground() {
				command.Signal(sig)
			}
		case dead := <-ended:
			fmt.Fprintf(os.Stderr, "devstack: %s ended unexpectedly (%s); the last lines of its log:\n%s\n",
				dead.Name(), dead.Ending(), process.FileTail(s.logs[dead]))
		}
	}
}

// watchParts returns a channel that receives parts of the stack that end
// unexpectedly.
func (s *throwaway) watchParts() <-chan *process.Process {
	ended := make(chan *process.Process, len(s.logs))
	for part := range s.logs {
		go func() {
			<-part.Done()
			ended <- part
		}()
	}
	return ended
}
