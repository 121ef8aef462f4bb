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

// guardDeath is the signal by which a guard learns that the stack has died. It
// is none that anyone would want passed on to the command.
const guardDeath = syscall.SIGUSR2

// Guarded turns a command into one run by Guard, in a process of its own made
// from the program self, and returns the death signal for that process.
func Guarded(self string, cmd *exec.Cmd) syscall.Signal {
	cmd.Args = append([]string{self, GuardCommand, "--", cmd.Path}, cmd.Args...)
	cmd.Path = self
	return guardDeath
}

// Guard runs a command and, when the command ends or the stack dies, kills
// what the command has started and not stopped. It returns the command's exit
// status as a shell reports it.
func Guard(path string, args []string, signals <-chan os.Signal) (int, error) {
	// Orphans below this process become its children instead of init's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1, fmt.Errorf("the guard cannot adopt orphans: %w", err)
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
		return 126, fmt.Errorf("%s cannot be run: %w", path, err)
	}
	go func() {
		for sig := range signals {
			if sig == guardDeath {
				killChildren()
				continue
			}
			// What is typed in a terminal has reached the command already.
			if sig != os.Interrupt || !InForeground() {
				_ = syscall.Kill(pid, sig.(syscall.Signal))
			}
		}
	}()
	status := reap(pid)
	for {
		killChildren()
		// Killing one generation makes children of the next.
		if _, err := wait(nil); errors.Is(err, syscall.ECHILD) {
			break
		}
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// reap waits for the process, and buries every orphan that ends before it.
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
		// The fields behind the name, which may itself hold brackets:
		// state, then parent.
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) < 2 || fields[1] != self {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
