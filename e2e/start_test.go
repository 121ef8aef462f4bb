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

// Malformed settings are in TestTheFormOfAMalformedSettingIsSaid and TestSecretsAreInNoStartError.
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

	for _, name := range []string{"MILLWRIGHT_ADDR", "METRICS_ADDR"} {
		t.Run("a port that is taken: "+name, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(good)
			all[name] = taken.Addr().String()
			wantStartError(t, all, "api", name)
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
