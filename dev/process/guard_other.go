//go:build !linux

package process

import (
	"os"
	"syscall"
)

// setDeathSignal is empty: only Linux signals children when their parent dies.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// Guard becomes the command: only Linux lets a process adopt orphans.
func Guard(path string, args []string, _ <-chan os.Signal) (int, error) {
	return 126, syscall.Exec(path, args, os.Environ())
}
