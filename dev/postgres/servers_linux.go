package postgres

import (
	"os"
	"path/filepath"
	"strconv"
)

// serversOn returns the Postgres processes that use the data directory: it is their
// working directory.
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
