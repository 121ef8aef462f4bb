package stack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

// GuardCommand is the subcommand by which Exec runs process.Guard.
const GuardCommand = "guard"

// Exec starts a throwaway stack, runs the command on it, removes everything, and
// returns the command's exit status. Signals are forwarded to the command. A signal
// that comes before the command has started ends the stack.
func Exec(signals <-chan os.Signal, noTemporal bool, args []string) (int, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return 127, fmt.Errorf("cannot run %s: %w", args[0], err)
	}
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	dir, remove, err := throwawayDirectory()
	if err != nil {
		return 1, err
	}
	defer remove()
	// The settings of `make run`, which a terminal may have, are of another stack.
	forgetOwnEnv(devDir())

	s := newSupervisor(os.Stderr)
	defer s.stop()
	started := make(chan struct{})
	var env []string
	go func() {
		defer close(started)
		env, err = s.startThrowaway(dir, noTemporal)
	}()
	select {
	case <-started:
	case sig := <-signals:
		s.cancel(nil)
		<-started
		return 128 + int(sig.(syscall.Signal)), nil
	}
	if err != nil {
		return 1, err
	}
	// A killed test leaves its child processes running; the guard kills them.
	cmd := exec.Command(self, append([]string{GuardCommand, path}, args...)...) //nolint:gosec // the developer's own command
	cmd.Env = append(os.Environ(), append(env, "DEVSTACK="+self)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	command, err := process.Start(cmd, process.Options{Name: args[0], SharedGroup: true, DeathSignal: process.GuardDeath})
	if err != nil {
		return 126, err
	}
	broken := s.ctx.Done()
	for {
		select {
		case <-command.Done():
			return command.ExitStatus(), nil
		case sig := <-signals:
			// The terminal has already sent Ctrl-C to the command.
			if sig != os.Interrupt || !process.InForeground() {
				command.Signal(sig)
			}
		case <-broken:
			fmt.Fprintln(os.Stderr, "devstack:", s.cause())
			broken = nil
		}
	}
}

// startThrowaway starts the parts and returns the variables by which a command finds them.
func (s *supervisor) startThrowaway(dir string, noTemporal bool) (env []string, err error) {
	cluster, err := s.addPostgres(postgres.Options{
		Root: filepath.Join(dir, "postgres"), Log: filepath.Join(dir, "postgres.log"), Throwaway: true,
	})
	if err != nil {
		return nil, err
	}
	env = []string{"POSTGRES_BIN=" + cluster.Programs.Dir, "DATABASE_URL=" + cluster.URL}
	if noTemporal {
		return env, nil
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	err = s.addTemporal(temporalOptions{
		databaseURL: cluster.URL, port: ports[0], log: filepath.Join(dir, "temporal.log"), throwaway: true,
	})
	return append(env, "TEMPORAL_ADDRESS="+process.Address(ports[0]), "TEMPORAL_NAMESPACE="+Namespace), err
}
