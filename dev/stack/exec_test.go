package stack

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

// useTempDir makes exec create its directories in a temporary directory of the test.
func useTempDir(t *testing.T) (dir string, left func() []string) {
	t.Helper()
	dir = devtest.OpenDirectory(t)
	t.Setenv("TMPDIR", dir)
	return dir, func() []string {
		paths, err := filepath.Glob(filepath.Join(dir, throwawayPattern+"*"))
		devtest.Must(t, err)
		return paths
	}
}

// portOf returns the port in a line that contains only a database's URL.
func portOf(t *testing.T, line string) int {
	t.Helper()
	u, err := url.Parse(strings.TrimSpace(line))
	devtest.Must(t, err)
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatalf("%q has no port: %v", line, err)
	}
	return port
}

func TestExecRunsACommandOnADatabase(t *testing.T) {
	_, left := useTempDir(t)
	// The command leaves a child running and ends with its own status.
	script := `echo "$DATABASE_URL"; "$DEVSTACK" query "select 'it works'"; test -x "$POSTGRES_BIN/postgres" && echo found
		echo "$SECRET_SEALING_KEYS,$MILLWRIGHT_ADDR"; sleep 1000 >&2 & echo $!; exit 7`
	cmd := devstack(t, "exec", "sh", "-c", script)
	// A terminal that has the settings of `make run` has them for that stack only.
	cmd.Dir = devtest.OpenDirectory(t)
	devtest.Must(t, os.Mkdir(filepath.Join(cmd.Dir, ".dev"), 0o700))
	devtest.WriteFile(t, filepath.Join(cmd.Dir, ".dev", "env"), "export SECRET_SEALING_KEYS='of run'\nexport MILLWRIGHT_ADDR=':1'\n")
	cmd.Env = append(cmd.Environ(), "SECRET_SEALING_KEYS=of run", "MILLWRIGHT_ADDR=another")
	out, _ := cmd.Output()
	if status := cmd.ProcessState.ExitCode(); status != 7 {
		t.Errorf("the exit status is %d, want the command's 7", status)
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 5 || !slices.Equal(lines[1:4], []string{"it works", "found", ",another"}) {
		t.Fatalf("the output is %q", out)
	}
	if err := process.CheckPort(portOf(t, lines[0])); err != nil {
		t.Error("Postgres still runs:", err)
	}
	if paths := left(); len(paths) > 0 {
		t.Error("left behind:", paths)
	}
	if runtime.GOOS == "linux" && processExists(t, lines[4]) {
		t.Error("the command's child still runs")
	}
}

func processExists(t *testing.T, line string) bool {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	devtest.Must(t, err)
	return syscall.Kill(pid, 0) == nil
}

// startExec starts a script, which makes the file $1 when it runs, and returns the file's lines.
func startExec(t *testing.T, dir, script string) (*exec.Cmd, []string) {
	t.Helper()
	note := filepath.Join(dir, "note")
	cmd := devstack(t, "exec", "sh", "-c", script, "sh", note)
	devtest.Must(t, cmd.Start())
	devtest.Eventually(t, "the command is running", func() bool { _, err := os.Stat(note); return err == nil })
	return cmd, strings.Split(devtest.ReadFile(t, note), "\n")
}

func TestExecKilledLeavesNothingRunning(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals children when their parent dies")
	}
	dir, left := useTempDir(t)
	cmd, lines := startExec(t, dir, `sleep 1000 & printf '%s\n' "$DATABASE_URL" $$ $! > "$1.new"; mv "$1.new" "$1"; wait`)
	devtest.Must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	devtest.Eventually(t, "Postgres has ended", func() bool { return process.CheckPort(portOf(t, lines[0])) == nil })
	devtest.Eventually(t, "the command has ended", func() bool { return !processExists(t, lines[1]) })
	devtest.Eventually(t, "the command's child has ended", func() bool { return !processExists(t, lines[2]) })
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
	cmd, _ := startExec(t, dir, `trap 'kill $!; exit 9' TERM; sleep 1000 & : > "$1"; wait`)
	devtest.Must(t, cmd.Process.Signal(syscall.SIGTERM))
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
