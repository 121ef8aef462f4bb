package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
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
	eventually(t, deliveryLimit, "the address is turned off", func() bool { return h.count(`SELECT count(*) FROM webhooks WHERE NOT enabled`) == 1 })
	list := runJSON[[]object](h, "webhooks", "list")
	if len(list) != 1 || list[0]["enabled"] != false || list[0]["id"] != address || list[0]["integration_id"] != h.org.imported.IDs["erp"] || list[0]["url"] != r.url() ||
		!strings.Contains(list[0]["off_reason"].(string), "failed for good") || list[0]["off_at"] == nil {
		t.Errorf("the address is listed as %v", list[0])
	}
	ids = append(ids, i.create("While it is off"), i.create("While it is off, too"))
	deliveries := runJSON[[]object](h, "deliveries", "list", "--address", address)
	if got := statuses(deliveries); !slices.Equal(got, []string{"held", "held", "failed"}) {
		t.Fatalf("its deliveries are %v", got)
	}
	first := deliveries[2]["id"].(string)

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

	attempt := runJSON[object](h, "deliveries", "show", first)["attempts_made"].([]any)[0].(object)
	if attempt["status"] != 503.0 || attempt["remote_ip"] != "127.0.0.1" || !strings.Contains(attempt["response_body"].(string), `"type":"work_order.created"`) {
		t.Errorf("the first attempt is %v", attempt)
	}

	// A delivery that has arrived is sent again, too.
	again := runJSON[object](h, "deliveries", "redeliver", first)
	if again["id"] != first || again["status"] != "pending" {
		t.Errorf("redeliver printed %v", again)
	}
	h.awaitAttempts(first, "delivered", 503, 503, 204, 204)
	if n := r.duplicates(); n != 1 {
		t.Errorf("%d duplicates, want the redelivered one", n)
	}

	const members = "error event_id latency_ms number remote_ip response_body response_body_base64 started_at status webhook_id"
	triggered := runJSON[object](h, "trigger", "work_order.completed", "--address", address)
	if got := strings.Join(slices.Sorted(maps.Keys(triggered)), " "); got != members {
		t.Errorf("trigger printed the members %s, want %s", got, members)
	}
	got := r.got()
	if last := got[len(got)-1].event; last.Type != "work_order.completed" || last.ID != triggered["event_id"] {
		t.Errorf("the receiver got %v last, want the triggered event %v", last, triggered)
	}
	// For people, the beginning of the response is shown; a receiver that rejects ends the command with an error.
	for status, want := range map[int]string{http.StatusOK: "", http.StatusTeapot: "millwright: The receiver answered 418.\n"} {
		r.respondWith(always(status)) // with the body it was sent
		printed, message, exit := h.operate("trigger", "ping", "--address", address)
		if message != want || (exit == 0) != (want == "") || !strings.Contains(printed, `"type":"ping"`) {
			t.Errorf("a test that gets %d ended with status %d and printed %q: %s", status, exit, printed, message)
		}
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
