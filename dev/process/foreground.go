package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// InForeground reports whether the terminal sends its signals, such as that of
// Ctrl-C, to this process's group.
func InForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}
