package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// A backup of Postgres suffices: restored into another cluster, with an empty
// Temporal, pending deliveries are sent, and sync tokens issued before are rejected.
func TestABackupOfPostgresIsEnough(t *testing.T) {
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "5s,5s,5s,5s,5s,5s,5s", "WEBHOOK_LINGER": "1s"}, r)
	worker, api := h.startWorker(), h.startAPI(nil)
	i := h.integrator()
	delivered := i.create("Delivered before the backup")
	awaitDelivery(t, r, delivered)
	r.respondWith(always(http.StatusInternalServerError))
	retrying := i.create("Failed before the backup")
	eventually(t, startLimit, "its delivery is retried", func() bool {
		return h.count(`SELECT count(*) FROM all_deliveries WHERE status = 'retrying'`) == 1
	})
	eventually(t, startLimit, "no record is dirty", func() bool {
		return h.count(`SELECT count(*) FROM looks_owed`) == 0
	})
	worker.terminate()
	worker.wait(startLimit)
	pending := []string{i.create("Pending at the backup"), i.create("Pending at the backup, too")}
	token := h.syncToken(i)
	key := "before-the-backup"
	first, err := i.post("Created once", key)
	if err != nil || first.status != http.StatusCreated {
		t.Fatalf("create: status %d, %v", first.status, err)
	}
	pending = append(pending, idOf(t, first.body))
	api.terminate()
	api.wait(startLimit)

	restored := h.restoredElsewhere()
	if sentence := wantStartError(t, restored.settings, "api", "`millwright migrate`"); !strings.Contains(sentence, "restored from another cluster") {
		t.Errorf("before migrate the api fails with %q", sentence)
	}
	restored.run("migrate")
	if said := restored.run("restored", "temporal"); !strings.Contains(said, ": 5\n") {
		t.Errorf("restored temporal printed %q, want 5 open records", said)
	}
	r.respondWith(accept)
	restored.startWorker()
	restored.startAPI(nil)
	for _, id := range append(pending, retrying) {
		awaitDelivery(t, r, id)
	}
	restored.awaitAllDelivered()
	if n := r.missing(append(pending, delivered, retrying)); n != 0 || r.duplicates() != 0 {
		t.Errorf("%d are missing, %d came twice", n, r.duplicates())
	}

	j := restored.integrator()
	again, err := j.post("Created once", key)
	if err != nil || again.status != http.StatusCreated || string(again.body) != string(first.body) {
		t.Errorf("the same create: status %d %s, %v", again.status, again.body, err)
	}
	if response, err := j.call(http.MethodGet, "/work-orders?changed_since="+url.QueryEscape(token), "", nil); err != nil || response.status != http.StatusGone {
		t.Errorf("the sync token of before: status %d, %v", response.status, err)
	}
	if after := restored.syncToken(j); after == token {
		t.Error("the new sync token is the old one")
	}
	for _, id := range append(pending, delivered, retrying) {
		restored.awaitWorkflow("work-order/"+id, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	}
}

// syncToken reads all changes and returns the sync token at their end.
func (h *harness) syncToken(i *integrator) string {
	h.t.Helper()
	response := i.get("/work-orders?limit=200&changed_since=2020-01-01T00:00:00Z")
	var page struct {
		SyncToken string `json:"sync_token"`
		HasMore   bool   `json:"has_more"`
	}
	if err := json.Unmarshal(response.body, &page); err != nil {
		h.t.Fatal(err)
	}
	if page.SyncToken == "" || page.HasMore {
		h.t.Fatalf("the changes: status %d %s", response.status, response.body)
	}
	return page.SyncToken
}

// restoredElsewhere dumps the database and restores it into another cluster, with an
// empty Temporal namespace.
func (h *harness) restoredElsewhere() *harness {
	h.t.Helper()
	there := h.anotherCluster()
	dump := filepath.Join(h.t.TempDir(), "backup")
	h.postgresProgram("pg_dump", "--format=custom", "--file="+dump, "--dbname="+h.settings["DATABASE_URL"])
	h.postgresProgram("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+there, dump)
	address, _ := freePort(h.t)
	restored := &harness{t: h.t, org: h.org, key: h.key, settings: settings{}}
	maps.Copy(restored.settings, h.settings)
	restored.settings["DATABASE_URL"] = there
	restored.settings["TEMPORAL_NAMESPACE"] += "-restored"
	restored.settings["MILLWRIGHT_ADDR"] = address
	restored.settings["MILLWRIGHT_PUBLIC_URL"] = "http://" + address
	restored.temporal = newNamespace(h.t, restored.settings["TEMPORAL_ADDRESS"], restored.settings["TEMPORAL_NAMESPACE"])
	if n := restored.workflowCount(); n != 0 {
		h.t.Fatalf("the new namespace has %d workflows", n)
	}
	pool, err := pgxpool.New(h.t.Context(), there)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	restored.db = pool
	return restored
}

func (h *harness) workflowCount() int64 {
	h.t.Helper()
	response, err := h.temporal.CountWorkflow(h.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	return response.GetCount()
}

// anotherCluster starts a second Postgres cluster and returns the URL of its empty
// database.
func (h *harness) anotherCluster() string {
	h.t.Helper()
	p := &process{t: h.t, name: "another cluster", ended: make(chan struct{})}
	// devstack ends, and stops the cluster, when its input is closed.
	p.cmd = exec.Command(os.Getenv("DEVSTACK"), "exec", "--no-temporal", "--", "sh", "-c", `echo "$DATABASE_URL"; cat`)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	input, err := p.cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the result does not matter
		close(p.ended)
	}()
	h.t.Cleanup(func() {
		input.Close()
		p.wait(startLimit)
	})
	p.awaitReady(startLimit, func() bool { return p.out.has("\n") })
	return strings.TrimSpace(p.out.String())
}

// postgresProgram runs one of Postgres's programs to its end.
func (h *harness) postgresProgram(name string, args ...string) {
	h.t.Helper()
	path := filepath.Join(os.Getenv("POSTGRES_BIN"), name)
	if output, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", name, err, output)
	}
}
