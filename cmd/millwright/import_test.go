package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"millwright/service/imports"
	"millwright/service/servicetest"
	"millwright/service/store"
)

const renamed = "organization: {key: acme}\nintegrations: [{key: erp, name: Renamed, webhooks: [{key: erp_hook, events: [work_order.created, issue.created, ping]}]}]\n"

// A dry run shows the differences, does not write, and fails where the import would.
func TestImportDryRun(t *testing.T) {
	h := newHarness(t)
	path := writeFile(t, renamed)
	name := func() string {
		return servicetest.Value[string](h.Fixture, `SELECT name FROM identities WHERE id = $1`, h.ID("erp"))
	}
	out, err := h.run("import", "--dry-run", path)
	want := `
integration  erp       name        "ERP"                                                                                    "Renamed"
webhook      erp_hook  events      -work_order.updated -work_order.status_changed -work_order.completed and 4 more          +ping
`
	if cells := strings.Fields(want); err != nil || !slices.Equal(strings.Fields(out)[9:], cells) || name() != "ERP" {
		t.Errorf("the dry run of a change: %v\n%s\nwant\n%s", err, out, want)
	}
	if _, err := h.Integrations.RenameIntegration(t.Context(), store.Operator(), h.ID("erp"), "The operator's"); err != nil {
		t.Fatal(err)
	}
	out, err = h.run("import", "--dry-run", path)
	if err == nil || !strings.Contains(err.Error(), "1 of the 2 differences") || !slices.Contains(strings.Fields(out), "changed") {
		t.Errorf("the dry run of a conflict: %v\n%s", err, out)
	}
	var shown importComparison
	out, err = h.run("import", "--dry-run", "--json", path)
	if decoded := json.Unmarshal([]byte(out), &shown); decoded != nil || err == nil || shown.WouldSucceed || shown.Conflicts != 1 ||
		len(shown.Differences) != 2 || *shown.OrganizationID != h.Acme.OrganizationID {
		t.Errorf("the JSON of a conflict: %v, %v\n%s", err, decoded, out)
	}
	if out, err = h.run("import", "--dry-run", "--json", "--overwrite", path); err != nil || !strings.Contains(out, `"would_succeed": true`) {
		t.Errorf("the dry run of overwriting: %v\n%s", err, out)
	}
	if out, err := h.run("import", path); err == nil || !strings.Contains(err.Error(), `integration "erp", name: "The operator's" is stored, the file has "Renamed"`) || name() != "The operator's" {
		t.Errorf("the import: %v\n%s", err, out)
	}
	out, err = h.run("import", "--overwrite", path)
	if err != nil || name() != "Renamed" || !strings.HasPrefix(out, "0 created, 2 changed\noverwritten: integration \"erp\", name") {
		t.Errorf("overwriting: %v\n%s", err, out)
	}
	if out, err = h.run("import", "--dry-run", path); err != nil || out != "no differences\n" {
		t.Errorf("the dry run of nothing: %v\n%s", err, out)
	}
	out, err = h.run("import", "--dry-run", "--json", writeFile(t, "organization: {key: acme}\nteams: [{key: other}]\n"))
	if err == nil || !strings.Contains(out, `"team \"other\" needs a name"`) || !strings.Contains(out, `"would_succeed": false`) {
		t.Errorf("the dry run of a wrong file: %v\n%s", err, out)
	}
	if _, err := h.run("import", writeFile(t, strings.Repeat("#", imports.MaxFile+2))); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a file that is too large: %.200v", err)
	}
}

// programArgs holds the arguments if the process is to be the program.
const programArgs = "MILLWRIGHT_TEST_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(programArgs); args != "" {
		os.Args = append([]string{"millwright"}, strings.Split(args, "\n")...)
		main()
		return
	}
	os.Exit(m.Run())
}

// startProgram starts the program as a process.
func startProgram(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programArgs+"="+strings.Join(args, "\n"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	return cmd, &stderr
}

// A signal ends an import at once, in the program and in the database, whatever it
// waits for; nothing of it is stored.
func TestImportStops(t *testing.T) {
	h := newHarness(t)
	gate := servicetest.Begin(t, h.Fixture)
	// The import locks the plan before it waits for the integration.
	if _, err := gate.Exec(t.Context(), `SELECT FROM integrations FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	waiting := func(want int) {
		t.Helper()
		servicetest.Await(t, fmt.Sprintf("%d imports wait for the lock", want), func() bool { return servicetest.LockWaits(h.Fixture) == want })
	}
	path := writeFile(t, renamed)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		program, stderr := startProgram(t, "import", path)
		waiting(1)
		if err := program.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = program.Wait()
		if signal == syscall.SIGTERM && (program.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "millwright: interrupted")) {
			t.Errorf("after %v: %v, %s", signal, program.ProcessState, stderr)
		}
		waiting(0)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	program, stderr := startProgram(t, "import", pipe)
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the program reads
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = program.Wait(); !strings.Contains(stderr.String(), "millwright: interrupted") {
		t.Errorf("while it reads a pipe: %v, %s", program.ProcessState, stderr)
	}
}
