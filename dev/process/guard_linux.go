package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// Guard runs a command. When the command ends, or the stack dies and the kernel sends
// GuardDeath, it kills the processes that the command started and did not stop. It returns
// the command's exit status as a shell reports it.
func Guard(path string, args []string, signals <-chan os.Signal) (int, error) {
	// The command is killed when the thread that started it ends.
	runtime.LockOSThread()
	// Orphaned descendants become children of this process instead of init's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 1, fmt.Errorf("cannot make the guard adopt orphans: %w", err)
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 126, fmt.Errorf("cannot run %s: %w", path, err)
	}
	go func() {
		for sig := range signals {
			if sig == GuardDeath {
				killChildren()
				continue
			}
			// The terminal has already sent Ctrl-C to the command.
			if sig != os.Interrupt || !InForeground() {
				_ = syscall.Kill(pid, sig.(syscall.Signal))
			}
		}
	}()
	var status syscall.WaitStatus
	for over := false; ; {
		var ending syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &ending, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			return shellStatus(status), nil
		}
		if ended == pid {
			status, over = ending, true
		}
		if over { // and again: the children of a killed process become children of this one
			killChildren()
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
