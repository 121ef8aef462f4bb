package e2e

import (
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/service/servicetest"
)

// completeSettings returns settings with which the API server and the worker would start.
func completeSettings(t testing.TB) settings {
	address, _ := freePort(t)
	return settings{
		"DATABASE_URL":        servicetest.EmptyDatabase(t),
		"TEMPORAL_ADDRESS":    "127.0.0.1:1",
		"TOKEN_SIGNING_KEYS":  "t1:" + newKey(),
		"SECRET_SEALING_KEYS": "s1:" + newKey(),
		"MILLWRIGHT_ADDR":     address,
	}
}

// Malformed settings of the simple kinds are in TestTheFormOfAMalformedSettingIsSaid.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	good := completeSettings(t)
	migrate := start(t, "millwright migrate", good.environ(), millwright, "migrate")
	if status := migrate.wait(startLimit); status != 0 {
		t.Fatalf("migrate: %s", migrate.log.String())
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })

	cases := []struct {
		name string
		// change overrides the complete settings.
		change settings
		// names is what the error must contain.
		names string
	}{
		{"a database URL that is a password", settings{"DATABASE_URL": "hunter2"}, "DATABASE_URL"},
		{"a database URL with a malformed host", settings{"DATABASE_URL": "postgres://mill:hunter2@[::1/db"}, "DATABASE_URL"},
		{"a database URL with a malformed port", settings{"DATABASE_URL": "postgres://u:hunter2@h:port/db"}, "DATABASE_URL"},
		{"a database URL with a malformed password", settings{"DATABASE_URL": "postgres://u:hunter2%zz@h/db"}, "DATABASE_URL"},
		{"database settings without the end of a quote", settings{"DATABASE_URL": "host=h password='hunter2"}, "DATABASE_URL"},
		{"a signing key without a name", settings{"TOKEN_SIGNING_KEYS": "hunter2"}, "TOKEN_SIGNING_KEYS"},
		{"a malformed signing key", settings{"TOKEN_SIGNING_KEYS": "t1:hunter2"}, "TOKEN_SIGNING_KEYS"},
		{"a sealing key that is too short", settings{"SECRET_SEALING_KEYS": "s1:aHVudGVyMg=="}, "SECRET_SEALING_KEYS"},
		{"an address without a port", settings{"MILLWRIGHT_ADDR": "localhost"}, "MILLWRIGHT_ADDR"},
		{"a port that is taken", settings{"MILLWRIGHT_ADDR": taken.Addr().String()}, "MILLWRIGHT_ADDR"},
		{"a metrics address without a port", settings{"METRICS_ADDR": "localhost"}, "METRICS_ADDR"},
		{"a metrics port that is taken", settings{"METRICS_ADDR": taken.Addr().String()}, "METRICS_ADDR"},
		{"a public URL with a path", settings{"MILLWRIGHT_PUBLIC_URL": "https://api.example.com/v1"}, "MILLWRIGHT_PUBLIC_URL"},
		{"a public URL without a scheme", settings{"MILLWRIGHT_PUBLIC_URL": "//api.example.com"}, "MILLWRIGHT_PUBLIC_URL"},
		{"a malformed Temporal address", settings{"TEMPORAL_ADDRESS": "no such thing"}, "TEMPORAL_ADDRESS"},
		{"a schedule without a wait", settings{"WEBHOOK_RETRY_SCHEDULE": "1m,0s"}, "WEBHOOK_RETRY_SCHEDULE"},
		{"a negative timeout", settings{"WEBHOOK_RESPONSE_TIMEOUT": "-1s"}, "WEBHOOK_RESPONSE_TIMEOUT"},
		{"a single record task", settings{"WORKER_RECORD_TASKS": "1"}, "WORKER_RECORD_TASKS"},
		{"a single poller", settings{"WORKER_POLLERS": "1"}, "WORKER_POLLERS"},
		{"a timeout above the longest", settings{"WEBHOOK_RESPONSE_TIMEOUT": "31s"}, "WEBHOOK_RESPONSE_TIMEOUT"},
		{"a negative shut-off period", settings{"WEBHOOK_SHUTOFF_AFTER": "-72h"}, "WEBHOOK_SHUTOFF_AFTER"},
		{"a negative idle timeout", settings{"WEBHOOK_IDLE_TIMEOUT": "-1s"}, "WEBHOOK_IDLE_TIMEOUT"},
		{"a sweep without an interval", settings{"SWEEP_INTERVAL": "0s"}, "SWEEP_INTERVAL"},
		{"a negative call limit", settings{"ADDRESS_CALLS_PER_MINUTE": "-1"}, "ADDRESS_CALLS_PER_MINUTE"},
		{"a cell with more than letters and digits", settings{"CELL": "eu_1"}, "CELL"},
		{"a malformed network", settings{"WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/33"}, "WEBHOOK_ALLOW_NETWORKS"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(good)
			maps.Copy(all, c.change)
			wantStartError(t, all, "api", c.names)
		})
	}

	for _, server := range []string{"hunter2", "smtp://u:hunter2@h:port", "smtp://u:hunter2%zz@h"} {
		t.Run("the mail server "+server, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(good)
			all["SMTP_URL"], all["MAIL_FROM"] = server, "Millwright <no-reply@millwright.example.com>"
			wantStartError(t, all, "worker", "SMTP_URL")
		})
	}
	for says, url := range map[string]string{
		"the database of DATABASE_URL cannot be reached": "postgres://u:hunter2@127.0.0.1:1/db",
		"DATABASE_URL names a file that cannot be read":  "postgres://u:hunter2@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/nothing.crt",
	} {
		t.Run("a migration: "+says, func(t *testing.T) {
			t.Parallel()
			wantStartError(t, settings{"DATABASE_URL": url}, "migrate", says)
		})
	}
	empty := maps.Clone(good)
	empty["DATABASE_URL"] = servicetest.EmptyDatabase(t)
	for _, command := range []string{"api", "worker"} {
		t.Run("an empty database for the "+command, func(t *testing.T) {
			t.Parallel()
			wantStartError(t, empty, command, "`millwright migrate`")
		})
	}
	t.Run("no setting at all for the worker", func(t *testing.T) {
		t.Parallel()
		sentence := wantStartError(t, nil, "worker", "DATABASE_URL")
		for _, name := range []string{"TOKEN_SIGNING_KEYS", "SECRET_SEALING_KEYS"} {
			if !strings.Contains(sentence, name) {
				t.Errorf("the error does not name everything that is missing: %s", sentence)
			}
		}
	})
}

// wantStartError starts the command, expects it to fail with one sentence that
// contains names, and returns the sentence.
func wantStartError(t *testing.T, all settings, command, names string) string {
	t.Helper()
	p := start(t, "millwright "+command, all.environ(), millwright, command)
	if status := p.wait(startLimit); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	sentence := p.log.String()
	if !strings.HasPrefix(sentence, "millwright: ") || !strings.Contains(sentence, names) {
		t.Errorf("want an error that names %s:\n%s", names, sentence)
	}
	for _, noise := range []string{"hunter2", "aHVudGVyMg", "goroutine", ".go:"} {
		if strings.Contains(sentence, noise) {
			t.Errorf("the error contains %q:\n%s", noise, sentence)
		}
	}
	return sentence
}

func TestGracefulStop(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	// The address's dispatcher is still waiting for more when the worker is stopped.
	h := newHarness(t, settings{"WEBHOOK_IDLE_TIMEOUT": "1h"}, r)
	worker := h.startWorker()
	api := h.startAPI(nil)
	i := h.integrator()
	awaitDelivery(t, r, i.create("Replace filter"))

	// A create that waits for a lock is a slow request.
	lock, err := h.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `LOCK TABLE work_orders IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	type result struct {
		apiResponse
		err error
	}
	done := make(chan result, 1)
	go func() {
		response, err := i.post("A slow one", "")
		done <- result{response, err}
	}()
	eventually(t, startLimit, "the create waits for the lock", func() bool {
		return h.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'work_orders'::regclass`) > 0
	})
	api.terminate()
	eventually(t, startLimit, "the API server accepts no new connections", func() bool {
		conn, err := net.Dial("tcp", h.settings["MILLWRIGHT_ADDR"])
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	response := <-done
	if response.err != nil || response.status != http.StatusCreated {
		t.Fatalf("the slow request: status %d, error %v", response.status, response.err)
	}
	if status := api.wait(startLimit); status != 0 {
		t.Errorf("the API server ended with status %d", status)
	}
	awaitDelivery(t, r, idOf(t, response.body))

	stopped := time.Now()
	worker.terminate()
	if status := worker.wait(startLimit); status != 0 {
		t.Errorf("the worker ended with status %d", status)
	}
	t.Logf("the worker ended %s after SIGTERM, with an idle dispatcher", time.Since(stopped))
	if n := h.count(`SELECT count(*) FROM webhook_leases`); n != 0 {
		t.Errorf("the worker left %d leases", n)
	}
}
