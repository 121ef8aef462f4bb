package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/webhook"
)

// Keys of the bench's throwaway databases.
const (
	tokenKeys   = "bench:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	sealingKeys = "bench:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
)

// installation is the product as it runs in production: api and worker as processes,
// with their own database and Temporal namespace. All webhook addresses of its
// integration are the receiver's.
type installation struct {
	*bench
	name     string
	dir      string
	settings map[string]string
	// apiSettings override settings of the API server.
	apiSettings map[string]string
	pool        *pgxpool.Pool
	temporal    client.Client
	receiver    *receiver
	secret      string
	// erp is the first integration of the first organization, webhookID its first
	// address.
	erp       *tenant
	webhookID string
	// api and worker are nil while they do not run.
	api, worker *process
	baselines   baselines
	// The process ids of the servers, 0 if they are not found.
	postgresPID, temporalPID int
}

// install creates the database, the namespace and the receiver of an installation, in place of
// the part's earlier one; it starts nothing.
func (b *bench) install(name string) *installation {
	b.installed.close()
	if os.Getenv("DATABASE_URL") == "" || os.Getenv("TEMPORAL_ADDRESS") == "" {
		check(errors.New("DATABASE_URL and TEMPORAL_ADDRESS are not set: run `make bench`"))
	}
	if _, err := os.Stat(b.options.binary); err != nil {
		check(fmt.Errorf("the product is not built: run `make bench` (%w)", err))
	}
	database, address := b.newDatabase(name), must(freeAddress(b.ctx))
	in := &installation{bench: b, name: name, settings: map[string]string{
		"DATABASE_URL":           database,
		"TEMPORAL_ADDRESS":       os.Getenv("TEMPORAL_ADDRESS"),
		"TEMPORAL_NAMESPACE":     "bench-" + strings.ToLower(rand.Text()),
		"TOKEN_SIGNING_KEYS":     tokenKeys,
		"SECRET_SEALING_KEYS":    sealingKeys,
		"MILLWRIGHT_ADDR":        address,
		"MILLWRIGHT_PUBLIC_URL":  "http://" + address,
		"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
		"WEBHOOK_ALLOW_HTTP":     "true",
	}}
	b.installed = in
	in.secret = must(webhook.GenerateSecret(rand.Reader))
	in.dir = must(os.MkdirTemp("", "millwright-bench-"))
	must(in.run(nil, "migrate"))
	in.pool = must(pgxpool.New(in.ctx, database+"&pool_max_conns=40"))
	in.postgresPID, in.temporalPID = listenerOn(must(url.Parse(database)).Host), listenerOn(in.settings["TEMPORAL_ADDRESS"])
	in.receiver = must(listenForDeliveries(in.ctx))
	options := client.Options{HostPort: in.settings["TEMPORAL_ADDRESS"], Namespace: in.settings["TEMPORAL_NAMESPACE"], Logger: quiet}
	namespaces := must(client.NewNamespaceClient(options))
	defer namespaces.Close()
	check(namespaces.Register(in.ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: options.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}))
	in.temporal = must(client.NewLazyClient(options))
	return in
}

// close stops and removes everything except the database, which is removed with its
// server.
func (in *installation) close() {
	if in == nil {
		return
	}
	in.baselines.close()
	in.worker.stop()
	in.api.stop()
	if in.temporal != nil {
		in.temporal.Close()
	}
	if in.receiver != nil {
		in.receiver.close()
	}
	if in.pool != nil {
		in.pool.Close()
	}
	_ = os.RemoveAll(in.dir)
}

// newDatabase creates an empty database next to that of DATABASE_URL and returns its
// URL.
func (b *bench) newDatabase(name string) string {
	base := must(url.Parse(os.Getenv("DATABASE_URL")))
	admin := must(pgx.Connect(b.ctx, base.String()))
	defer func() { _ = admin.Close(b.ctx) }()
	must(admin.Exec(b.ctx, "DROP DATABASE IF EXISTS bench_"+name+" WITH (FORCE)"))
	must(admin.Exec(b.ctx, "CREATE DATABASE bench_"+name))
	base.Path = "/bench_" + name
	return base.String()
}

// quiet keeps the SDK's own log out of the output.
var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// freeAddress returns a loopback address on which no program listens, and
// reserves it until the bench ends. The port is below the ports of outgoing
// connections; a UDP socket with its number reserves it, as in dev/process.
func freeAddress(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	for port := 20_000 + mathrand.IntN(10_000); port < 32_000; port++ { //nolint:gosec // a port is not a secret
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reservation, err := listen.ListenPacket(ctx, "udp", address)
		if err != nil {
			continue
		}
		listener, err := listen.Listen(ctx, "tcp", address)
		if err != nil {
			_ = reservation.Close()
			continue
		}
		reservations = append(reservations, reservation)
		return address, listener.Close()
	}
	return "", errors.New("no port is free")
}

// reservations keep the sockets of freeAddress open.
var reservations []net.PacketConn

// run runs a command of the product to its end and returns its output.
func (in *installation) run(own map[string]string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(in.ctx, in.options.binary, args...)
	cmd.Env = in.environ(own)
	printed, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("millwright %s: %w: %s", args[0], err, failed.Stderr)
	}
	return printed, err
}

// environ returns the whole environment of the product's programs.
func (in *installation) environ(own map[string]string) []string {
	all := maps.Clone(in.settings)
	maps.Copy(all, own)
	env := []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// start starts the API server or the worker process, with its own addresses for metrics and profiles.
func (in *installation) start(name string, own map[string]string) *process {
	settings := map[string]string{metricsSetting: must(freeAddress(in.ctx)), profileSetting: must(freeAddress(in.ctx))}
	maps.Copy(settings, own)
	p := must(startProcess(in.ctx, in.fail, in.dir, name, in.environ(settings), in.options.binary, name))
	p.metrics, p.profiles = settings[metricsSetting], settings[profileSetting]
	return p
}

// startWith creates the first organization, starts the API server, and creates the work orders of
// the organization through it.
func (in *installation) startWith(o organization) {
	in.subscribe(o)
	in.startAPI()
	check(in.erp.createWorkOrders(in.ctx, benchWorkOrders))
}

// startAPI starts the API server, waits until it is ready, and gets a token.
func (in *installation) startAPI() {
	in.api = in.start("api", in.apiSettings)
	check(in.api.awaitReady(in.ctx, func() bool {
		_, err := fetch(in.ctx, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/readyz")
		return err == nil
	}))
	in.erp.Token = in.tokenOf(changeSubscription(1).client(1))
}

// startWorker starts the worker, with the settings in own added, and waits until it
// runs.
func (in *installation) startWorker(own map[string]string) {
	in.worker = in.start("worker", own)
	check(in.worker.awaitReady(in.ctx, func() bool {
		log, _ := os.ReadFile(in.worker.log)
		return bytes.Contains(log, []byte(`"the worker runs"`))
	}))
}

// stopWorker stops the worker, if it runs.
func (in *installation) stopWorker() {
	in.worker.stop()
	in.worker = nil
}

// exec runs a statement.
func (in *installation) exec(sql string, args ...any) {
	if _, err := in.pool.Exec(in.ctx, sql, args...); err != nil {
		check(fmt.Errorf("%.60s…: %w", sql, err))
	}
}

// fetch returns the body at the URL.
func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return do(r)
}

// do makes a call on a new connection and returns the body of its 200.
func do(r *http.Request) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s returned %d: %s", r.Method, r.URL.Path, response.StatusCode, body)
	}
	return body, err
}
