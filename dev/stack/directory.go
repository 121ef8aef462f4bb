package stack

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"millwright/dev/postgres"
)

const throwawayPattern = "millwright-devstack-"

// roomInMemory is what the file system in memory must have free for a stack. There, a database that
// is made, used and dropped takes a fourth of the CPU time.
const roomInMemory = 4 << 30

// directory is the temporary directory of one throwaway stack. The stack holds a lock in
// it, so that a later stack can recognize what a killed one left.
type directory struct {
	path string
	lock *os.File
}

// throwawayDirectory creates a directory that Postgres's user can enter, in TMPDIR or else where
// it is fastest, and removes the directories of killed stacks.
func throwawayDirectory() (*directory, error) {
	owner, err := postgres.Unprivileged()
	if err != nil {
		return nil, err
	}
	parents := []string{os.TempDir(), "/var/tmp", "/tmp"}
	var memory syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs("/dev/shm", &memory) == nil && memory.Bavail*uint64(memory.Bsize) >= roomInMemory {
		parents = append([]string{"/dev/shm"}, parents...)
	}
	for _, parent := range parents {
		parent, err := filepath.Abs(parent)
		if err != nil || !owner.CanEnter(parent) {
			continue
		}
		removeAbandoned(parent)
		path, err := os.MkdirTemp(parent, throwawayPattern)
		if err != nil {
			continue
		}
		f := &directory{path: path}
		// Other users may pass through it, but cannot list it.
		if err = os.Chmod(path, 0o711); err == nil {
			f.lock, err = lockFile(filepath.Join(path, "lock"))
		}
		if err != nil {
			f.remove()
			return nil, err
		}
		return f, nil
	}
	return nil, errors.New("found no directory for temporary data that Postgres's user can enter")
}

func (f *directory) remove() {
	// The next stack removes what cannot be removed now.
	_ = os.RemoveAll(f.path)
	if f.lock != nil {
		f.lock.Close()
	}
}

// removeAbandoned removes the directories of stacks that no longer run.
func removeAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, throwawayPattern+"*"))
	for _, path := range paths {
		lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		lock.Close()
	}
}

// lockFile makes a file and locks it until it is closed or the process ends. The
// file gets its name after it is locked: removeAbandoned must not find it unlocked.
func lockFile(path string) (*os.File, error) {
	unnamed := path + ".new"
	f, err := os.OpenFile(unnamed, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(unnamed, path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
