package e2e

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/models"
	"millwright/service/servicetest"
)

// startLimit limits the time that a process may take to start on a busy machine.
const startLimit = 3 * time.Minute

// settings are environment variables of the product.
type settings map[string]string

func (s settings) environ() []string {
	// Not nil, which would be the environment of this process. The race detector would make each process wait
	// for a second at its end.
	env := []string{"GORACE=atexit_sleep_ms=0"}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		env = append(env, name+"="+s[name])
	}
	return env
}

// harness is an installation of the product for one test: a migrated database, a
// Temporal namespace, an organization, and the processes that the test starts.
type harness struct {
	t        testing.TB
	settings settings
	// owner is the URL of the database for the role that migrates: the processes connect as
	// another one, unless the test has its own Postgres.
	owner    string
	org      organization
	db       *pgxpool.Pool
	temporal client.Client
	// key is a key of the settings, kept to search logs for it.
	key string
}

// newHarness makes an installation whose integration has one webhook address for each
// receiver. Settings in own override the defaults.
func newHarness(t testing.TB, own settings, receivers ...*receiver) *harness {
	t.Helper()
	address, _ := freePort(t)
	h := &harness{t: t, org: organization{receivers: receivers}, key: newKey()}
	connection := own["DATABASE_URL"]
	isMigrated := connection == ""
	h.owner = connection
	if isMigrated {
		h.owner = servicetest.Database(t)
		connection = servicetest.AsServiceRole(t, h.owner)
	}
	h.settings = settings{
		"DATABASE_URL":           connection,
		"TEMPORAL_ADDRESS":       os.Getenv("TEMPORAL_ADDRESS"),
		"TEMPORAL_NAMESPACE":     "e2e-" + strings.ToLower(rand.Text()),
		"TOKEN_SIGNING_KEYS":     "t1:" + h.key,
		"SECRET_SEALING_KEYS":    "s1:" + h.key,
		"MILLWRIGHT_ADDR":        address,
		"MILLWRIGHT_PUBLIC_URL":  "http://" + address,
		"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
		"WEBHOOK_ALLOW_HTTP":     "true",
		"SWEEP_INTERVAL":         "1s",
		"WEBHOOK_IDLE_TIMEOUT":   "5s", // short: tests wait until address workflows sleep
	}
	maps.Copy(h.settings, own)
	h.temporal = newNamespace(t, h.settings["TEMPORAL_ADDRESS"], h.settings["TEMPORAL_NAMESPACE"])
	if !isMigrated {
		h.run("migrate")
	}
	h.importOrganization()
	pool, err := pgxpool.New(t.Context(), h.owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h.db = pool
	return h
}

func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

func administer(t testing.TB, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		t.Fatalf("connect to Postgres: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// newNamespace registers a namespace and returns a client for it. Workers of
// different tests must not share one, or they would take each other's tasks.
func newNamespace(t testing.TB, address, name string) client.Client {
	t.Helper()
	options := client.Options{HostPort: address, Namespace: name, Logger: slog.New(slog.DiscardHandler)}
	namespaces, err := client.NewNamespaceClient(options)
	if err != nil {
		t.Fatal(err)
	}
	defer namespaces.Close()
	err = namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatalf("register the namespace %s: %v", name, err)
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// run runs a command of the product to its end and returns its output.
func (h *harness) run(args ...string) string {
	h.t.Helper()
	p := start(h.t, "millwright "+args[0], h.settings.environ(), millwright, args...)
	if status := p.wait(startLimit); status != 0 {
		h.t.Fatalf("millwright %s ended with status %d: %s", args[0], status, p.log.String())
	}
	return p.out.String()
}

// importOrganization imports the organization and keeps the ids.
func (h *harness) importOrganization() {
	h.t.Helper()
	h.org.imported = h.importFile(h.org.yaml())
	erp := h.org.imported.Integrations["erp"]
	h.org.clientID, h.org.clientSecret = erp.ClientID, erp.ClientSecret
}

// importFile imports a file with the content.
func (h *harness) importFile(content string) (result imported) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "organization.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(h.run("import", file)), &result); err != nil {
		h.t.Fatalf("the import's output: %v", err)
	}
	return result
}

// startAPI starts the API server, with the settings in own added, and waits until it is
// ready.
func (h *harness) startAPI(own settings) *process {
	h.t.Helper()
	p := h.start("api", own)
	address := cmp.Or(own["MILLWRIGHT_ADDR"], h.settings["MILLWRIGHT_ADDR"])
	p.awaitReady(startLimit, func() bool { return readyAt(address) == http.StatusOK })
	return p
}

// readyAt returns the status of /readyz of the API server at the address, 0 if none came.
func readyAt(address string) int {
	response, err := directClient.Get("http://" + address + "/readyz")
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// directClient makes each call on a new connection and waits 20 seconds at most.
var directClient = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// startWorker starts the worker and waits until it runs.
func (h *harness) startWorker() *process { h.t.Helper(); return h.startWorkerWith(nil) }

// startWorkerWith starts the worker with the settings in own added.
func (h *harness) startWorkerWith(own settings) *process {
	h.t.Helper()
	p := h.start("worker", own)
	p.awaitReady(startLimit, p.saysWorkerRuns)
	return p
}

func (p *process) saysWorkerRuns() bool { return p.log.has(`"the worker runs"`) }

func (h *harness) start(command string, own settings, args ...string) *process {
	h.t.Helper()
	all := maps.Clone(h.settings)
	maps.Copy(all, own)
	return start(h.t, "millwright "+command, all.environ(), millwright, append([]string{command}, args...)...)
}

// count returns the number that the query selects.
func (h *harness) count(sql string, args ...any) int {
	h.t.Helper()
	var n int
	if err := h.db.QueryRow(h.t.Context(), sql, args...).Scan(&n); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// organization is what a test imports. Its personal data and secrets must not appear
// in logs, metrics or Temporal.
type organization struct {
	// The credentials of its integration.
	clientID, clientSecret string
	receivers              []*receiver
	imported               imported
}

// imported is the output of `millwright import`.
type imported struct {
	IDs          map[string]string `json:"ids"`
	Integrations map[string]struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Webhooks     map[string]struct {
			ID string `json:"id"`
		} `json:"webhooks"`
	} `json:"integrations"`
}

// The personal data of the organization.
const (
	managerName  = "Ottilie Quarrington"
	managerEmail = "ottilie.quarrington@acme.example.com"
	managerPhone = "+12025550143"
)

// yaml returns the file for `millwright import`.
func (o *organization) yaml() string {
	var assignments, integrations strings.Builder
	for first := 0; first == 0 || first < len(o.receivers); first += models.MaxWebhooks {
		key := integrationOf(first + 1)
		fmt.Fprintf(&assignments, "\n  - {node: hq, identity: %s, definition: full}", key)
		fmt.Fprintf(&integrations, "\n  - key: %s\n    name: %s\n    scopes: [inventory:read, work_orders:read, work_orders:write, issues:read, issues:write, forms:read, files:read, people:read]\n    webhooks:",
			key, strings.ToUpper(key))
		if len(o.receivers) == 0 {
			integrations.WriteString(" []")
		}
		for i, r := range o.receivers[first:min(first+models.MaxWebhooks, len(o.receivers))] {
			fmt.Fprintf(&integrations, "\n      - {key: hook%d, url: %q, secret: %q, events: [%s]}", first+i+1, r.url(), r.secret, r.events)
		}
	}
	return fmt.Sprintf(`
organization: {key: acme, name: Acme Facilities, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000, integrations: 10}}
permission_definitions:
  - {key: full, name: Full access, applies_below: true, inventory_manager: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update, work_orders.delete, work_orders.forward, feedback.read, feedback.create, feedback.resolve]}
people:
  - {key: manager, name: %q, email: %q, phone: %q, admin: true}
inventory:
  - {key: hq, kind: location, name: Headquarters, children: [{key: hvac, kind: system, name: HVAC, children: [{key: ahu1, kind: equipment, name: AHU 1}]}]}
forms:
  - {key: inspection, name: Inspection, questions: [{key: finding, label: Finding, type: text, required: false}]}
assignments:
  - {node: hq, identity: manager, definition: full}%s
integrations:%s
`, managerName, managerEmail, managerPhone, assignments.String(), integrations.String())
}

// integrationOf returns the key of the integration with the n-th receiver, counted from 1.
func integrationOf(n int) string {
	if n <= models.MaxWebhooks {
		return "erp"
	}
	return fmt.Sprintf("erp%d", (n-1)/models.MaxWebhooks+1)
}

// webhookID returns the id of the n-th receiver's address, counted from 1.
func (o *organization) webhookID(n int) string {
	return o.imported.Integrations[integrationOf(n)].Webhooks[fmt.Sprintf("hook%d", n)].ID
}
