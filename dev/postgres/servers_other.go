//go:build !linux

package postgres

import (
	"os/exec"
	"strconv"
	"strings"
)

// serversOn returns the server named by the pid file if it runs on the data directory.
func serversOn(data string) []int {
	pid := postmaster(data)
	if pid == 0 {
		return nil
	}
	command, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || !strings.Contains(string(command), "postgres") || !strings.Contains(string(command), data) {
		return nil
	}
	return []int{pid}
}
