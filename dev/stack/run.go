package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

const (
	developmentRetention = 30 * 24 * time.Hour
	// crashPatience limits the time that a start waits for the processes of a killed
	// stack to end.
	crashPatience = 15 * time.Second
	readyTimeout  = 60 * time.Second
	// productStopGrace is longer than a worker gives its activities to end.
	productStopGrace = 20 * time.Second
)

// RunOptions describe the stack a developer works with.
type RunOptions struct {
	// Millwright is the path of the product's program.
	Millwright string
	// Demo are the files to import, in order.
	Demo []string
	// Week is the file with the demo's work, "" without.
	Week string
	// Out is the terminal.
	Out io.Writer
}

// Run starts the stack and keeps it running until a signal comes. A part that ends by
// itself is started again; one that keeps ending, or ends before the stack is ready, is an
// error.
func Run(signals <-chan os.Signal, opts RunOptions) error {
	if _, err := exec.LookPath(opts.Millwright); err != nil {
		return fmt.Errorf("%s does not exist: run `make build` in the repository's directory", opts.Millwright)
	}
	for _, file := range opts.Demo {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("cannot read the demo organization: %w", err)
		}
	}
	dir, err := devDir(os.Getenv("DEV_DIR"))
	if err != nil {
		return err
	}
	env := newEnviron(os.Environ(), readEnv(envFile(dir)))
	cfg, err := loadConfig(dir, env)
	if err != nil {
		return err
	}
	if err := cfg.makeDirectory(); err != nil {
		return err
	}
	lock, err := lockDirectory(cfg.dir)
	if err != nil {
		return err
	}
	defer lock.release()
	var wait time.Duration
	if lock.afterCrash {
		wait = crashPatience
	}
	if err := cfg.checkPorts(wait); err != nil {
		return err
	}

	s := newSupervisor(signals, opts.Out)
	defer s.stop()
	r := &runner{supervisor: s, cfg: cfg, env: env, opts: opts, receiverPort: demoReceiverPort}
	defer r.stopReceiver()
	if err := r.start(); err != nil {
		// A stop, or the end of another part, causes errors that are not the reason
		// themselves.
		if s.ctx.Err() != nil {
			return s.cause()
		}
		return err
	}
	s.restarts.Store(true)
	r.report()
	var entered <-chan string
	if process.InForeground() && process.IsTerminal(os.Stdin) {
		entered = linesOf(os.Stdin)
	}
	for {
		select {
		case line := <-entered:
			r.obey(line)
		case <-s.ctx.Done():
			return s.cause()
		}
	}
}

// runner starts a stack.
type runner struct {
	*supervisor
	cfg   *config
	env   environ
	opts  RunOptions
	state *state
	// database identifies the database among those this directory was used with.
	database string
	settings []setting
	demo     credentials
	// receiver is the demo's, nil if it was never started.
	receiver     *process.Process
	receiverPort int
}

func (r *runner) start() error {
	if err := r.startPostgres(); err != nil {
		return err
	}
	if r.cfg.ownTemporal {
		if err := r.startTemporal(); err != nil {
			return err
		}
	}
	if err := r.runToEnd("migrate", nil); err != nil {
		return err
	}
	if err := r.importDemo(); err != nil {
		return err
	}
	if err := r.writeEnv(); err != nil {
		return err
	}
	if err := r.startReceiver(); err != nil {
		return err
	}
	if err := r.startProduct(); err != nil {
		return err
	}
	return r.awaitReady()
}

// startPostgres starts the private cluster, unless DATABASE_URL names another server,
// and resolves the settings, which need its address.
func (r *runner) startPostgres() error {
	st, isNew, err := loadState(r.cfg.dir)
	if err != nil {
		return err
	}
	r.state = st
	if err := st.choosePostgresPort(); err != nil {
		return err
	}
	if err := st.save(r.cfg.dir); err != nil {
		return fmt.Errorf("cannot save the stack's state: %w", err)
	}
	url := r.env["DATABASE_URL"]
	if url == "" {
		cluster, err := r.startCluster(isNew)
		if err != nil {
			return err
		}
		url, r.database = cluster.URL, "private"
	} else if r.database, err = r.checkServer(url); err != nil {
		return err
	}
	r.settings = r.env.resolve(r.cfg.settings(st, url))
	return nil
}

func (r *runner) startCluster(isNew bool) (*postgres.Cluster, error) {
	root, err := postgres.ClusterDir(r.cfg.dir)
	if err != nil {
		return nil, err
	}
	if isNew && filepath.Dir(root) != r.cfg.dir {
		// The stack's directory was removed to start over. Data kept elsewhere is useless
		// without its keys.
		if err := postgres.Discard(r.ctx, root); err != nil {
			return nil, err
		}
	}
	var cluster *postgres.Cluster
	err = r.add(func(ctx context.Context) (part, error) {
		log := r.cfg.log("postgres")
		var err error
		cluster, err = postgres.Start(ctx, postgres.Options{Root: root, Port: r.state.PostgresPort, Log: log})
		if err != nil {
			return part{}, err
		}
		return part{cluster.Process, func() string { return process.FileTail(log) }}, nil
	})
	if err != nil {
		return nil, err
	}
	r.printf("Postgres %d on port %d, data in %s", cluster.Programs.Major, r.state.PostgresPort, relativePath(root))
	return cluster, nil
}

// checkServer checks that the server of DATABASE_URL answers, and returns a name for
// the database.
func (r *runner) checkServer(url string) (string, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return "", fmt.Errorf("malformed DATABASE_URL: %w", err)
	}
	name := net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))) + "/" + cfg.Database
	conn, err := pgx.ConnectConfig(r.ctx, cfg)
	if err != nil {
		return "", fmt.Errorf("the Postgres server of DATABASE_URL does not answer (unset it for a private one): %w", err)
	}
	r.printf("Postgres at %s, from DATABASE_URL", name)
	return name, conn.Close(context.WithoutCancel(r.ctx))
}

func (r *runner) startTemporal() error {
	err := r.add(func(ctx context.Context) (part, error) {
		log := r.cfg.log("temporal")
		temporal, err := startTemporal(ctx, temporalOptions{
			postgresURL: valueOf(r.settings, "DATABASE_URL"),
			port:        r.cfg.temporal.number,
			uiPort:      r.cfg.temporalUI.number,
			log:         log,
			retention:   developmentRetention,
		})
		return part{temporal, func() string { return process.FileTail(log) }}, err
	})
	if err != nil {
		return err
	}
	r.printf("Temporal on port %d, its Web UI on port %d, logs in %s", r.cfg.temporal.number, r.cfg.temporalUI.number, relativePath(r.cfg.logs()))
	return nil
}

// startProduct starts api and worker.
func (r *runner) startProduct() error {
	return r.add(r.server("api", &r.cfg.apiMetrics), r.server("worker", &r.cfg.workerMetrics))
}

// ordinary matches a line of a server's log that is no warning.
var ordinary = regexp.MustCompile(`^[0-9:.]+ (INF|DBG) `)

// server returns what starts a server of the product. The servers differ only in the address of
// their metrics. Their logs are files; the terminal shows warnings and errors.
func (r *runner) server(command string, metrics *port) starter {
	return func(context.Context) (part, error) {
		path, terminal := r.cfg.log(command), r.prefixed(command)
		file, err := openLog(path)
		if err != nil {
			return part{}, err
		}
		log := process.NewLines(func(line string) {
			fmt.Fprintln(file, line)
			if !ordinary.MatchString(line) {
				fmt.Fprintln(terminal, line)
			}
		})
		p, err := r.program(command, log, log, append(r.env.resolve([]setting{{"LOG_FORMAT", "text"}}), setting{"METRICS_ADDR", metrics.address()}))
		if err != nil {
			file.Close()
			return part{}, err
		}
		go func() { <-p.Done(); file.Close() }()
		return part{p, log.Tail}, nil
	}
}

// program starts a subcommand of the product with the stack's settings.
func (r *runner) program(command string, stdout, stderr io.Writer, extra []setting, args ...string) (*process.Process, error) {
	cmd := exec.Command(r.opts.Millwright, append([]string{command}, args...)...)
	cmd.Env = r.env.list()
	for _, s := range slices.Concat(extra, r.settings) {
		cmd.Env = append(cmd.Env, s.name+"="+s.value)
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return process.Start(cmd, process.Options{
		Name:        "millwright " + command,
		DeathSignal: syscall.SIGKILL,
		StopSignals: []syscall.Signal{syscall.SIGTERM},
		StopGrace:   productStopGrace,
	})
}

// runToEnd runs a subcommand of the product and waits for its end. Its output goes to the terminal; if out is set, its
// standard output goes there instead.
func (r *runner) runToEnd(command string, out io.Writer, args ...string) error {
	var log io.Writer = r.prefixed(command)
	if out == nil {
		out = log
	}
	p, err := r.program(command, out, log, r.env.resolve(logSettings(r.opts.Out)), args...)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-r.ctx.Done():
		p.Stop()
		return r.ctx.Err()
	}
	if p.ExitStatus() != 0 {
		return fmt.Errorf("%s failed (%s); see its output above", p.Name(), p.Ending())
	}
	return nil
}

// awaitReady waits until the API server reports that it and everything it needs are ready.
func (r *runner) awaitReady() error {
	url := "http://" + r.cfg.apiAddress + "/readyz?temporal=1"
	ctx, cancel := context.WithTimeout(r.ctx, readyTimeout)
	defer cancel()
	if err := process.Await(ctx, 50*time.Millisecond, func() error { return get(ctx, url) }); err != nil {
		return fmt.Errorf("the API server was not ready within %s: %w", readyTimeout, err)
	}
	return nil
}

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
	return errors.New("GET " + url + " returned " + response.Status + ": " + string(body))
}
