package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
	"path/filepath"
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

// installation is the product as it runs in production: api and worker as
// processes of their own, on a database and in a Temporal namespace of their
// own, with one integration whose webhook addresses are all the receiver's.
type installation struct {
	// fail ends the measurement when api or worker end by themselves.
	fail     func(error)
	name     string
	options  options
	dir      string
	settings map[string]string
	pool     *pgxpool.Pool
	temporal client.Client
	receiver *receiver
	secret   string
	// erp is the first integration of the first organization, webhookID its first address.
	erp       *tenant
	webhookID string
	// api, worker and floors are nil while they do not run.
	api, worker, floors *process
	// The servers all of it runs on, 0 where they cannot be found.
	postgresPID, temporalPID int
}

// imported is what `millwright import` prints.
type imported struct {
	IDs          map[string]string `json:"ids"`
	Integrations map[string]struct {
		Webhooks map[string]struct {
			ID string `json:"id"`
		} `json:"webhooks"`
	} `json:"integrations"`
}

// newInstallation makes the database, the namespace and the organization; nothing runs yet.
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

// newDatabase makes an empty database beside that of DATABASE_URL and returns its URL.
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

// close stops and removes everything but the database, which goes with its server.
func (in *installation) close() {
	_ = errors.Join(in.worker.stop(), in.api.stop()) // each was killed if it did not end
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

// quiet keeps the SDK's own log out of the table.
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
	for port := 20_000 + mathrand.IntN(10_000); port < 32_000; port++ {
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

// organization is one that is imported: its integrations see everything, and
// each has so many addresses, all of them the receiver's.
type organization struct {
	key                     string
	integrations, addresses int
	events                  string
	// failing has the receiver refuse its deliveries.
	failing bool
}

// changesTold is the organization of most measurements: its addresses hear of changes.
func changesTold(addresses int) organization {
	return organization{key: "bench", integrations: 1, addresses: addresses, events: "work_order.updated"}
}

// client is the n-th integration's client id, counted from 1.
func (o organization) client(n int) string { return fmt.Sprintf("%s-%d", o.key, n) }

func (o organization) yaml(r *receiver, secret string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
organization: {key: bench, name: Bench, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000000, integrations: 1000}}
permission_definitions: [{key: full, name: Full, applies_below: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update]}]
inventory: [{key: top, kind: location, name: Top}]
assignments:
`)
	for n := range o.integrations {
		fmt.Fprintf(&b, "  - {node: top, identity: i%d, definition: full}\n", n+1)
	}
	b.WriteString("integrations:\n")
	for n := range o.integrations {
		client := o.client(n + 1)
		fmt.Fprintf(&b, `  - key: i%d
    name: Integration %d
    scopes: ["work_orders:read", "work_orders:write"]
    client_id: %s
    client_secret: %s
    webhooks:
`, n+1, n+1, client, secretOf(client))
		for a := range o.addresses {
			path := fmt.Sprintf("/%s/%d", client, a+1)
			if o.failing {
				path = refused + path
			}
			fmt.Fprintf(&b, "      - {key: hook%d, url: %q, secret: %q, events: [%s]}\n", n*o.addresses+a+1, r.url(path), secret, o.events)
		}
	}
	return strings.Replace(b.String(), "key: bench,", "key: "+o.key+",", 1)
}

// subscribe imports the first organization (again) and makes its integration the one that calls.
func (in *installation) subscribe(ctx context.Context, o organization) error {
	made, err := in.importOrganization(ctx, o)
	if err != nil {
		return err
	}
	in.webhookID = made.Integrations["i1"].Webhooks["hook1"].ID
	if in.erp == nil {
		in.erp = &tenant{address: in.settings["MILLWRIGHT_ADDR"], node: made.IDs["top"]}
	}
	return nil
}

func (in *installation) importOrganization(ctx context.Context, o organization) (made imported, err error) {
	if err := os.WriteFile(in.organizationFile(), []byte(o.yaml(in.receiver, in.secret)), 0o600); err != nil {
		return made, err
	}
	printed, err := in.run(ctx, nil, "import", in.organizationFile())
	if err != nil {
		return made, err
	}
	return made, json.Unmarshal(printed, &made)
}

// organizationFile holds the organization imported last.
func (in *installation) organizationFile() string { return filepath.Join(in.dir, "organization.yaml") }

// tenantOf imports another organization and returns its first integration, with some work orders.
func (in *installation) tenantOf(ctx context.Context, o organization, workOrders int) (*tenant, error) {
	made, err := in.importOrganization(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &tenant{address: in.settings["MILLWRIGHT_ADDR"], node: made.IDs["top"]}
	if t.token, err = in.tokenOf(ctx, o.client(1)); err != nil {
		return nil, err
	}
	return t, t.createWorkOrders(ctx, workOrders)
}

// run runs a command of the product to its end and returns what it printed.
func (in *installation) run(ctx context.Context, own map[string]string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, in.options.binary, args...)
	cmd.Env = in.environ(own)
	printed, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("millwright %s: %w: %s", args[0], err, failed.Stderr)
	}
	return printed, err
}

// environ is the whole environment of the product's programs.
func (in *installation) environ(own map[string]string) []string {
	all := maps.Clone(in.settings)
	maps.Copy(all, own)
	env := []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// startProgram starts the api or the worker, with metrics and profiles served on addresses of its own.
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

// startAPI starts the api, returns when it answers, and gets a token.
func (in *installation) startAPI(ctx context.Context) (err error) {
	if in.api, err = in.startProgram(ctx, "api", nil); err != nil {
		return err
	}
	err = in.api.awaitReady(ctx, func() bool {
		body, err := fetch(ctx, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/readyz")
		return err == nil && len(body) > 0
	})
	if err != nil {
		return err
	}
	in.erp.token, err = in.tokenOf(ctx, changesTold(1).client(1))
	return err
}

// startWorker starts the worker, with other settings if own has some, and returns when it runs.
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

// restartWorker stops the worker and starts it with other settings.
func (in *installation) restartWorker(ctx context.Context, own map[string]string) error {
	if err := in.stopWorker(); err != nil {
		return err
	}
	return in.startWorker(ctx, own)
}

// secretOf is the client secret of an integration of the bench.
func secretOf(clientID string) string { return "secret-of-" + clientID + "-in-the-bench" }

// tokenOf gets an access token.
func (in *installation) tokenOf(ctx context.Context, clientID string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {secretOf(clientID)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/v1/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	body, err := do(r)
	if err != nil {
		return "", err
	}
	err = json.Unmarshal(body, &answer)
	return answer.AccessToken, err
}

// fetch gets what stands at the URL.
func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return do(r)
}

// do makes a call on a connection of its own and returns the body of its 200.
func do(r *http.Request) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s answers %d: %s", r.Method, r.URL.Path, answer.StatusCode, body)
	}
	return body, err
}
