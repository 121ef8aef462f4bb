package main

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/webhook"
)

// sealingKeys seal what the throwaway databases keep secret.
const sealingKeys = "bench:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="

// installation is the product as it runs in production: api and worker as processes,
// with their own database and Temporal namespace. All webhook addresses of its
// integrations are the receiver's.
type installation struct {
	*bench
	ctx context.Context
	// dir has the logs of the processes, and files to import.
	dir string
	// address is the API server's, database the URL, and env the environment of the product's programs.
	address, database string
	env               []string
	pool              *pgxpool.Pool
	temporal          client.Client
	receiver          *receiver
	secret            string
	// erp is the first integration of the first organization; then come its ids and that of its
	// first address.
	erp                                  *tenant
	organization, integration, webhookID string
	// processes are those that run, by name.
	processes map[string]*process
	// The process ids of the servers, 0 if they are not found.
	postgresPID, temporalPID int
}

// install creates the database, the namespace and the receiver of an installation; it starts
// nothing.
func (b *bench) install(name string) *installation {
	in := &installation{bench: b, ctx: context.Background(), processes: map[string]*process{}}
	in.dir = must(os.MkdirTemp("", "millwright-bench-"))
	in.secret = must(webhook.GenerateSecret(cryptorand.Reader))
	in.receiver = listenForDeliveries()
	in.database, in.address = in.newDatabase(name), freeAddress()
	temporal, namespace := os.Getenv("TEMPORAL_ADDRESS"), "bench-"+strings.ToLower(cryptorand.Text())
	in.env = []string{
		"DATABASE_URL=" + in.database,
		"TEMPORAL_ADDRESS=" + temporal,
		"TEMPORAL_NAMESPACE=" + namespace,
		"TOKEN_SIGNING_KEYS=bench:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		"SECRET_SEALING_KEYS=" + sealingKeys,
		"MILLWRIGHT_ADDR=" + in.address,
		"MILLWRIGHT_PUBLIC_URL=http://" + in.address,
		"WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8",
		"WEBHOOK_ALLOW_HTTP=true",
	}
	in.run(nil, "migrate")
	in.pool = must(pgxpool.New(in.ctx, in.database+"&pool_max_conns=40&synchronous_commit=off&maintenance_work_mem=512MB"))
	in.postgresPID, in.temporalPID = serverAt(must(url.Parse(in.database)).Host), serverAt(temporal)
	options := client.Options{HostPort: temporal, Namespace: namespace, Logger: quiet}
	namespaces := must(client.NewNamespaceClient(options))
	defer namespaces.Close()
	check(namespaces.Register(in.ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	in.temporal = must(client.NewLazyClient(options))
	return in
}

// close stops and removes everything except the database, which is removed with its server.
func (in *installation) close() {
	for name := range in.processes {
		in.stop(name)
	}
	in.temporal.Close()
	in.receiver.server.Close()
	in.pool.Close()
	check(os.RemoveAll(in.dir))
}

// newDatabase creates an empty database next to that of DATABASE_URL and returns its URL.
func (in *installation) newDatabase(name string) string {
	base := must(url.Parse(os.Getenv("DATABASE_URL")))
	admin := must(pgx.Connect(in.ctx, base.String()))
	defer func() { _ = admin.Close(in.ctx) }()
	must(admin.Exec(in.ctx, "DROP DATABASE IF EXISTS bench_"+name+" WITH (FORCE)"))
	must(admin.Exec(in.ctx, "CREATE DATABASE bench_"+name))
	base.Path = "/bench_" + name
	return base.String()
}

// quiet keeps the SDK's own log out of the output.
var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// freeAddress returns a loopback address on which no program listens. Its port is below the ports
// of outgoing connections.
func freeAddress() string {
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)) //nolint:gosec // a port is not a secret
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		if err == nil {
			check(listener.Close())
			return address
		}
	}
}

// exec runs a statement.
func (in *installation) exec(sql string, args ...any) {
	if _, err := in.pool.Exec(in.ctx, sql, args...); err != nil {
		check(fmt.Errorf("%.60s…: %w", sql, err))
	}
}

// run runs a command of the product to its end, with its own settings after the installation's, and
// returns its output.
func (in *installation) run(own []string, args ...string) []byte {
	cmd := exec.CommandContext(in.ctx, in.options.binary, args...)
	cmd.Env = slices.Concat(in.env, own)
	printed, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		check(fmt.Errorf("millwright %s: %w: %s", args[0], err, failed.Stderr))
	}
	return must(printed, err)
}

// process is a program next to the bench. Its log goes to a file, as in production, so
// that nothing has to read it.
type process struct {
	cmd *exec.Cmd
	log string
	// profiles is the address where the product serves them, if it is built so.
	profiles string
	stopping context.CancelFunc
	ended    chan struct{}
}

// start starts a program, with its own settings after the installation's. It must not end before
// stop.
func (in *installation) start(name string, own []string, program string, args ...string) *process {
	p := &process{log: filepath.Join(in.dir, name+".log"), profiles: freeAddress(), ended: make(chan struct{})}
	log := must(os.Create(p.log))
	defer log.Close()
	ctx, stopping := context.WithCancel(in.ctx)
	p.stopping = stopping
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Env, p.cmd.Stderr = slices.Concat(in.env, own, []string{profileSetting + "=" + p.profiles}), log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 40 * time.Second
	check(p.cmd.Start())
	go func() {
		err := p.cmd.Wait()
		if ctx.Err() == nil {
			check(fmt.Errorf("%s ended (%w): see %s", name, err, p.log))
		}
		close(p.ended)
	}()
	in.processes[name] = p
	return p
}

// stop terminates a process, or kills it if it does not end, and waits for its end.
func (in *installation) stop(name string) {
	if p := in.processes[name]; p != nil {
		p.stopping()
		<-p.ended
		delete(in.processes, name)
	}
}

// startAPI starts the API server with its own settings, waits until it is ready, and gets a token.
func (in *installation) startAPI(own ...string) {
	in.start("api", own, in.options.binary, "api")
	await(10*time.Millisecond, func() bool {
		_, err := fetch(request(http.MethodGet, "http://"+in.address+"/readyz", nil))
		return err == nil
	})
	in.erp.Token = in.tokenOf(changeSubscription(1).client(1))
}

// startWorker starts the worker with its own settings, and waits until it runs.
func (in *installation) startWorker(own ...string) {
	worker := in.start("worker", own, in.options.binary, "worker")
	await(10*time.Millisecond, func() bool { return bytes.Contains(must(os.ReadFile(worker.log)), []byte(`"the worker runs"`)) })
}

// request makes a request to a server of this machine.
func request(method, url string, body []byte) *http.Request {
	return must(http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(body)))
}

var transport = &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}

// fetch sends a request and returns the body of its response, if that has a status that begins with 2.
func fetch(r *http.Request) ([]byte, error) {
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = &statusError{r.Method, r.URL.Path, response.StatusCode, string(body)}
	}
	return body, err
}

// profileSetting is the address for profiles of a product that is built with them; others ignore it.
const profileSetting = "MILLWRIGHT_PROFILE_ADDR"

// profileFor is the duration of a profile; its load lasts longer.
const profileFor = 5 * time.Second

// profiled repeats a load and writes CPU and allocation profiles of api and worker, if
// -profile is set. Profiling costs time, so the repetition is not measured.
func (in *installation) profiled(name string, run func()) {
	if in.options.profile == "" {
		return
	}
	check(os.MkdirAll(in.options.profile, 0o750))
	var group sync.WaitGroup
	for _, program := range []string{"api", "worker"} {
		for _, kind := range []string{"profile", "allocs"} {
			url := fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%.0f", in.processes[program].profiles, kind, profileFor.Seconds())
			group.Go(func() {
				file := fmt.Sprintf("%s-%s-%s.pprof", name, program, kind)
				check(os.WriteFile(filepath.Join(in.options.profile, file), must(fetch(request(http.MethodGet, url, nil))), 0o600))
			})
		}
	}
	run()
	group.Wait()
}
