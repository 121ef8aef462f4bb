package install

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

var reportFile = flag.String("report", "", "the file for the report of the run in containers or in a machine, written if it did not fail")

// walk is a test that does what running.md says, with the rows of its report.
type walk struct {
	t      *testing.T
	report strings.Builder
}

// step runs a part of the test, without which the others make no sense.
func (w *walk) step(name string, part func(t *testing.T)) {
	w.t.Helper()
	began, skipped := time.Now(), false
	if !w.t.Run(name, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		part(t)
	}) {
		w.t.FailNow()
	}
	if skipped {
		w.t.SkipNow()
	}
	fmt.Fprintf(&w.report, "| %s | %.1f s |\n", name, time.Since(began).Seconds())
}

// write writes the report for people to read. by is the target and which commands it runs.
func (w *walk) write(title, by, machine string, rows ...string) {
	if *reportFile == "" {
		return
	}
	text := "# " + title + "\n\nWritten by " + by + " of [running.md](running.md).\n\n| | |\n|---|---|\n" +
		"| date | " + time.Now().UTC().Format("2 January 2006") + " |\n" +
		fmt.Sprintf("| machine | %d cores, %s/%s, %s |\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, strings.TrimSpace(machine))
	for _, row := range rows {
		text += "| " + row + " |\n"
	}
	devtest.Must(w.t, os.WriteFile(*reportFile, []byte(text+w.report.String()), 0o644))
}

// documented returns the only command, or block of commands, of running.md that matches.
func documented(t *testing.T, pattern string) string {
	t.Helper()
	page := devtest.ReadFile(t, filepath.Join(repository, "docs/running.md"))
	var found []string
	for _, code := range regexp.MustCompile("(?s)```\\w*\n(.*?)```|`([^`\n]+)`").FindAllStringSubmatch(page, -1) {
		if command := code[1] + code[2]; regexp.MustCompile(`(?s)` + pattern).MatchString(strings.TrimSpace(command)) {
			found = append(found, command)
		}
	}
	if len(found) != 1 {
		t.Fatalf("running.md has %d commands like %q: %q", len(found), pattern, found)
	}
	return found[0]
}

// shell runs commands where the service is installed. It returns bash, without arguments.
type shell func(ctx context.Context) *exec.Cmd

// here is a shell in the directory.
func here(directory string) shell {
	return func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "bash")
		cmd.Dir = directory
		return cmd
	}
}

func (s shell) run(t *testing.T, commands string, stdout, stderr io.Writer) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Minute) // also for cleanups
	defer cancel()
	cmd := s(ctx)
	cmd.Args = append(cmd.Args, "-euo", "pipefail", "-c", commands)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, time.Second
	return cmd.Run()
}

// try runs commands and returns what they print.
func (s shell) try(t *testing.T, commands string) (string, error) {
	t.Helper()
	var both bytes.Buffer
	err := s.run(t, commands, &both, &both)
	return both.String(), err
}

func (s shell) sh(t *testing.T, commands string) string {
	t.Helper()
	said, err := s.try(t, commands)
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, said)
	}
	return said
}

// json decodes what a command prints on its standard output.
func (s shell) json(t *testing.T, into any, command string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := s.run(t, command, &stdout, &stderr)
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), into)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, stdout.String(), stderr.String())
	}
}

const startLimit = 2 * time.Minute

// await waits until the check succeeds.
func await(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	devtest.Must(t, process.Await(ctx, 200*time.Millisecond, check))
}
