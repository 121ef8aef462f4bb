package e2e

import (
	"fmt"
	"net/http"

	"github.com/chromedp/chromedp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"millwright/models"
)

// An administrator creates an integration, takes its secret from the page and calls the API
// with it, sees what it can see before and after it is assigned, adds an address and sends
// a test; then finds what failed and sends it again.
func (j *journey) integration() {
	ids := j.org.imported.IDs
	j.SignInAs(managerEmail)
	j.PressInSidebar("Integrations")
	j.WantText("ERP", "of 10 that your plan allows")
	j.Press("New integration")
	j.Fill("name", "Warehouse")
	for _, scope := range []string{"inventory:read", "work_orders:read", "work_orders:write"} {
		j.Choose("scopes", scope)
	}
	j.Press("Create")
	j.WantText("Client id and secret", "This page shows it once")
	erp := j.integratorAs(j.Text(".secrets .stack:first-child .secret"), j.Text(".secrets .stack:last-child .secret"))
	erp.node = ids["ahu1"]
	erp.get("/me")
	erp.want(http.StatusNotFound, http.MethodGet, "/equipment/"+erp.node, nil)
	j.Press("Assign it to a place, add a webhook")
	j.WantText("Warehouse sees nothing yet: assign it to a place")
	j.Press("Assign it to a place")
	j.Fill("node", ids["hq"])
	j.Fill("definition_id", ids["full"])
	j.Press("Assign")
	j.WantText("Warehouse", "Full access")
	erp.get("/equipment/" + erp.node)

	r := newReceiver(j.t)
	j.Press("New webhook")
	j.Fill("url", r.url())
	j.Choose("events", "work_order.created")
	j.Press("Add the address")
	j.WantText("Signing secret", "Code that verifies deliveries")
	r.useSecret(j.Text(".secret"))
	j.Press("Send a test")
	j.WantText(r.url(), "No test was sent in the last day")
	j.Press("Send test")
	j.WantText("The test was sent.", "The receiver accepted it", "204 No Content")
	if got := r.got(); len(got) != 1 || got[0].event.Type != string(models.EventPing) {
		j.t.Fatalf("the receiver got %v, want one ping", got)
	}
	j.Select("type", string(models.EventIssueResolved)) // to which the address does not subscribe
	j.Press("Send test")
	j.WantText("The test was sent.", "The receiver accepted it")
	if got := r.got(); len(got) != 2 || got[1].event.Type != string(models.EventIssueResolved) || !got[1].event.Test {
		j.t.Fatalf("the receiver got %v, want an event of feedback, marked as a test", got)
	}
	j.redelivery(erp, r)
}

// awaitFailed waits until n deliveries to the receiver have failed, and all others
// are delivered, as long as it sees progress: of many attempts, some tasks are lost more than once.
func (j *journey) awaitFailed(r *receiver, n int) {
	j.t.Helper()
	eventuallyNone(j.t, deliveryLimit, fmt.Sprintf("%d deliveries have failed and none is open", n), func() (left string) {
		if err := j.db.QueryRow(j.t.Context(), `
			SELECT coalesce(string_agg(number || ' ' || status || details, ', ' ORDER BY status, details), '') FROM (
				SELECT d.status, details, count(*) AS number FROM all_deliveries d JOIN webhooks w ON w.id = d.webhook_id
				CROSS JOIN LATERAL (SELECT CASE WHEN d.status = 'failed' THEN '' ELSE format(' after %s, workflow %s', d.attempts, d.workflow) END AS details) x
				WHERE w.url = $1 AND d.status <> 'delivered' GROUP BY d.status, details) d`, r.url()).Scan(&left); err != nil {
			j.t.Fatal(err)
		}
		if left == fmt.Sprintf("%d failed", n) {
			left = ""
		}
		return left
	})
}

// redelivery finds a failed delivery by a filter and sends it again, then all that match on
// two pages, then one that is selected. The page of the receiver's address is open.
func (j *journey) redelivery(erp *integrator, r *receiver) {
	erp.create("Oil the bearing")
	j.awaitFailed(r, 0)
	r.respondWith(always(http.StatusInternalServerError))
	failed := erp.create("Replace filter")
	j.awaitFailed(r, 1)
	j.Press("Deliveries")
	j.WantText("204 No Content", "500 Internal Server Error")
	j.Unfold("Filters")
	j.Fill("status", "failed")
	j.Fill("response", "5xx")
	j.Press("Filter")
	j.WantText("500 Internal Server Error")
	j.WantNoText("204 No Content")
	j.Press("work_order.created")
	j.WantText("Attempt 2", "500 Internal Server Error", "What would be sent now", "Replace filter")
	r.respondWith(accept)
	j.Press("Redeliver")
	j.WantText("Redelivered")
	j.awaitFailed(r, 0)
	j.Do(chromedp.Reload())
	j.WantText("Delivered", "Attempt 3", "204 No Content")
	if _, came := r.about(failed); !came {
		j.t.Error("the receiver did not get the redelivery")
	}

	r.respondWith(always(http.StatusInternalServerError))
	const n = models.DefaultPageSize + 1 // with 100 that fail others would wait
	ids := erp.createMany(n)
	j.awaitFailed(r, n)
	r.respondWith(accept)
	j.Press("All deliveries of the address")
	j.Unfold("Filters")
	j.Fill("status", "failed")
	j.Press("Filter")
	j.Press("Next page")
	j.WantText("500 Internal Server Error")
	j.Press("Redeliver all that match")
	j.WantText(fmt.Sprintf("%d deliveries to %s.", n, r.url()))
	j.Press(fmt.Sprintf("Redeliver %d deliveries", n))
	j.WantText("Ordered.")
	j.awaitFailed(r, 0)
	if missing := r.missing(ids); missing > 0 {
		j.t.Errorf("the receiver did not get %d of the redeliveries", missing)
	}
	j.Do(chromedp.Reload())
	j.WantText("No delivery matches these filters")
	j.Fill("status", "")
	j.Press("Filter")
	j.Click(`main input[name="delivery"]`)
	j.Press("Redeliver selected")
	j.WantText("Redelivered")
	eventually(j.t, deliveryLimit, "the receiver gets the selected delivery again", func() bool { return r.duplicates() == 1 })
}

// useSecret makes the receiver verify with the secret of its address.
func (r *receiver) useSecret(secret string) {
	r.t.Helper()
	standard, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret, r.standard = secret, standard
}
