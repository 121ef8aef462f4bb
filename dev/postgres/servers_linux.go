package postgres

import (
	"os"
	"path/filepath"
	"strconv"
)

// serversOn returns the processes of Postgres that use the data folder: every
// one of them works in it, and nothing else does so for long.
func serversOn(data string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if dir, err := os.Readlink(link); err != nil || dir != data {
			continue
		}
		name, err := os.ReadFile(filepath.Join(filepath.Dir(link), "comm"))
		if err != nil || string(name) != "postgres\n" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
