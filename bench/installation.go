package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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
	// fail ends the measurement if api or worker end by themselves.
	fail     func(error)
	name     string
	options  options
	dir      string
	settings map[string]string
	// apiSettings override settings for the api.
	apiSettings map[string]string
	pool        *pgxpool.Pool
	temporal    client.Client
	receiver    *receiver
	secret      string
	// erp is the first integration of the first organization, webhookID its first
	// address.
	erp       *tenant
	webhookID string
	// api, worker and baselines are nil while they do not run.
	api, worker, baselines *process
	// The process ids of the servers, 0 if they are not found.
	postgresPID, temporalPID int
}

// newInstallation creates the database, the namespace and the receiver; it starts
// nothing.
func newInstallation(ctx context.Context, fail func(error), o options, name string) (*installation, error) {
	if os.Getenv("TEMPORAL_ADDRESS") == "" {
		return nil, errors.New("TEMPORAL_ADDRESS is not set: run `make bench`")
	}
	if _, err := os.Stat(o.binary); err != nil {
		return nil, fmt.Errorf("the product is not built: run `make bench` (%w)", err)
	}
	database, err := newDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	in := &installation{fail: fail, name: name, options: o, settings: map[string]string{
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
	if in.secret, err = webhook.GenerateSecret(rand.Reader); err != nil {
		return nil, err
	}
	if in.dir, err = os.MkdirTemp("", "millwright-bench-"); err != nil {
		return nil, err
	}
	if _, err = in.run(ctx, nil, "migrate"); err == nil {
		err = in.connect(ctx)
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// newDatabase creates an empty database next to that of DATABASE_URL and returns its
// URL.
func newDatabase(ctx context.Context, name string) (string, error) {
	base := os.Getenv("DATABASE_URL")
	if base == "" {
		return "", errors.New("DATABASE_URL is not set: run `make bench`")
	}
	admin, err := pgx.Connect(ctx, base)
	if err != nil {
		return "", err
	}
	defer func() { _ = admin.Close(ctx) }()
	name = "bench_" + name
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

func (in *installation) connect(ctx context.Context) (err error) {
	if in.pool, err = pgxpool.New(ctx, in.settings["DATABASE_URL"]+"&pool_max_conns=40"); err != nil {
		return err
	}
	server, err := url.Parse(in.settings["DATABASE_URL"])
	if err != nil {
		return err
	}
	in.postgresPID, in.temporalPID = listenerOn(server.Host), listenerOn(in.settings["TEMPORAL_ADDRESS"])
	if in.receiver, err = newReceiver(ctx); err != nil {
		return err
	}
	options := client.Options{HostPort: in.settings["TEMPORAL_ADDRESS"], Namespace: in.settings["TEMPORAL_NAMESPACE"], Logger: quiet{}}
	namespaces, err := client.NewNamespaceClient(options)
	if err != nil {
		return err
	}
	defer namespaces.Close()
	err = namespaces.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: options.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		return fmt.Errorf("register the namespace: %w", err)
	}
	in.temporal, err = client.NewLazyClient(options)
	return err
}

// close stops and removes everything except the database, which is removed with its
// server.
func (in *installation) close() {
	_ = errors.Join(in.worker.stop(), in.api.stop()) // stop kills what does not end
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

// quiet keeps the SDK's own log out of the output.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// freeAddress returns a loopback address on which no program listens, and
// reserves it until the bench ends. The port is below those of outgoing
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
func (in *installation) run(ctx context.Context, own map[string]string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, in.options.binary, args...)
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

// startProgram starts the api or the worker, with its own addresses for metrics and
// profiles.
func (in *installation) startProgram(ctx context.Context, name string, own map[string]string) (*process, error) {
	own = maps.Clone(own)
	if own == nil {
		own = map[string]string{}
	}
	for _, setting := range []string{metricsSetting, profileSetting} {
		address, err := freeAddress(ctx)
		if err != nil {
			return nil, err
		}
		own[setting] = address
	}
	p, err := startProcess(ctx, in.fail, in.dir, name, in.environ(own), in.options.binary, name)
	if err == nil {
		p.metrics, p.profiles = own[metricsSetting], own[profileSetting]
	}
	return p, err
}

// startWith creates the first organization, starts the api, and creates the work orders of
// the organization through it.
func (in *installation) startWith(ctx context.Context, o organization, workOrders int) error {
	if err := in.subscribe(ctx, o); err != nil {
		return err
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	return in.erp.createWorkOrders(ctx, workOrders)
}

// startAPI starts the api, waits until it is ready, and gets a token.
func (in *installation) startAPI(ctx context.Context) (err error) {
	if in.api, err = in.startProgram(ctx, "api", in.apiSettings); err != nil {
		return err
	}
	err = in.api.awaitReady(ctx, func() bool {
		body, err := fetch(ctx, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/readyz")
		return err == nil && len(body) > 0
	})
	if err != nil {
		return err
	}
	in.erp.token, err = in.tokenOf(ctx, changeSubscription(1).client(1))
	return err
}

// startWorker starts the worker, with the settings in own added, and waits until it
// runs.
func (in *installation) startWorker(ctx context.Context, own map[string]string) (err error) {
	if in.worker, err = in.startProgram(ctx, "worker", own); err != nil {
		return err
	}
	return in.worker.awaitReady(ctx, func() bool { return in.worker.logged(`"the worker runs"`) })
}

// stopWorker stops the worker, if it runs.
func (in *installation) stopWorker() error {
	err := in.worker.stop()
	in.worker = nil
	return err
}

// restartWorker restarts the worker with other settings.
func (in *installation) restartWorker(ctx context.Context, own map[string]string) error {
	if err := in.stopWorker(); err != nil {
		return err
	}
	return in.startWorker(ctx, own)
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
