package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Every command with --as that writes is recorded as "NAME (operator)". The commands that only
// read are listed here too, so that a new one is in one of the lists.
func TestCommandsAsAPersonAreRecordedAsAnOperators(t *testing.T) {
	reading := []string{"issues list", "issues show", "log list", "notices list", "work-orders list", "work-orders show"}
	t.Setenv("WEBHOOK_ALLOW_HTTP", "true")
	t.Setenv("WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8")
	h := newHarness(t)
	// Commands have the real time, by which the event must not be too old to be sent again.
	h.Clock.Advance(time.Since(h.Clock.Now()))
	if err := h.Store.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	ann, cat, reader, hook := h.ID("ann"), h.ID("cat"), h.ID("reader"), h.ID("erp_hook")
	servicetest.Create(t, h.Fixture)
	delivery := servicetest.Claim(t, h.Fixture, "erp_hook").Deliveries[0]
	servicetest.Record(t, h.Fixture, "erp_hook", servicetest.Attempt(h.Fixture, delivery, 500))
	opened, err := h.Records.CreateFeedback(t.Context(), h.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
	if err != nil {
		t.Fatal(err)
	}
	order, issue := h.inReview(), opened.RecordID
	// Tests need a worker process, but are recorded before they are sent.
	unsent := []string{"webhooks test", "trigger"}
	var written []string
	for _, step := range []struct {
		command, rest, as, action string
	}{
		{"work-orders review", order + " --send-back --comment Loose", cat, "work_order.sent_back"}, {"work-orders hold", order, ann, "work_order.held"},
		{"work-orders resume", order, ann, "work_order.resumed"}, {"issues resolve", issue, ann, "issue.resolved"},
		{"integrations create", "--name Warehouse --organization acme --scope people:read", ann, "integration.created"},
		{"integrations turn-off", reader, ann, "integration.turned_off"}, {"integrations turn-on", reader, ann, "integration.turned_on"},
		{"integrations rename", reader + " --name Renamed", ann, "integration.renamed"}, {"integrations scopes", reader + " --scope people:read", ann, "integration.scopes_changed"},
		{"integrations renew-secret", reader + " --overlap 1h", ann, "integration.secret_renewed"}, {"integrations end-old-secret", reader, ann, "integration.old_secret_ended"}, {"integrations owners", reader + " --owner " + ann, ann, "integration.owners_changed"},
		{"integrations delete", reader, ann, "integration.deleted"},
		{"webhooks create", "--integration " + h.ID("erp") + " --url http://127.0.0.1:9/new --event ping", ann, "webhook.created"},
		{"webhooks change", hook + " --event issue.created,work_order.created", ann, "webhook.changed"}, {"webhooks renew-secret", hook, ann, "webhook.secret_renewed"},
		{"webhooks test", hook, ann, "webhook.tested"}, {"trigger", "ping --address " + hook, ann, "webhook.tested"},
		{"deliveries redeliver", delivery.DeliveryID, ann, "delivery.redelivered"}, {"webhooks disable", hook, ann, "webhook.turned_off"},
		{"webhooks enable", hook, ann, "webhook.turned_on"}, {"webhooks delete", hook, ann, "webhook.deleted"},
		{"people deactivate", h.ID("eve"), ann, "person.deactivated"},
	} {
		written = append(written, step.command)
		name := servicetest.Value[string](h.Fixture, `SELECT name FROM identities WHERE id = $1`, step.as)
		h.Exec(`DELETE FROM log`)
		if _, err := h.run(slices.Concat(strings.Fields(step.command), strings.Fields(step.rest), []string{"--as", step.as})...); (err != nil) != slices.Contains(unsent, step.command) {
			t.Errorf("%s: %v", step.command, err)
		}
		if got, want := servicetest.Value[string](h.Fixture, `SELECT coalesce(string_agg(actor_name || ' ' || action, ', '), '') FROM log_records`), name+" (operator) "+step.action; got != want {
			t.Errorf("%s is recorded as %q, want %q", step.command, got, want)
		}
	}
	every(rootCommand(), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "millwright ")
		if cmd.Flags().Lookup("as") != nil && !slices.Contains(reading, path) && !slices.Contains(written, path) {
			t.Errorf("%s has --as: list it here", path)
		}
	})
}
