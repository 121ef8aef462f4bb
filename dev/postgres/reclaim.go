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
)

// reclaimGrace is how long each way of asking has to take effect.
const reclaimGrace = 10 * time.Second

// reclaim frees a data folder from what a killed stack has left: a server that
// still runs, single processes of one that was killed, and the pid file, whose
// number may belong to an unrelated process by now. The caller must know that
// nobody uses the cluster rightfully.
func reclaim(ctx context.Context, data string) error {
	data, err := filepath.EvalSymlinks(data)
	if err != nil {
		return fmt.Errorf("the data of Postgres cannot be read: %w", err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		pids := serversOn(data)
		if len(pids) == 0 {
			break
		}
		if sig == syscall.SIGINT {
			// The fast shutdown, and only the postmaster understands it so.
			pids = slices.DeleteFunc(pids, func(pid int) bool { return pid != postmaster(data) })
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig)
		}
		if len(pids) > 0 && !awaitNone(ctx, data) && sig == syscall.SIGKILL {
			return fmt.Errorf("Postgres processes of an earlier run still use %s and cannot be stopped", data)
		}
	}
	if err := os.Remove(pidFile(data)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the pid file of an earlier run could not be removed: %w", err)
	}
	return nil
}

func awaitNone(ctx context.Context, data string) bool {
	ctx, cancel := context.WithTimeout(ctx, reclaimGrace)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(serversOn(data)) > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
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
