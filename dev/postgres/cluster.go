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
	stopGrace    = 15 * time.Second
)

// Options describe a cluster.
type Options struct {
	// Root is the cluster's directory. Its parent must exist, and the user that Postgres
	// runs as must be able to enter it.
	Root string
	// Port is where the cluster listens; 0 means any free port.
	Port int
	// Log is the file for Postgres's messages; "" means standard error.
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

	owner, err := ownerOf(opts.Root)
	if err != nil {
		return nil, err
	}
	programs, err := choosePrograms(dataDir(opts.Root))
	if err != nil {
		return nil, err
	}
	if err := owner.makeDirectory(opts.Root); err != nil {
		return nil, err
	}
	if err := initialize(ctx, opts, programs, owner); err != nil {
		return nil, err
	}
	if err := reclaim(ctx, dataDir(opts.Root)); err != nil {
		return nil, err
	}
	password, err := os.ReadFile(passwordFile(opts.Root))
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's password: %w", err)
	}
	if opts.Port == 0 {
		// Chosen as late as possible, so that another program is less likely to take
		// it.
		ports, err := process.FreePorts(1)
		if err != nil {
			return nil, err
		}
		opts.Port = ports[0]
	}
	c := &Cluster{Programs: programs, URL: connectionURL(opts.Port, string(password), database)}
	if c.Process, err = launch(opts, programs, owner); err != nil {
		return nil, err
	}
	if err := c.awaitDatabase(ctx, connectionURL(opts.Port, string(password), "postgres")); err != nil {
		c.Stop()
		if tail := process.FileTail(opts.Log); tail != "" {
			err = fmt.Errorf("%w; the last lines of its log:\n%s", err, tail)
		}
		return nil, err
	}
	return c, nil
}

func dataDir(root string) string      { return filepath.Join(root, "data") }
func passwordFile(root string) string { return filepath.Join(root, "password") }

// exists reports whether the directory holds a cluster.
func exists(root string) bool {
	_, err := os.Stat(filepath.Join(dataDir(root), "PG_VERSION"))
	return err == nil
}

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

// initialize creates the data directory under another name and renames it when it is
// complete: a start that is killed leaves nothing half done.
func initialize(ctx context.Context, opts Options, programs Programs, owner Owner) error {
	root := opts.Root
	if exists(root) {
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
	cmd := owner.command(programs.path(name), args...)
	output := process.NewLines(func(string) {})
	cmd.Stdout, cmd.Stderr = output, output
	creation, err := process.Start(cmd, process.Options{Name: name, DeathSignal: syscall.SIGKILL})
	if err != nil {
		return err
	}
	select {
	case <-creation.Done():
	case <-ctx.Done():
		creation.Kill()
		return fmt.Errorf("%s was stopped: %w", name, ctx.Err())
	}
	if creation.ExitStatus() != 0 {
		return fmt.Errorf("%s failed (%s):\n%s", name, creation.Ending(), output.Tail())
	}
	return os.Rename(unfinished, dataDir(root))
}

func launch(opts Options, programs Programs, owner Owner) (*process.Process, error) {
	log := os.Stderr
	if opts.Log != "" {
		var err error
		if log, err = os.OpenFile(opts.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("cannot open Postgres's log: %w", err)
		}
		defer log.Close()
	}
	args := []string{"-D", dataDir(opts.Root)}
	for _, setting := range settings(opts) {
		args = append(args, "-c", setting)
	}
	cmd := owner.command(programs.path("postgres"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGINT is Postgres's fast shutdown, which does not wait for clients. SIGQUIT
	// stops at once and leaves recovery to the next start.
	stop := []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}
	death := syscall.SIGINT
	if opts.Throwaway {
		stop, death = []syscall.Signal{syscall.SIGQUIT}, syscall.SIGQUIT
	}
	return process.Start(cmd, process.Options{
		Name: "Postgres", DeathSignal: death, StopSignals: stop, StopGrace: stopGrace,
	})
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

// awaitDatabase waits until the server answers and creates the product's database if
// it is missing.
func (c *Cluster) awaitDatabase(ctx context.Context, maintenanceURL string) error {
	conn, err := c.connect(ctx, maintenanceURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, database).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, "create database "+database)
	}
	if err != nil {
		return fmt.Errorf("cannot create the database %s: %w", database, err)
	}
	return nil
}

func (c *Cluster) connect(ctx context.Context, url string) (*pgx.Conn, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn, nil
		}
		select {
		case <-c.Done():
			return nil, fmt.Errorf("Postgres did not start (%s)", c.Ending())
		case <-ctx.Done():
			return nil, fmt.Errorf("Postgres does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// choosePrograms returns the programs that fit the existing data, or the preferred
// ones for a new cluster.
func choosePrograms(data string) (Programs, error) {
	installed := Installed()
	if len(installed) == 0 {
		return Programs{}, fmt.Errorf("Postgres's programs are missing: install Postgres %d or newer, or set DATABASE_URL to a server", oldestMajor)
	}
	content, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return installed[0], nil
	}
	if err != nil {
		return Programs{}, fmt.Errorf("cannot read Postgres's data: %w", err)
	}
	version := strings.TrimSpace(string(content))
	for _, programs := range installed {
		if strconv.Itoa(programs.Major) == version {
			return programs, nil
		}
	}
	return Programs{}, fmt.Errorf("the data in %s was made by Postgres %s, which is not installed: "+
		"install it, or remove the directory to start over", data, version)
}
