package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/webhook"
)

// installation is the product as it runs in production: api and worker as
// processes of their own, on a database and in a Temporal namespace of their
// own, with one integration whose webhook addresses are all the receiver's.
type installation struct {
	// fail ends the measurement when api or worker end by themselves.
	fail     func(error)
	binary   string
	dir      string
	settings map[string]string
	pool     *pgxpool.Pool
	temporal client.Client
	receiver *receiver
	secret   string
	imported imported
	// api and worker are nil while they do not run.
	api, worker *process
	token       string
	workOrders  []string
	// patches is how many changes were asked for.
	patches atomic.Int64
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
func newInstallation(ctx context.Context, fail func(error), binary string) (*installation, error) {
	if os.Getenv("TEMPORAL_ADDRESS") == "" {
		return nil, errors.New("TEMPORAL_ADDRESS is not set: run `make bench`")
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("the product is not built: run `make bench` (%w)", err)
	}
	database, err := newDatabase(ctx, "deliveries")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	in := &installation{fail: fail, binary: binary, settings: map[string]string{
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
	if _, err = in.run(ctx, "migrate"); err == nil {
		err = in.connect(ctx)
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *installation) connect(ctx context.Context) (err error) {
	if in.pool, err = pgxpool.New(ctx, in.settings["DATABASE_URL"]+"&pool_max_conns=40"); err != nil {
		return err
	}
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

// freeAddress returns a loopback address nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

const deliveringOrganization = `
organization: {key: bench, name: Bench, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000000, integrations: 10}}
permission_definitions: [{key: full, name: Full, applies_below: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update]}]
inventory: [{key: top, kind: location, name: Top}]
assignments: [{node: top, identity: erp, definition: full}]
integrations:
  - key: erp
    name: ERP
    scopes: ["work_orders:read", "work_orders:write"]
    client_id: erp
    client_secret: secret-of-erp-in-the-bench
    webhooks:`

// subscribe gives the integration so many addresses, by importing its organization (again).
func (in *installation) subscribe(ctx context.Context, addresses int) error {
	yaml := deliveringOrganization
	for i := range addresses {
		yaml += fmt.Sprintf("\n      - {key: hook%d, url: %q, secret: %q, events: [work_order.updated]}", i+1, in.receiver.url(i+1), in.secret)
	}
	file := filepath.Join(in.dir, "organization.yaml")
	if err := os.WriteFile(file, []byte(yaml+"\n"), 0o600); err != nil {
		return err
	}
	printed, err := in.run(ctx, "import", file)
	if err != nil {
		return err
	}
	return json.Unmarshal(printed, &in.imported)
}

// run runs a command of the product to its end and returns what it printed.
func (in *installation) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, in.binary, args...)
	cmd.Env = in.environ(nil)
	printed, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("millwright %s: %w: %s", args[0], err, failed.Stderr)
	}
	return printed, err
}

// webhookID is the id of the first address.
func (in *installation) webhookID() string {
	return in.imported.Integrations["erp"].Webhooks["hook1"].ID
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

// startAPI starts the api, returns when it answers, and gets a token.
func (in *installation) startAPI(ctx context.Context) (err error) {
	client := &http.Client{Timeout: 5 * time.Second}
	if in.api, err = startProcess(ctx, in.fail, in.dir, "api", in.environ(nil), in.binary, "api"); err != nil {
		return err
	}
	err = in.api.awaitReady(ctx, func() bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/readyz", http.NoBody)
		if err != nil {
			return false
		}
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	if err != nil {
		return err
	}
	in.token, err = fetchToken(ctx, client, in.settings["MILLWRIGHT_PUBLIC_URL"], "erp")
	return err
}

// startWorker starts the worker, with other settings if own has some, and returns when it runs.
func (in *installation) startWorker(ctx context.Context, own map[string]string) (err error) {
	if in.worker, err = startProcess(ctx, in.fail, in.dir, "worker", in.environ(own), in.binary, "worker"); err != nil {
		return err
	}
	return in.worker.awaitReady(ctx, func() bool { return in.worker.logged(`"the worker runs"`) })
}

// restartWorker stops the worker and starts it with other settings.
func (in *installation) restartWorker(ctx context.Context, own map[string]string) error {
	if err := in.worker.stop(); err != nil {
		return err
	}
	return in.startWorker(ctx, own)
}
