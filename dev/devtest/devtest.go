// Package devtest has what the tests of several packages need.
package devtest

import (
	"os"
	"testing"
	"time"

	"millwright/dev/process"
)

// Must fails the test if one of the steps fails.
func Must(t *testing.T, steps ...error) {
	t.Helper()
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// OpenDirectory returns a directory that every user can enter, with a space in its path.
// The directories of t.TempDir are closed to other users.
func OpenDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "millwright test ")
	Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	Must(t, os.Chmod(dir, 0o711))
	return dir
}

// FreePorts returns ports on which no program listens.
func FreePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := process.FreePorts(n)
	Must(t, err)
	return ports
}

// WriteFile writes a file that only its owner may read.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	Must(t, os.WriteFile(path, []byte(content), 0o600))
}

// ReadFile returns the content of a file.
func ReadFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return string(content)
}

// Eventually waits for a condition.
func Eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatal("timed out waiting until", what)
		case <-tick.C:
		}
	}
}
