package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// guardDeath is the signal that the kernel sends a guard when the stack dies. It is
// one that no one would want to pass on to the command.
const guardDeath = syscall.SIGUSR2

// Guarded changes the command to run under Guard, in a separate process of the
// program self. It returns the death signal for that process.
func Guarded(self string, cmd *exec.Cmd) syscall.Signal {
	cmd.Args = append([]string{self, GuardCommand, "--", cmd.Path}, cmd.Args...)
	cmd.Path = self
	return guardDeath
}

// Guard runs a command. When the command ends or the stack dies, it kills the
// processes that the command started and did not stop. It returns the command's exit
// status as a shell reports it.
func Guard(path string, args []string, signals <-chan os.Signal) (int, error) {
	// Orphaned descendants become children of this process instead of init's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1, fmt.Errorf("cannot make the guard adopt orphans: %w", err)
	}
	var pid int
	var err error
	onSpawner(func() {
		pid, err = syscall.ForkExec(path, args, &syscall.ProcAttr{
			Env:   os.Environ(),
			Files: []uintptr{0, 1, 2},
			Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		})
	})
	if err != nil {
		return 126, fmt.Errorf("cannot run %s: %w", path, err)
	}
	go func() {
		for sig := range signals {
			if sig == guardDeath {
				killChildren()
				continue
			}
			// The terminal has already sent Ctrl-C to the command.
			if sig != os.Interrupt || !InForeground() {
				_ = syscall.Kill(pid, sig.(syscall.Signal))
			}
		}
	}()
	status := reap(pid)
	for {
		killChildren()
		// The children of a killed process become children of this one.
		if _, err := wait(nil); errors.Is(err, syscall.ECHILD) {
			break
		}
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// reap waits for the process and reaps every orphan that ends before it.
func reap(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		if ended, err := wait(&status); ended == pid || err != nil {
			return status
		}
	}
}

func wait(status *syscall.WaitStatus) (int, error) {
	for {
		pid, err := syscall.Wait4(-1, status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return pid, err
		}
	}
}

// killChildren kills the children of this process.
func killChildren() {
	self := strconv.Itoa(os.Getpid())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The fields after the name, which may itself contain parentheses: state, then
		// parent.
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) < 2 || fields[1] != self {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
