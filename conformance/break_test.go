package conformance

import (
	"flag"
	"testing"
)

// breakVariable names the function that the instrumented product breaks, and how.
const breakVariable = "CONFORMANCE_BREAK"

var broken = flag.String("break", "", "function to break while a rule's test runs, if make conformance-proof instrumented the product")

// serverStarted is logged when the server that a rule's test calls has started.
const serverStarted = "The server has started."

// breakFromNowOn breaks the function of -break until the test ends.
func breakFromNowOn(t *testing.T) {
	t.Helper()
	if *broken != "" {
		t.Log(serverStarted)
		t.Setenv(breakVariable, *broken)
	}
}
