package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/dev/process"
)

const (
	// role is the cluster's only role. It is a superuser, because tests create and
	// drop databases.
	role = "millwright"
	// database is the product's database.
	database = "millwright"

	startTimeout = 2 * time.Minute
)

// Options describe a cluster.
type Options struct {
	// Root is the cluster's directory. Its parent must exist, and the user that Postgres
	// runs as must be able to enter it.
	Root string
	// Port is where the cluster listens; 0 means any free port.
	Port int
	// Log is the file for Postgres's messages.
	Log string
	// Throwaway turns off fsync: the data does not survive a stop.
	Throwaway bool
	// StandbyOf is the URL of a cluster that a new cluster is copied from and then
	// follows, as a streaming standby; "" means a new cluster. The followed cluster
	// must not be a throwaway one.
	StandbyOf string
}

// Cluster is a running private cluster.
type Cluster struct {
	*process.Process
	Programs Programs
	// URL connects to the product's database as the superuser.
	URL string
}

// Start creates the cluster if it does not exist, starts it, and returns when its
// database answers. It first stops a server that a killed stack left on the data.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	owner, err := newOwner()
	if err != nil {
		return nil, err
	}
	programs, err := choosePrograms(dataDir(opts.Root))
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(opts.Root, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot create the directory for Postgres: %w", err)
	}
	if err := owner.chown(opts.Root); err != nil {
		return nil, err
	}
	lock, err := reclaim(ctx, opts.Root)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the server has its own copy
	if err := initialize(ctx, opts, programs, owner); err != nil {
		return nil, err
	}
	password, err := os.ReadFile(passwordFile(opts.Root))
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's password: %w", err)
	}
	if opts.Port == 0 {
		// Chosen as late as possible, so that another program is less likely to take it.
		ports, err := process.FreePorts(1)
		if err != nil {
			return nil, err
		}
		opts.Port = ports[0]
	}
	c := &Cluster{Programs: programs, URL: connectionURL(opts.Port, string(password), database)}
	if c.Process, err = launch(opts, programs, owner, lock); err != nil {
		return nil, err
	}
	maintenanceURL := connectionURL(opts.Port, string(password), "postgres")
	if err := c.Await(ctx, func() error { return CreateDatabases(ctx, maintenanceURL, database) }); err != nil {
		return nil, err
	}
	return c, nil
}

func dataDir(root string) string      { return filepath.Join(root, "data") }
func passwordFile(root string) string { return filepath.Join(root, "password") }
func pidFile(root string) string      { return filepath.Join(dataDir(root), "postmaster.pid") }

func connectionURL(port int, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, password),
		Host:     net.JoinHostPort(process.Loopback, strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// reclaim takes the lock on the cluster, which all processes of a server inherit, and stops
// a server that a killed stack left. The number in a pid file means nothing without the
// lock: it may now belong to an unrelated process.
func reclaim(ctx context.Context, root string) (*os.File, error) {
	var lock *os.File
	err := process.Await(ctx, 20*time.Millisecond, func() (err error) {
		if lock, err = process.Lock(root); err != nil && postmaster(root) > 1 {
			_ = syscall.Kill(postmaster(root), syscall.SIGINT) // the fast shutdown
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot stop the Postgres of an earlier run in %s: %w", root, err)
	}
	if err := os.Remove(pidFile(root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		lock.Close()
		return nil, fmt.Errorf("cannot remove the pid file of an earlier run: %w", err)
	}
	return lock, nil
}

// postmaster returns the process id in the pid file, or 0.
func postmaster(root string) int {
	content, _ := os.ReadFile(pidFile(root))
	first, _, _ := strings.Cut(string(content), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// initialize creates the data directory under another name and renames it when it is
// complete: a start that is killed leaves nothing half done.
func initialize(ctx context.Context, opts Options, programs Programs, owner owner) error {
	root := opts.Root
	if _, err := os.Stat(filepath.Join(dataDir(root), "PG_VERSION")); err == nil {
		return nil
	}
	unfinished := dataDir(root) + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("cannot remove what an earlier start left: %w", err)
	}
	password := rand.Text()
	name, args := "initdb", []string{
		"--pgdata=" + unfinished, "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
		"--username=" + role, "--pwfile=" + passwordFile(root), "--auth=scram-sha-256",
	}
	if opts.StandbyOf != "" {
		primary, err := url.Parse(opts.StandbyOf)
		if err != nil {
			return errors.New("the cluster to follow is not named by a URL")
		}
		password, _ = primary.User.Password()
		// --write-recovery-conf makes standby.signal and sets primary_conninfo.
		name, args = "pg_basebackup", []string{
			"--pgdata=" + unfinished, "--dbname=" + opts.StandbyOf, "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
		}
	}
	if err := os.WriteFile(passwordFile(root), []byte(password), 0o600); err != nil {
		return fmt.Errorf("cannot write the cluster's password: %w", err)
	}
	if err := owner.chown(passwordFile(root)); err != nil {
		return err
	}
	creation, err := process.Start(owner.command(programs.path(name), args...), process.Options{Name: name, Log: opts.Log})
	if err != nil {
		return err
	}
	if err := creation.Wait(ctx); err != nil {
		return err
	}
	return os.Rename(unfinished, dataDir(root))
}

func launch(opts Options, programs Programs, owner owner, lock *os.File) (*process.Process, error) {
	args := []string{"-D", dataDir(opts.Root)}
	for _, setting := range settings(opts) {
		args = append(args, "-c", setting)
	}
	cmd := owner.command(programs.path("postgres"), args...)
	cmd.ExtraFiles = []*os.File{lock}
	// SIGINT is Postgres's fast shutdown, which does not wait for clients. SIGQUIT
	// stops at once and would leave recovery to the next start.
	stop := syscall.SIGINT
	if opts.Throwaway {
		stop = syscall.SIGQUIT
	}
	return process.Start(cmd, process.Options{Name: "Postgres", Log: opts.Log, StopSignal: stop, DeathSignal: stop})
}

func settings(opts Options) []string {
	s := []string{
		"listen_addresses=" + process.Loopback,
		"port=" + strconv.Itoa(opts.Port),
		// A socket's path is limited to about a hundred bytes, and the cluster's directory
		// may be deeper than that.
		"unix_socket_directories=",
		"max_connections=300",
		"shared_buffers=256MB",
		"timezone=UTC",
		"log_timezone=UTC",
	}
	if opts.Throwaway {
		s = append(s, "fsync=off", "full_page_writes=off", "synchronous_commit=off",
			"wal_level=minimal", "max_wal_senders=0")
	}
	return s
}

// CreateDatabases creates those databases that are missing on the server.
func CreateDatabases(ctx context.Context, url string, names ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, name := range names {
		var exists bool
		err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
		if err == nil && !exists {
			_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
		}
		if err != nil {
			return fmt.Errorf("cannot create the database %s: %w", name, err)
		}
	}
	return nil
}
