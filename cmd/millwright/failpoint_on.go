//go:build failpoints

package main

import (
	"os"
	"syscall"
	"time"
)

// failpoint returns a function that kills the process if the file that
// MILLWRIGHT_FAILPOINT_<name> names exists. Only binaries for fault tests have it.
func failpoint(name string) func() {
	armed := os.Getenv("MILLWRIGHT_FAILPOINT_" + name)
	if armed == "" {
		return nil
	}
	return func() {
		if _, err := os.Stat(armed); err == nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// failpointClock returns a clock that is wrong by the duration, such as 1h, in the
// file that MILLWRIGHT_FAILPOINT_clock names; nil if that is not set.
func failpointClock() func() time.Time {
	set := os.Getenv("MILLWRIGHT_FAILPOINT_clock")
	if set == "" {
		return nil
	}
	return func() time.Time {
		content, _ := os.ReadFile(set)
		off, _ := time.ParseDuration(string(content)) // 0 without a file
		return time.Now().Add(off)
	}
}
