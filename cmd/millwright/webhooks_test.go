package main

import (
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/webhook"
)

// The members that programs may rely on (docs/commands.md).
const (
	webhookMembers  = "enabled events id integration_id off_at off_reason url"
	deliveryMembers = "attempts created_at event_id event_type id last_error last_status next_attempt_at status webhook_id"
)

// What commands print of an address and its deliveries, and do to them. A response, which others
// wrote, cannot control the terminal.
func TestWebhooksCommands(t *testing.T) {
	t.Setenv("WEBHOOK_ALLOW_HTTP", "true")
	t.Setenv("WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8")
	h := newHarness(t)
	object := func(members, command string) map[string]any {
		t.Helper()
		o := h.json(words(command)...).(map[string]any)
		wantMembers(t, o, members)
		return o
	}
	withSecret := strings.Replace(webhookMembers, "url", "secret url", 1)
	const url = "http://127.0.0.1:9/new"
	made := object(withSecret, "webhooks create --integration "+h.ID("erp")+" --url "+url+" --event work_order.created --event issue.created,ping --as ANN@acme.example.com")
	if made["url"] != url || made["integration_id"] != h.ID("erp") || made["enabled"] != true || len(made["events"].([]any)) != 3 {
		t.Errorf("created is %v", made)
	}
	address := made["id"].(string)
	renewed := object(withSecret, "webhooks renew-secret "+address)
	for _, secret := range []any{made["secret"], renewed["secret"]} {
		if _, err := webhook.ParseSecret(secret.(string)); err != nil || made["secret"] == renewed["secret"] {
			t.Errorf("the secret %v is followed by %v: %v", made["secret"], renewed["secret"], err)
		}
	}
	if changed := object(webhookMembers, "webhooks change "+address+" --event work_order.created"); changed["url"] != url || len(changed["events"].([]any)) != 1 {
		t.Errorf("changed is %v", changed)
	}
	if off := object(webhookMembers, "webhooks disable "+address+" --reason 'It moves.'"); off["enabled"] != false || off["off_reason"] != "It moves." {
		t.Errorf("disable printed %v", off)
	}

	hook, record := h.ID("erp_hook"), servicetest.Create(t, h.Fixture)
	h.SetDeliveries(models.DeliveryDelivered, `true`)
	h.Exec(`SELECT partitions.make((now() AT TIME ZONE 'UTC')::date - 1, 3)`)
	h.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 503, 1, time.Now().Add(-time.Hour))
	h.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryHeld, 0, 1, time.Now().Add(-time.Minute))
	h.Exec(`UPDATE attempts SET response_body = $1`, []byte("Not now\x1b[2J"))
	list := h.objects("deliveries", "list", "--address", hook, "--status", "held,failed")
	wantMembers(t, list[0], deliveryMembers)
	if len(list) != 2 || list[0]["status"] != "held" || list[1]["status"] != "failed" || list[1]["last_status"] != 503.0 {
		t.Errorf("the deliveries are %v", list)
	}
	failed := list[1]["id"].(string)
	if lines := h.table("deliveries", "list", "--address", hook, "--status", "held,failed", "--limit", "1"); len(lines) != 2 || !strings.Contains(lines[1], list[0]["id"].(string)) {
		t.Errorf("the newest one is printed as %q", lines)
	}
	shown := object(strings.Replace(deliveryMembers, " created_at", " attempts_made created_at", 1), "deliveries show "+failed)
	wantMembers(t, shown["attempts_made"].([]any)[0].(map[string]any), "error latency_ms number remote_ip response_body response_body_base64 started_at status")
	if text := strings.Join(h.table("deliveries", "show", failed), "\n"); !strings.Contains(text, "Not now�[2J") {
		t.Errorf("the response is printed as\n%s", text)
	}
	// Without --since, held deliveries stay held until they are redelivered.
	object(webhookMembers, "webhooks disable "+hook)
	on := object("enabled events expired id integration_id off_at off_reason released url", "webhooks enable "+hook)
	if on["enabled"] != true || on["released"] != 0.0 {
		t.Errorf("enable printed %v", on)
	}
	if again := object(deliveryMembers, "deliveries redeliver "+failed); again["id"] != failed || again["status"] != "pending" {
		t.Errorf("redeliver printed %v", again)
	}
	sent := object("expired released webhook_id", "deliveries redeliver --address "+hook+" --since 2020-01-01T00:00:00Z")
	if sent["released"] != 1.0 || sent["webhook_id"] != hook {
		t.Errorf("redeliver printed %v", sent)
	}
	if gone := object("deleted id", "webhooks delete "+address); gone["id"] != address || gone["deleted"] != true {
		t.Errorf("delete printed %v", gone)
	}
	h.reject(map[string]string{"deliveries list --address " + address: "there is no webhook address " + address})
	h.Exec(`DELETE FROM webhooks`)
	for _, list := range []string{"webhooks", "deliveries"} {
		if out, err := h.run(list, "list", "--json"); err != nil || out != "[]\n" {
			t.Errorf("an empty list of %s is printed as %q, %v", list, out, err)
		}
	}
}

func TestWebhooksCommandsRejectMistakes(t *testing.T) {
	h := newHarness(t)
	const integration, address, delivery = "idn_00000000000000000000000000", "whk_00000000000000000000000000", "dlv_00000000000000000000000000"
	hook, recent := h.ID("erp_hook"), models.FirstID(models.PrefixDelivery, time.Now())
	for _, command := range []string{
		"webhooks enable %", "webhooks disable %", "webhooks renew-secret %", "webhooks delete %", "webhooks test %", "webhooks show %",
		"webhooks change % --event ping", "trigger ping --address %", "deliveries list --address %", "deliveries redeliver --address % --since 1h",
	} {
		h.reject(map[string]string{strings.Replace(command, "%", address, 1): "there is no webhook address " + address})
	}
	h.reject(map[string]string{
		"webhooks list --integration " + integration:                                              "there is no integration " + integration,
		"webhooks create --integration " + integration + " --url https://x.example/ --event ping": "there is no integration " + integration,
		"deliveries show " + delivery:                                                             "there is no delivery " + delivery,
		"deliveries redeliver " + delivery:                                                        "older than 30 days",
		"deliveries redeliver " + recent:                                                          "there is no delivery " + recent,
		"webhooks disable " + hook + " --as stranger@acme.example.com":                            "there is no person",
		"trigger ping --address " + hook + " --as stranger@acme.example.com":                      "--as: there is no person",
		"webhooks change " + hook + " --url https://169.254.169.254/":                             "169.254.169.254",
		"webhooks disable " + hook + " --reason 'It\x1b[2Jmoves.'":                                "control characters",
		"webhooks enable " + hook + " --since yesterday":                                          `"yesterday" is neither`,
	})
}
