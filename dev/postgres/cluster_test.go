package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

func testOptions(t *testing.T) Options {
	t.Helper()
	dir := devtest.OpenDirectory(t)
	return Options{Root: filepath.Join(dir, "cluster"), Log: filepath.Join(dir, "log"), Throwaway: true}
}

func mustStart(t *testing.T, opts Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), opts)
	devtest.Must(t, err)
	t.Cleanup(c.Stop)
	return c
}

// query runs SQL and returns the first column of its first row, if any.
func query(t *testing.T, c *Cluster, sql string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL)
	devtest.Must(t, err)
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestClusterIsPrivate(t *testing.T) {
	c := mustStart(t, testOptions(t))
	for sql, want := range map[string]string{
		"show listen_addresses":        process.Loopback,
		"show unix_socket_directories": "",
		"show server_encoding":         "UTF8",
		"select current_database()":    database,
		"select rolsuper::text from pg_roles where rolname = current_user": "true",
	} {
		if got := query(t, c, sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	wrong := strings.Replace(c.URL, role+":", role+":not", 1)
	if conn, err := pgx.Connect(t.Context(), wrong); err == nil {
		conn.Close(t.Context())
		t.Error("a wrong password is accepted")
	}
}

// A stack killed with SIGKILL may leave its server running, some of its processes, or
// only a pid file whose number now belongs to another process.
func TestStartAfterAnUncleanEnd(t *testing.T) {
	opts := testOptions(t)
	before := mustStart(t, opts)
	query(t, before, "create table kept as select 7 as value")

	for _, c := range []struct {
		name string
		end  func(t *testing.T)
	}{
		{"the server still runs", func(*testing.T) {}},
		{"the server was killed", func(*testing.T) {
			before.Signal(syscall.SIGKILL)
			<-before.Done()
		}},
		{"the pid file names an unrelated process", func(t *testing.T) {
			before.Stop()
			devtest.WriteFile(t, pidFile(opts.Root), fmt.Sprintf("%d\n%s\n", startUnrelated(t), dataDir(opts.Root)))
		}},
	} {
		if !t.Run(c.name, func(t *testing.T) {
			c.end(t)
			after, err := Start(t.Context(), opts)
			devtest.Must(t, err)
			if before.Running() {
				t.Error("the previous server still runs")
			}
			if got := query(t, after, "select value::text from kept"); got != "7" {
				t.Errorf("the value is %q", got)
			}
			before = after
		}) {
			break
		}
	}
	before.Stop()
}

// startUnrelated starts a process whose number a pid file can hold, and checks at the
// end that it was not stopped.
func startUnrelated(t *testing.T) int {
	t.Helper()
	owner, err := newOwner()
	devtest.Must(t, err)
	cmd := owner.command("/bin/sleep", "1000")
	p, err := process.Start(cmd, process.Options{Name: "sleep"})
	devtest.Must(t, err)
	t.Cleanup(func() {
		if !p.Running() {
			t.Error("the unrelated process was stopped")
		}
		p.Kill()
	})
	return p.PID()
}

func TestStartNamesTheVersionTheDataNeeds(t *testing.T) {
	opts := testOptions(t)
	devtest.Must(t, os.MkdirAll(dataDir(opts.Root), 0o700))
	devtest.WriteFile(t, filepath.Join(dataDir(opts.Root), "PG_VERSION"), "9.6\n")
	_, err := Start(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "was made by Postgres 9.6, which is not installed") {
		t.Errorf("the error is %v", err)
	}
}

func TestInitdbsReasonIsShown(t *testing.T) {
	programs := Programs{Dir: t.TempDir()}
	script := "#!/bin/sh\necho 'initdb: error: no luck' >&2\nexit 3\n"
	devtest.Must(t, os.WriteFile(programs.path("initdb"), []byte(script), 0o755))
	err := initialize(t.Context(), Options{Root: devtest.OpenDirectory(t), Log: filepath.Join(t.TempDir(), "log")}, programs, owner{})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("the error is %v", err)
	}
}
