//go:build !failpoints

package main

import "time"

// failpoint is empty: this binary is not built for fault tests.
func failpoint(string) func() { return nil }

// failpointClock returns nil, which stands for the real clock.
func failpointClock() func() time.Time { return nil }
