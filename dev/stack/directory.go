package stack

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

// throwawayPattern begins the names of throwaway stacks' directories.
const throwawayPattern = "millwright-throwaway-"

// roomInMemory is what the file system in memory must have free for a stack. There, a database that
// is made, used and dropped takes a fourth of the CPU time.
const roomInMemory = 4 << 30

// throwawayDirectory creates the temporary directory of one throwaway stack, in TMPDIR or else
// where it is fastest, and removes the directories of killed stacks: a stack's directory is
// locked while the stack runs.
func throwawayDirectory() (dir string, remove func(), err error) {
	parents := []string{os.TempDir(), "/var/tmp", "/tmp"}
	var memory syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs("/dev/shm", &memory) == nil && memory.Bavail*uint64(memory.Bsize) >= roomInMemory {
		parents = append([]string{"/dev/shm"}, parents...)
	}
	parent, err := postgres.Enterable(parents...)
	if err != nil {
		return "", nil, err
	}
	removeAbandoned(parent)
	// It gets its name after it is locked: removeAbandoned must not find it unlocked.
	unnamed, err := os.MkdirTemp(parent, ".millwright-")
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(parent, strings.Replace(filepath.Base(unnamed), ".millwright-", throwawayPattern, 1))
	lock, err := process.Lock(unnamed)
	if err == nil {
		err = os.Rename(unnamed, dir)
	}
	if err == nil {
		err = os.Chmod(dir, 0o711) // other users may pass through it, but cannot list it
	}
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir) // the next stack removes what cannot be removed now
		lock.Close()
	}, nil
}

// removeAbandoned removes the directories of stacks that no longer run.
func removeAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, throwawayPattern+"*"))
	for _, path := range paths {
		if lock, err := process.Lock(path); err == nil {
			_ = os.RemoveAll(path)
			lock.Close()
		}
	}
}
