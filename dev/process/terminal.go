package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// InForeground reports whether the process belongs to the group that gets what
// is typed in its terminal, Ctrl-C included.
func InForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}
