package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/enums/v1"
)

// A backup of Postgres suffices: restored into another cluster, with an empty
// Temporal, pending deliveries are sent, and sync tokens issued before are rejected.
func TestABackupOfPostgresIsEnough(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "5s,5s,5s,5s,5s,5s,5s", "WEBHOOK_IDLE_TIMEOUT": "1s"}, r)
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
		return h.count(`SELECT count(*) FROM dirty_records`) == 0
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
		t.Errorf("before migrate the API server fails with %q", sentence)
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
	changes := newSyncState("id")
	if status := changes.follow(i); status != http.StatusOK || changes.token == "" {
		h.t.Fatalf("the changes: status %d, token %q", status, changes.token)
	}
	return changes.token
}

// restoredElsewhere dumps the database and restores it into another cluster, with an
// empty Temporal namespace.
func (h *harness) restoredElsewhere() *harness {
	h.t.Helper()
	there := newPostgres(h.t).url
	dump := filepath.Join(h.t.TempDir(), "backup")
	h.script("backup", h.owner, dump)
	h.script("restore", there, dump)
	address, _ := freePort(h.t)
	restored := &harness{t: h.t, org: h.org, key: h.key, settings: settings{}}
	maps.Copy(restored.settings, h.settings)
	restored.settings["DATABASE_URL"] = there
	restored.settings["TEMPORAL_NAMESPACE"] += "-restored"
	restored.settings["MILLWRIGHT_ADDR"] = address
	restored.settings["MILLWRIGHT_PUBLIC_URL"] = "http://" + address
	restored.temporal = newNamespace(h.t, restored.settings["TEMPORAL_ADDRESS"], restored.settings["TEMPORAL_NAMESPACE"])
	pool, err := pgxpool.New(h.t.Context(), there)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	restored.db = pool
	return restored
}

// script runs one of the scripts of deploy/ for the database to its end.
func (h *harness) script(name, database, file string) {
	h.t.Helper()
	output, err := scriptCommand(h.t, name, database, os.Getenv("POSTGRES_BIN"), file).CombinedOutput()
	if err != nil || strings.Contains(string(output), "WARNING") || strings.Contains(string(output), "not recorded") {
		h.t.Fatalf("deploy/%s: %v\n%s", name, err, output)
	}
}

// scriptCommand is the script of deploy/ with only what it needs in its environment.
func scriptCommand(t testing.TB, name, database, programs, file string) *exec.Cmd {
	t.Helper()
	c := exec.Command("../deploy/"+name, file)
	c.Env = []string{"DATABASE_URL=" + database, "POSTGRES_BIN=" + programs, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	return c
}

// The scripts keep the password out of the list of processes, dump nothing over a file, and
// restore nothing into a database that is in use.
func TestScriptsOfBackups(t *testing.T) {
	t.Parallel()
	programs, dir := t.TempDir(), t.TempDir()
	seen := filepath.Join(dir, "seen")
	stub := "#!/bin/sh\necho \"$(basename \"$0\") $*\" >>'" + seen + "'\n[ ! -e '" + seen + ".service' ] && cp \"$PGSERVICEFILE\" '" + seen + ".service'\n" +
		"for a; do case $a in --file=*) echo dump >\"${a#--file=}\" ;; esac; done\n"
	for name, prints := range map[string]string{"pg_dump": "", "pg_restore": "", "psql": "echo 0\n"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(stub+prints), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const database = "postgres://mill%40wright:p%25ss%20w%3Drd@[::1]:5433,db2/mill%2Fwright?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&pool_max_conns=4"
	dump := filepath.Join(dir, "dump")
	for _, name := range []string{"backup", "restore"} {
		if output, err := scriptCommand(t, name, database, programs, dump).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
	}
	want := "[database]\nuser=mill@wright\npassword=p%ss w=rd\ndbname=mill/wright\nhost=::1,db2\nport=5433,5432\nsslmode=verify-full\nsslrootcert=/etc/ca.pem\n"
	if got := readText(t, seen+".service"); got != want {
		t.Errorf("the service file is %q, want %q", got, want)
	}
	if got := readText(t, seen); strings.Contains(got, "p%") || strings.Contains(got, "wright") || strings.Count(got, "service=database") != 5 {
		t.Errorf("the programs were called as\n%s", got)
	}
	if info, err := os.Stat(dump); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the dump: %v, %v; want it readable by its owner alone", info, err)
	}
	if output, err := scriptCommand(t, "backup", database, programs, dump).CombinedOutput(); err == nil || !strings.Contains(string(output), "exists already") {
		t.Errorf("a backup over a file: %v\n%s", err, output)
	}
	// Ten old dumps and that one: of the old ones seven stay with it.
	for i := range 10 {
		old := filepath.Join(dir, fmt.Sprintf("%d day s.dump", i))
		if err := errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Time{}, time.Now().AddDate(0, 0, -15-i))); err != nil {
			t.Fatal(err)
		}
	}
	pruning := scriptCommand(t, "backup", database, programs, filepath.Join(dir, "new.dump"))
	pruning.Env = append(pruning.Env, "KEEP_DAYS=14")
	if output, err := pruning.CombinedOutput(); err != nil {
		t.Fatalf("backup: %v\n%s", err, output)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "*.dump")); err != nil || len(kept) != 8 || !slices.Contains(kept, filepath.Join(dir, "6 day s.dump")) {
		t.Errorf("the dumps are %v (%v)", kept, err)
	}
	if err := os.WriteFile(filepath.Join(programs, "psql"), []byte("#!/bin/sh\necho 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if output, err := scriptCommand(t, "restore", database, programs, dump).CombinedOutput(); err == nil || !strings.Contains(string(output), "has 3 tables already") {
		t.Errorf("a restore into a used database: %v\n%s", err, output)
	}
	if output, err := scriptCommand(t, "restore", "host=localhost", programs, dump).CombinedOutput(); err == nil || !strings.Contains(string(output), "not a URL") {
		t.Errorf("without a URL: %v\n%s", err, output)
	}
}
