package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgres is a test's own Postgres server, which the test may kill. It uses fsync
// as in production, so every acknowledged write is on disk.
type postgres struct {
	t    testing.TB
	root string
	port int
	// standbyOf is the URL of the server that this one follows, "" for a primary.
	standbyOf string
	// url connects to an empty database as the superuser.
	url string
	// p is devstack, which runs the server and ends when the server does.
	p *process
}

// newPostgres starts a server that is stopped and removed when the test ends.
func newPostgres(t testing.TB) *postgres {
	t.Helper()
	return newPostgresServer(t, "")
}

// newStandby starts a streaming standby of the server.
func (c *postgres) newStandby() *postgres {
	c.t.Helper()
	return newPostgresServer(c.t, c.url)
}

func newPostgresServer(t testing.TB, standbyOf string) *postgres {
	t.Helper()
	_, port := freePort(t)
	// If the test runs as root, the server runs as another user, who cannot enter the
	// test's directory.
	directory, err := os.MkdirTemp("", "millwright-faults-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(directory, 0o711); err != nil {
		t.Fatal(err)
	}
	c := &postgres{t: t, root: filepath.Join(directory, "postgres"), port: port, standbyOf: standbyOf}
	t.Cleanup(func() {
		c.crash()
		// Processes of the server may outlive the postmaster for a moment and write files.
		eventually(t, startLimit, "the data of Postgres cannot be removed", func() bool { return os.RemoveAll(directory) == nil })
	})
	c.start()
	line, _, _ := strings.Cut(c.p.out.String(), "\n")
	url, found := strings.CutPrefix(line, "DATABASE_URL=")
	if !found {
		t.Fatalf("devstack postgres printed %q", line)
	}
	c.url = url
	return c
}

// begin starts the server without waiting for it.
func (c *postgres) begin() *process {
	c.t.Helper()
	c.p = startDevstack(c.t, nil, "postgres", "--data", c.root, "--port", strconv.Itoa(c.port), "--log", c.log(), "--standby-of", c.standbyOf)
	return c.p
}

// start starts the server and waits until it answers.
func (c *postgres) start() {
	c.t.Helper()
	c.begin().awaitReady(startLimit, c.p.printedReady)
}

func (c *postgres) log() string { return filepath.Join(filepath.Dir(c.root), "log") }

// pid returns the server's process id, 0 if it does not run.
func (c *postgres) pid() int {
	content, err := os.ReadFile(filepath.Join(c.root, "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return pid
}

// crash kills the server with SIGKILL and waits for its end.
func (c *postgres) crash() {
	if c.p == nil {
		return
	}
	select {
	case <-c.p.ended: // the server ended, or never started
		return
	default:
	}
	if pid := c.pid(); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	} else {
		_ = c.p.cmd.Process.Kill() // the server has not started yet
	}
	<-c.p.ended
}

// pause suspends every process of the server: the system still accepts connections,
// but nothing responds. The returned function resumes them.
func (c *postgres) pause() (resume func()) {
	c.t.Helper()
	pids := c.pids()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			c.t.Fatalf("stop a process of Postgres: %v", err)
		}
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
}

// pids returns the process ids of the server and its sessions.
func (c *postgres) pids() []int {
	c.t.Helper()
	pids := []int{c.pid()}
	c.query(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
		if err != nil {
			return err
		}
		sessions, err := pgx.CollectRows(rows, pgx.RowTo[int])
		pids = append(pids, sessions...)
		return err
	})
	return pids
}

// exec runs a statement as the superuser.
func (c *postgres) exec(sql string) {
	c.t.Helper()
	c.query(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// query runs a function on a new connection as the superuser.
func (c *postgres) query(run func(context.Context, *pgx.Conn) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), startLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		c.t.Fatalf("connect to the test's Postgres: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := run(ctx, conn); err != nil {
		c.t.Fatalf("the test's Postgres: %v", err)
	}
}

// part is a part of the installation that is killed and restarted.
type part struct {
	name string
	// begin starts it without waiting.
	begin func() *process
	// crash kills it, if killing its process is not enough.
	crash func()
	ready func(*process) bool

	p *process
	// warnings and problems count what its processes logged as WARN and as ERROR.
	warnings, problems int
	// since is when it was last started.
	since time.Time
	// down is when it may be restarted.
	down  time.Time
	kills int
	// starts counts its starts, including those after it ended by itself.
	starts int
}

func (p *part) running() bool {
	select {
	case <-p.p.ended:
		return false
	default:
		return true
	}
}

// supervise restarts the part after it has ended, when its time has come, as an init
// system does.
func (p *part) supervise(now time.Time) {
	if p.p != nil && (p.running() || now.Before(p.down)) {
		return
	}
	p.countLogged()
	p.p, p.since = p.begin(), now
	p.starts++
	// A part that ends by itself, because something it needs is missing, waits a
	// moment.
	p.down = now.Add(500 * time.Millisecond)
}

// countLogged counts what the part's process logged, before another replaces it.
func (p *part) countLogged() {
	if p.p == nil {
		return
	}
	log := p.p.log.String()
	p.warnings += strings.Count(log, `"level":"WARN"`)
	p.problems += strings.Count(log, `"level":"ERROR"`)
}

// kill kills the part, which stays down for the given time.
func (p *part) kill(now time.Time, stay time.Duration) {
	p.kills++
	p.down = now.Add(stay)
	if p.crash != nil {
		p.crash()
		return
	}
	p.p.kill()
}

// up reports whether the part runs and answers.
func (p *part) up() bool { return p.p != nil && p.running() && p.ready(p.p) }
