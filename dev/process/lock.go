package process

import (
	"os"
	"syscall"
)

// Lock locks a directory, or returns an error if another process has locked it. The lock
// ends when the file is closed, also by the end of the process, in all processes that
// inherited it.
func Lock(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
