//go:build !linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Guarded leaves the command as it is: only Linux lets a process adopt orphans.
func Guarded(string, *exec.Cmd) syscall.Signal { return 0 }

// Guard exists on Linux only.
func Guard(string, []string, <-chan os.Signal) (int, error) {
	return 1, errors.New("the guard exists on Linux only")
}
