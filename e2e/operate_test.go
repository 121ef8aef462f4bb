package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
)

// The fields of a webhook, a delivery and an attempt that programs may rely on
// (docs/commands.md).
var (
	webhookFields  = []string{"enabled", "events", "id", "integration_id", "off_at", "off_reason", "url"}
	healthFields   = []string{"failing_since", "last_at", "last_error", "last_status", "last_success_at", "held_reason", "waits_until"}
	deliveryFields = []string{
		"attempts", "created_at", "event_id", "event_type", "id", "last_error", "last_status", "next_attempt_at", "status", "webhook_id",
	}
	attemptFields = []string{"error", "latency_ms", "number", "remote_ip", "response_body", "response_body_base64", "started_at", "status"}
)

type object = map[string]any

// operate runs an operator's command and returns its standard output, its standard
// error and its exit status.
func (h *harness) operate(args ...string) (printed, message string, status int) {
	h.t.Helper()
	p := start(h.t, "millwright "+strings.Join(args, " "), h.settings.environ(), millwright, args...)
	status = p.wait(startLimit)
	for _, secret := range []string{h.key, h.org.clientSecret} {
		if p.log.has(secret) || p.out.has(secret) {
			h.t.Errorf("%v prints a secret", args)
		}
	}
	return p.out.String(), p.log.String(), status
}

// runJSON runs a command with --json, which must succeed, and decodes its output.
func runJSON[T any](h *harness, args ...string) (value T) {
	h.t.Helper()
	printed, message, status := h.operate(append(args, "--json")...)
	if status != 0 {
		h.t.Fatalf("millwright %v ended with status %d: %s", args, status, message)
	}
	if err := json.Unmarshal([]byte(printed), &value); err != nil {
		h.t.Fatalf("millwright %v printed %s: %v", args, printed, err)
	}
	return value
}

// wantError runs a command that must fail with a sentence that contains the words, after its usage
// if that explains the error.
func (h *harness) wantError(words string, args ...string) {
	h.t.Helper()
	printed, message, status := h.operate(args...)
	usage, sentence, found := strings.Cut(message, "millwright: ")
	if !found || usage != "" && !strings.HasPrefix(usage, "Usage:\n") ||
		status != 1 || printed != "" || !strings.Contains(sentence, words) || strings.Contains(sentence, "SQLSTATE") {
		h.t.Errorf("millwright %v ended with status %d and printed %q; want 1 and an error that contains %q", args, status, message, words)
	}
}

func wantFields(t *testing.T, what string, has object, want []string, more ...string) {
	t.Helper()
	all := slices.Sorted(slices.Values(slices.Concat(want, more)))
	if got := slices.Sorted(maps.Keys(has)); !slices.Equal(got, all) {
		t.Errorf("%s has the fields %v, want %v", what, got, all)
	}
}

// statuses returns the statuses of the deliveries, newest first.
func statuses(list []object) (all []string) {
	for _, d := range list {
		all = append(all, d["status"].(string))
	}
	return all
}

func TestAnOperatorRecoversAReceiverThatWasDown(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	// A delivery fails finally after two attempts, which turns its address off.
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "100ms", "WEBHOOK_SHUTOFF_AFTER": "1ms"}, r)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	address := h.org.webhookID(1)

	r.respondWith(always(http.StatusServiceUnavailable))
	ids := []string{i.create("While it is down")}
	var list []object
	eventually(t, deliveryLimit, "the address is turned off", func() bool {
		list = runJSON[[]object](h, "webhooks", "list")
		return len(list) == 1 && list[0]["enabled"] == false
	})
	wantFields(t, "a webhook", list[0], webhookFields, healthFields...)
	if list[0]["id"] != address || list[0]["integration_id"] != h.org.imported.IDs["erp"] || list[0]["url"] != r.url() ||
		!strings.Contains(list[0]["off_reason"].(string), "failed for good") || list[0]["off_at"] == nil {
		t.Errorf("the address is listed as %v", list[0])
	}
	ids = append(ids, i.create("While it is off"), i.create("While it is off, too"))
	deliveries := runJSON[[]object](h, "deliveries", "list", "--address", address)
	if got := statuses(deliveries); !slices.Equal(got, []string{"held", "held", "failed"}) {
		t.Fatalf("its deliveries are %v", got)
	}
	wantFields(t, "a delivery", deliveries[0], deliveryFields)
	failed := runJSON[[]object](h, "deliveries", "list", "--status", "failed", "--limit", "1")
	if len(failed) != 1 || failed[0]["id"] != deliveries[2]["id"] || failed[0]["last_status"] != 503.0 || failed[0]["attempts"] != 2.0 {
		t.Errorf("failed are %v", failed)
	}
	first := failed[0]["id"].(string)

	h.wantError("turn it on first", "deliveries", "redeliver", first)
	h.wantError("turn it on first", "deliveries", "redeliver", "--address", address, "--since", "1h")
	h.sendTest(address, "The receiver answered 503.", 503)
	r.respondWith(accept)
	h.sendTest(address, "", 204)
	if got := r.got(); len(got) != 1 || got[0].event.Type != "ping" || string(got[0].event.Data) != `{"message":"This is a test from Millwright."}` {
		t.Errorf("the receiver got %v, want one ping", got)
	}
	if n := h.count(`SELECT count(*) FROM events WHERE type = 'ping'`) + h.count(`SELECT count(*) FROM webhooks WHERE enabled`); n != 0 {
		t.Error("a test was stored, or turned the address on")
	}

	on := runJSON[object](h, "webhooks", "enable", address, "--since", "1h")
	wantFields(t, "what enable prints", on, webhookFields, "released", "expired")
	if on["enabled"] != true || on["off_reason"] != nil || on["off_at"] != nil || on["released"] != 3.0 {
		t.Errorf("enable printed %v", on)
	}
	ids = append(ids, i.create("After it is on again"))
	eventually(t, deliveryLimit, "everything arrives", func() bool { return r.missing(ids) == 0 })
	var order []string
	for _, d := range r.got()[1:] {
		order = append(order, d.recordID)
	}
	if slices.Sort(order); !slices.Equal(order, slices.Sorted(slices.Values(ids))) {
		t.Errorf("%v arrived, want %v once each", order, ids)
	}
	h.awaitAttempts(first, "delivered", 503, 503, 204)
	h.awaitAllDelivered()

	shown := runJSON[object](h, "deliveries", "show", first)
	wantFields(t, "a delivery in detail", shown, deliveryFields, "attempts_made")
	made := shown["attempts_made"].([]any)
	if shown["status"] != "delivered" || shown["attempts"] != 3.0 || len(made) != 3 {
		t.Fatalf("shown is %v", shown)
	}
	attempt := made[0].(object)
	wantFields(t, "an attempt", attempt, attemptFields)
	if attempt["status"] != 503.0 || attempt["remote_ip"] != "127.0.0.1" || !strings.Contains(attempt["response_body"].(string), `"type":"work_order.created"`) {
		t.Errorf("the first attempt is %v", attempt)
	}

	// Redelivers a delivery that has arrived; after that nothing is left that failed.
	again := runJSON[object](h, "deliveries", "redeliver", first)
	wantFields(t, "what redeliver prints", again, deliveryFields)
	if again["id"] != first || again["status"] != "pending" {
		t.Errorf("redeliver printed %v", again)
	}
	h.awaitAttempts(first, "delivered", 503, 503, 204, 204)
	if n := r.duplicates(); n != 1 {
		t.Errorf("%d duplicates, want the redelivered one", n)
	}
	none := runJSON[object](h, "deliveries", "redeliver", "--address", address, "--since", "1h")
	if none["webhook_id"] != address || none["released"] != 0.0 || none["expired"] != 0.0 || len(none) != 3 {
		t.Errorf("redeliver --since printed %v", none)
	}
}

// sendTest sends a ping with `millwright webhooks test` and checks the result;
// failure is the error it must print, "" for a success.
func (h *harness) sendTest(address, failure string, status int) {
	h.t.Helper()
	printed, message, exit := h.operate("webhooks", "test", address, "--json")
	var result object
	if err := json.Unmarshal([]byte(printed), &result); err != nil {
		h.t.Fatalf("webhooks test printed %s: %v", printed, err)
	}
	if result["status"] != float64(status) || result["webhook_id"] != address || result["remote_ip"] != "127.0.0.1" || result["error"] != nil {
		h.t.Errorf("webhooks test printed %v", result)
	}
	if failure == "" && exit != 0 || failure != "" && (exit != 1 || message != "millwright: "+failure+"\n") {
		h.t.Errorf("webhooks test ended with status %d and printed %q, want %q", exit, message, failure)
	}
}

func TestOperatorsManageAddresses(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	erp := h.org.imported.IDs["erp"]
	for _, list := range []string{"webhooks", "deliveries"} {
		if printed, _, _ := h.operate(list, "list", "--json"); printed != "[]\n" {
			t.Errorf("an empty list of %s is printed as %q", list, printed)
		}
	}

	// The receiver gets its secret from the command, before it is started.
	r := &receiver{t: t, path: "/hook", respond: accept}
	r.server = httptest.NewUnstartedServer(r)
	t.Cleanup(r.server.Close)
	url := "http://" + r.server.Listener.Addr().String() + r.path
	made := runJSON[object](h, "webhooks", "create", "--integration", erp, "--url", url,
		"--event", "work_order.created", "--event", "issue.created,ping", "--as", strings.ToUpper(managerEmail))
	wantFields(t, "a new webhook", made, webhookFields, "secret")
	address := made["id"].(string)
	r.useSecret(made["secret"].(string))
	r.server.Start()
	first := i.create("Replace filter")
	awaitDelivery(t, r, first)

	// The receiver knows the previous secret, which is valid besides the new one.
	renewed := runJSON[object](h, "webhooks", "renew-secret", address)
	wantFields(t, "a renewed webhook", renewed, webhookFields, "secret")
	h.sendTest(address, "", 204)
	triggered := runJSON[object](h, "trigger", "work_order.completed", "--address", address)
	wantFields(t, "what trigger prints", triggered, attemptFields, "webhook_id", "event_id")
	if got := r.got(); len(got) != 3 || got[2].event.Type != "work_order.completed" || got[2].event.ID != triggered["event_id"] {
		t.Errorf("the receiver got %v, want the triggered event %v last", got, triggered)
	}
	// For people, the beginning of the response is shown; a receiver that rejects ends the command with an error.
	for status, want := range map[int]string{http.StatusOK: "", http.StatusTeapot: "millwright: The receiver answered 418.\n"} {
		r.respondWith(always(status)) // with the body it was sent
		printed, message, exit := h.operate("trigger", "ping", "--address", address)
		if message != want || (exit == 0) != (want == "") || !strings.Contains(printed, `"type":"ping"`) {
			t.Errorf("a test that gets %d ended with status %d and printed %q: %s", status, exit, printed, message)
		}
	}
	r.respondWith(accept)
	changed := runJSON[object](h, "webhooks", "change", address, "--event", "work_order.created")
	wantFields(t, "a changed webhook", changed, webhookFields)
	if events := changed["events"].([]any); len(events) != 1 || changed["url"] != url {
		t.Errorf("changed is %v", changed)
	}
	h.wantError("control characters", "webhooks", "disable", address, "--reason", "The receiver\x1b[2Jmoves.")
	off := runJSON[object](h, "webhooks", "disable", address, "--reason", "The receiver moves.")
	if off["enabled"] != false || off["off_reason"] != "The receiver moves." {
		t.Errorf("disable printed %v", off)
	}
	i.create("While it is off")
	for _, args := range [][]string{
		{"webhooks", "list", "--integration", erp},
		{"deliveries", "list", "--status", "held,delivered"},
		{"deliveries", "show", h.deliveryAt(address, first)},
	} {
		printed, message, status := h.operate(args...)
		if status != 0 || !strings.Contains(printed, address) || strings.Contains(printed, "whsec_") {
			t.Errorf("%v ended with status %d and printed\n%s%s", args, status, printed, message)
		}
	}
	// Without --since, held deliveries stay held until they are redelivered.
	if on := runJSON[object](h, "webhooks", "enable", address); on["released"] != 0.0 {
		t.Errorf("enable printed %v", on)
	}
	since := "2020-01-01T00:00:00Z"
	if sent := runJSON[object](h, "deliveries", "redeliver", "--address", address, "--since", since); sent["released"] != 1.0 {
		t.Errorf("redeliver printed %v", sent)
	}
	h.awaitAllDelivered()

	const nothing = "_00000000000000000000000000"
	recent := models.FirstID(models.PrefixDelivery, time.Now())
	for _, rejected := range []struct {
		words string
		args  []string
	}{
		{"there is no integration idn" + nothing, []string{"webhooks", "list", "--integration", "idn" + nothing}},
		{"there is no integration idn" + nothing, []string{"webhooks", "create", "--integration", "idn" + nothing, "--url", url, "--event", "ping"}},
		{"there is no webhook address whk" + nothing, []string{"webhooks", "enable", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"webhooks", "disable", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"webhooks", "renew-secret", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"webhooks", "delete", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"webhooks", "test", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"trigger", "ping", "--address", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"deliveries", "list", "--address", "whk" + nothing}},
		{"there is no webhook address whk" + nothing, []string{"deliveries", "redeliver", "--address", "whk" + nothing, "--since", "1h"}},
		{"there is no delivery dlv" + nothing, []string{"deliveries", "show", "dlv" + nothing}},
		{"older than 30 days", []string{"deliveries", "redeliver", "dlv" + nothing}},
		{"there is no delivery " + recent, []string{"deliveries", "redeliver", recent}},
		{"there is no person", []string{"webhooks", "disable", address, "--as", "stranger@acme.example.com"}},
		{"--as: there is no person", []string{"trigger", "ping", "--address", address, "--as", "stranger@acme.example.com"}},
		{"169.254.169.254", []string{"webhooks", "change", address, "--url", "https://169.254.169.254/"}},
		{`"yesterday" is neither`, []string{"webhooks", "enable", address, "--since", "yesterday"}},
		{"--address ID --since TIME", []string{"deliveries", "redeliver"}},
		{"--address ID --since TIME", []string{"deliveries", "redeliver", "--address", address}},
	} {
		h.wantError(rejected.words, rejected.args...)
	}

	gone := runJSON[object](h, "webhooks", "delete", address)
	if gone["id"] != address || gone["deleted"] != true || h.count(`SELECT count(*) FROM webhooks`) != 0 {
		t.Errorf("delete printed %v", gone)
	}
	h.wantError("there is no webhook address "+address, "deliveries", "list", "--address", address)
}
