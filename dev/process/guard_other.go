//go:build !linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Guarded does not change the command: only Linux lets a process adopt orphans.
func Guarded(string, *exec.Cmd) syscall.Signal { return 0 }

// Guard always fails: it needs Linux.
func Guard(string, []string, <-chan os.Signal) (int, error) {
	return 1, errors.New("the guard needs Linux")
}
