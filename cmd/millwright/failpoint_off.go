//go:build !failpoints

package main

// failpoint is nothing in a binary that is not built for fault tests.
func failpoint(string) func() { return nil }
