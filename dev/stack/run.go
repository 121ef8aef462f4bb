package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"time"

	"millwright/dev/postgres"
	"millwright/dev/process"
)

const readyTimeout = 60 * time.Second

// RunOptions describe the stack a developer works with.
type RunOptions struct {
	Millwright string    // the path of the product's program
	Demo       []string  // the files to import, in order
	Week       string    // the file with the demo's work
	Out        io.Writer // the terminal
}

// Run starts the stack and keeps it running until a signal comes. A part that ends by
// itself is started again; one that keeps ending, or ends before the stack is ready, is an
// error.
func Run(signals <-chan os.Signal, opts RunOptions) error {
	if _, err := exec.LookPath(opts.Millwright); err != nil {
		return fmt.Errorf("%s does not exist: run `make build` in the repository's directory", opts.Millwright)
	}
	dir := devDir()
	forgetOwnEnv(dir)
	cfg, err := loadConfig(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.logs(), 0o755); err != nil {
		return fmt.Errorf("cannot create the directory for the stack's data: %w", err)
	}
	lock, err := process.Lock(dir)
	if err != nil {
		return fmt.Errorf("a stack is already running in %s (%w): stop it first, or give a second one its own DEV_DIR and ports", dir, err)
	}
	defer lock.Close()
	if err := cfg.checkPorts(); err != nil {
		return err
	}

	s := newSupervisor(opts.Out)
	go s.stopOn(signals)
	defer s.stop()
	r := &runner{supervisor: s, cfg: cfg, opts: opts, receiverPort: demoReceiverPort}
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
	if process.InForeground() {
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
	cfg      *config
	opts     RunOptions
	state    *state
	settings []setting
	// database names the demo's database among those this directory was used with.
	database string
	demo     credentials
	// receiver is the demo's, nil if it was never started.
	receiver     *process.Process
	receiverPort int
}

func (r *runner) start() (err error) {
	if r.state, err = loadState(r.cfg.dir); err != nil {
		return err
	}
	url := os.Getenv("DATABASE_URL")
	r.database = cmp.Or(url, "private")
	r.demo = r.state.Demo[r.database]
	if url == "" {
		if url, err = r.startPostgres(); err != nil {
			return err
		}
	}
	// Before anything is sealed with its keys.
	if err := r.state.save(r.cfg.dir); err != nil {
		return fmt.Errorf("cannot save the stack's state: %w", err)
	}
	r.settings = r.cfg.settings(r.state, url)
	if r.cfg.ownTemporal {
		port, uiPort := r.cfg.temporal.number, r.cfg.temporalUI.number
		if err := r.addTemporal(temporalOptions{databaseURL: url, port: port, uiPort: uiPort, log: r.cfg.log("temporal")}); err != nil {
			return err
		}
		r.printf("Temporal on port %d, its Web UI on port %d, logs in %s", port, uiPort, r.cfg.logs())
	}
	if err := r.runToEnd(nil, "migrate"); err != nil {
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
	if err := errors.Join(r.startServer("api", r.cfg.apiMetrics), r.startServer("worker", r.cfg.workerMetrics)); err != nil {
		return err
	}
	return r.awaitReady()
}

// startPostgres starts the private cluster and returns its URL.
func (r *runner) startPostgres() (string, error) {
	root, err := r.state.clusterRoot(r.cfg.dir)
	if err != nil {
		return "", err
	}
	if err := r.state.choosePostgresPort(); err != nil {
		return "", err
	}
	if err := r.state.save(r.cfg.dir); err != nil { // a start that fails must not lose the directory
		return "", err
	}
	cluster, err := r.addPostgres(postgres.Options{Root: root, Port: r.state.PostgresPort, Log: r.cfg.log("postgres")})
	if err != nil {
		return "", err
	}
	r.printf("Postgres %d on port %d, data in %s", cluster.Programs.Major, r.state.PostgresPort, root)
	return cluster.URL, nil
}

// ordinary matches a line of a server's log that is no warning.
var ordinary = regexp.MustCompile(`^[0-9:.]+ (INF|DBG) `)

// startServer starts a server of the product. The servers differ only in the address of
// their metrics. Their logs are files; the terminal shows warnings and errors.
func (r *runner) startServer(command string, metrics port) error {
	show, log := r.prefixed(command), r.cfg.log(command)
	return r.add(func(context.Context) (*process.Process, error) {
		cmd := r.command(command)
		cmd.Env = append(cmd.Env, "MILLWRIGHT_ADDR="+r.cfg.api.address(), "METRICS_ADDR="+metrics.address())
		return process.Start(cmd, process.Options{Name: "millwright " + command, Log: log, Line: func(line string) {
			if !ordinary.MatchString(line) {
				show(line)
			}
		}})
	})
}

// command returns a subcommand of the product with the stack's settings.
func (r *runner) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.opts.Millwright, args...)
	cmd.Env = os.Environ()
	for _, s := range r.settings {
		cmd.Env = append(cmd.Env, s.name+"="+s.value)
	}
	return cmd
}

// runToEnd runs a subcommand of the product and waits for its end. Its output goes to the
// terminal; if out is set, its standard output goes there instead.
func (r *runner) runToEnd(out io.Writer, args ...string) error {
	cmd := r.command(args...)
	cmd.Stdout = out
	p, err := process.Start(cmd, process.Options{Name: "millwright " + args[0], Line: r.prefixed(args[0])})
	if err != nil {
		return err
	}
	return p.Wait(r.ctx)
}

// awaitReady waits until the API server reports that it and everything it needs are ready.
func (r *runner) awaitReady() error {
	url := "http://" + r.cfg.api.address() + "/readyz?temporal=1"
	ctx, cancel := context.WithTimeout(r.ctx, readyTimeout)
	defer cancel()
	if err := process.Await(ctx, 50*time.Millisecond, func() error { return get(url) }); err != nil {
		return fmt.Errorf("the API server was not ready within %s: %w", readyTimeout, err)
	}
	return nil
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
	return fmt.Errorf("GET %s returned %s: %s", url, response.Status, body)
}
