package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millwright/dev/process"
)

// reclaimGrace is the time that each signal has to take effect.
const reclaimGrace = 10 * time.Second

// reclaim removes what a killed stack left in a data directory: a running server, some
// of its processes, and the pid file, whose number may now belong to an unrelated
// process. The caller must know that no other stack uses the cluster.
func reclaim(ctx context.Context, data string) error {
	data, err := filepath.EvalSymlinks(data)
	if err != nil {
		return fmt.Errorf("cannot read Postgres's data: %w", err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		pids := serversOn(data)
		if len(pids) == 0 {
			break
		}
		if sig == syscall.SIGINT {
			// SIGINT is the fast shutdown, but only for the postmaster.
			pids = slices.DeleteFunc(pids, func(pid int) bool { return pid != postmaster(data) })
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig)
		}
		if len(pids) > 0 {
			if err := awaitServersGone(ctx, data); err != nil && sig == syscall.SIGKILL {
				return err
			}
		}
	}
	if err := os.Remove(pidFile(data)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the pid file of an earlier run: %w", err)
	}
	return nil
}

func awaitServersGone(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, reclaimGrace)
	defer cancel()
	return process.Await(ctx, 20*time.Millisecond, func() error {
		if len(serversOn(data)) > 0 {
			return fmt.Errorf("cannot stop the Postgres processes of an earlier run in %s", data)
		}
		return nil
	})
}

func pidFile(data string) string { return filepath.Join(data, "postmaster.pid") }

// postmaster returns the process id in the pid file, or 0.
func postmaster(data string) int {
	content, err := os.ReadFile(pidFile(data))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}
