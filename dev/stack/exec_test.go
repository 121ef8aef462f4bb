package stack

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"millwright/dev/process"
)

// useTempDir makes exec create its directories in a temporary directory of the test.
func useTempDir(t *testing.T) (dir string, left func() []string) {
	t.Helper()
	dir = openDirectory(t)
	t.Setenv("TMPDIR", dir)
	return dir, func() []string {
		paths, err := filepath.Glob(filepath.Join(dir, throwawayPattern+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
}

// portOf returns the port in a line that contains only a database's URL.
func portOf(t *testing.T, line string) int {
	t.Helper()
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatalf("%q has no port: %v", line, err)
	}
	return port
}

func TestExecRunsACommandOnADatabase(t *testing.T) {
	_, left := useTempDir(t)
	// The command leaves a child running and ends with its own status.
	script := `echo "$DATABASE_URL"; "$DEVSTACK" query "select 'it works'"; test -x "$POSTGRES_BIN/postgres" && echo found; sleep 1000 >&2 & echo $!; exit 7`
	cmd := devstack(t, "exec", "sh", "-c", script)
	out, _ := cmd.Output()
	if status := cmd.ProcessState.ExitCode(); status != 7 {
		t.Errorf("the exit status is %d, want the command's 7", status)
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 4 || lines[1] != "it works" || lines[2] != "found" {
		t.Fatalf("the output is %q", out)
	}
	if err := process.CheckPort(portOf(t, lines[0])); err != nil {
		t.Error("Postgres still runs:", err)
	}
	if paths := left(); len(paths) > 0 {
		t.Error("left behind:", paths)
	}
	if runtime.GOOS == "linux" && processExists(t, lines[3]) {
		t.Error("the command's child still runs")
	}
}

func processExists(t *testing.T, line string) bool {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Kill(pid, 0) == nil
}

// A terminal that has the settings of `make run` has them for that stack only.
func TestExecLeavesTheSettingsOfRunOut(t *testing.T) {
	useTempDir(t)
	cmd := devstack(t, "exec", "sh", "-c", `echo "$SECRET_SEALING_KEYS,$MILLWRIGHT_ADDR"`)
	cmd.Dir = openDirectory(t)
	if err := os.MkdirAll(filepath.Join(cmd.Dir, ".dev"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cmd.Dir, ".dev", "env"), []byte("export SECRET_SEALING_KEYS='of run'\nexport MILLWRIGHT_ADDR=':1'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Environ(), "SECRET_SEALING_KEYS=of run", "MILLWRIGHT_ADDR=another")
	if out, err := cmd.Output(); err != nil || string(out) != ",another\n" {
		t.Errorf("the command sees %q (%v)", out, err)
	}
}

func TestExecKilledLeavesNothingRunning(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals children when their parent dies")
	}
	dir, left := useTempDir(t)
	note := filepath.Join(dir, "note")
	cmd := devstack(t, "exec", "sh", "-c", `sleep 1000 & printf '%s\n' "$DATABASE_URL" $$ $! > "$1.new"; mv "$1.new" "$1"; wait`, "sh", note)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command is running", func() bool { _, err := os.Stat(note); return err == nil })
	content, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "Postgres has ended", func() bool { return process.CheckPort(portOf(t, lines[0])) == nil })
	eventually(t, "the command has ended", func() bool { return !processExists(t, lines[1]) })
	eventually(t, "the command's child has ended", func() bool { return !processExists(t, lines[2]) })
	if len(left()) != 1 {
		t.Fatal("the killed stack left no directory, so there is nothing to test")
	}
	if out, err := devstack(t, "exec", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if paths := left(); len(paths) > 0 {
		t.Error("the next stack did not remove", paths)
	}
}

func TestExecForwardsSignals(t *testing.T) {
	dir, _ := useTempDir(t)
	note := filepath.Join(dir, "note")
	cmd := devstack(t, "exec", "sh", "-c", `trap 'kill $!; exit 9' TERM; sleep 1000 & : > "$1"; wait`, "sh", note)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command is running", func() bool { _, err := os.Stat(note); return err == nil })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 9 {
		t.Errorf("the exit status is %d, want the command's 9", status)
	}
}

func TestExecReportsAMissingCommand(t *testing.T) {
	cmd := devstack(t, "exec", "no-such-program")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 127 || !strings.HasPrefix(string(out), "cannot run no-such-program") {
		t.Errorf("status %d, output %q", cmd.ProcessState.ExitCode(), out)
	}
}
