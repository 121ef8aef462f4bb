//go:build !failpoints

package main

import "time"

// failpoint is nothing in a binary that is not built for fault tests.
func failpoint(string) func() { return nil }

// failpointClock is nothing either: the clock is the real one.
func failpointClock() func() time.Time { return nil }
