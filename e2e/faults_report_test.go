package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

var reportFile = flag.String("faults.report", "", "the file for the report of the fault tests, written if none of them failed")

// findings are the rows of the report, in the order in which they were added.
var findings struct {
	sync.Mutex
	rows []string
}

// addFinding adds a row to the report, unless the test failed.
func addFinding(t testing.TB, what, format string, args ...any) {
	t.Helper()
	if t.Failed() {
		return
	}
	text := fmt.Sprintf(format, args...)
	t.Logf("%s: %s", what, text)
	findings.Lock()
	defer findings.Unlock()
	findings.rows = append(findings.rows, "| "+what+" | "+text+" |\n")
}

// writeReport writes the report for people to read.
func writeReport() error {
	if *reportFile == "" {
		return nil
	}
	const head = "# A run of the faults\n\nWritten by `make faults`; [faults.md](faults.md) explains the faults and the rows.\n\n| | |\n|---|---|\n"
	return os.WriteFile(*reportFile, []byte(head+strings.Join(findings.rows, "")), 0o644)
}
