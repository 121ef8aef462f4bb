package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"millwright/console/consoletest"
	"millwright/models"
)

// journeyLimit is how long deliveries of a journey may take on a busy machine.
const journeyLimit = time.Minute

// journey is what one person does in one browser at an installation that journeys share.
type journey struct {
	*harness
	*consoletest.Browser
	t *testing.T
	// second is the URL of another api.
	second string
	// open opens another browser of the same kind.
	open func() *consoletest.Browser
	// wing is the key of a location that no other journey uses, with the equipment wing_fan.
	wing string
}

// Journeys through the console of the real processes, by people with scripts, without
// scripts, and without a mouse.
func TestConsoleJourneys(t *testing.T) {
	t.Parallel()
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "100ms"}) // two attempts
	h.startWorker()
	h.startAPI(nil)
	second, _ := freePort(t)
	h.startAPI(settings{"MILLWRIGHT_ADDR": second})
	h.importWorkforce()
	h.firstSignIn(managerEmail, managerName)
	h.firstSignIn(advisorEmail, advisorName)
	for name, run := range map[string]struct {
		scripts bool
		wing    string
		journey func(*journey)
	}{
		"an integration, with scripts":    {true, "north", (*journey).integration},
		"an integration, without scripts": {false, "south", (*journey).integration},
		"a person, with scripts":          {true, "", (*journey).person},
		"a person, without scripts":       {false, "", (*journey).person},
		"a work order, with scripts":      {true, "", (*journey).workOrder},
		"a work order, without scripts":   {false, "", (*journey).workOrder},
		"by keyboard only":                {true, "", (*journey).keyboard},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *h
			own.t = t
			open := func() *consoletest.Browser {
				return consoletest.Open(t, h.settings["MILLWRIGHT_PUBLIC_URL"], run.scripts)
			}
			run.journey(&journey{harness: &own, Browser: open(), t: t, second: "http://" + second, open: open, wing: run.wing})
		})
	}
}

// firstSignIn gives a person of the organization consoletest.Password, with a link that the
// command prints.
func (h *harness) firstSignIn(email, name string) {
	h.t.Helper()
	var link struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(h.run("people", "invite", email, "--organization", "acme", "--json")), &link); err != nil {
		h.t.Fatal(err)
	}
	form := url.Values{"name": {name}, "password": {consoletest.Password}}
	response, err := directClient.Post(link.URL, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		h.t.Fatalf("the link of the command: status %d", response.StatusCode)
	}
}

// An administrator creates an integration, takes its secret from the page and calls the API
// with it, sees what it can see before and after it is assigned, adds an address and sends
// a test; then finds what failed and sends it again.
func (j *journey) integration() {
	node := j.wing + "_fan"
	ids := j.importFile(fmt.Sprintf(`
organization: {key: acme}
inventory: [{key: %[1]s, kind: location, name: Wing, children: [{key: %[1]s_air, kind: system, name: Air, children: [{key: %[1]s_fan, kind: equipment, name: Fan}]}]}]
assignments: [{node: %[1]s, identity: manager, definition: full}]
`, j.wing)).IDs
	name := "Warehouse " + j.wing
	j.SignInAs(managerEmail)
	j.PressInSidebar("Integrations")
	j.WantText("ERP", "of 10 that your plan allows")
	j.Press("New integration")
	j.Fill("name", name)
	for _, scope := range []string{"inventory:read", "work_orders:read", "work_orders:write"} {
		j.Choose("scopes", scope)
	}
	j.Press("Create")
	j.WantText("Client id and secret", "This page shows it once")
	erp := j.integratorAs(j.Text(".secrets .stack:first-child .secret"), j.Text(".secrets .stack:last-child .secret"))
	erp.get("/me")

	j.Press("Assign it to a node, add a webhook")
	j.WantText(name + " sees nothing yet: assign it to a node")
	j.Fill("see", ids[node])
	j.Press("Check")
	j.WantText("No, it cannot see this inventory node", "It has the scope inventory:read.", "It has no permission on the node or above")
	j.Press("Assign it to a node")
	j.Fill("node", ids[j.wing])
	j.Fill("definition_id", j.org.imported.IDs["full"])
	j.Press("Assign")
	j.WantText(name, "Full access")
	j.Fill("see", ids[node])
	j.Press("Check")
	j.WantText("Yes, it can see this inventory node", "by “Full access” on Wing")
	erp.node = ids[node]
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
	j.redelivery(erp, r)
}

// awaitFailed waits until n deliveries to the receiver have failed, and all others
// are delivered.
func (j *journey) awaitFailed(r *receiver, n int) {
	j.t.Helper()
	eventually(j.t, journeyLimit, fmt.Sprintf("%d deliveries have failed", n), func() bool {
		return j.count(`SELECT count(*) FROM all_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.url = $1 AND status = 'failed'`, r.url()) == n &&
			j.count(`SELECT count(*) FROM all_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.url = $1 AND status NOT IN ('failed', 'delivered')`, r.url()) == 0
	})
}

// redelivery finds a failed delivery by a filter and sends it again, then all that match on
// three pages, then one that is selected. The page of the receiver's address is open.
func (j *journey) redelivery(erp *integrator, r *receiver) {
	erp.create("Oil the bearing")
	j.awaitFailed(r, 0)
	r.respondWith(always(http.StatusInternalServerError))
	failed := erp.create("Replace filter")
	j.awaitFailed(r, 1)
	j.Press("Deliveries")
	j.WantText("204 No Content", "500 Internal Server Error")
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
	const n = 2*models.DefaultPageSize + 1
	ids := erp.createMany(n)
	j.awaitFailed(r, n)
	r.respondWith(accept)
	j.Press("All deliveries of the address")
	j.Fill("status", "failed")
	j.Press("Filter")
	j.Press("Next page")
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
	j.Press("Clear the filters")
	j.Click(`main input[name="delivery"]`)
	j.Press("Redeliver selected")
	j.WantText("Redelivered")
	eventually(j.t, journeyLimit, "the receiver gets the selected delivery again", func() bool { return r.duplicates() == 1 })
}

// A person is invited, signs in for the first time and is deactivated; the session ends on
// every api.
func (j *journey) person() {
	email := strings.ToLower(strings.NewReplacer("/", ".", ",", "", "_", ".").Replace(j.t.Name())) + "@acme.example.com"
	j.SignInAs(managerEmail)
	j.PressInSidebar("People")
	j.Press("Invite someone")
	j.Fill("email", email)
	j.Press("Invite")
	j.WantText("This page shows it once.")
	link := strings.TrimPrefix(j.Text(".secret"), j.URL)

	other := j.open()
	other.Open(link)
	other.Fill("name", "Nia Moor")
	other.Fill("password", "short")
	other.Press("Join")
	other.WantText("A password has at least 10 characters.")
	other.Fill("password", consoletest.Password)
	other.Press("Join")
	other.WantPath("/console")
	other.WantText("Nia Moor")
	other.PressInSidebar("Sign out")
	other.Open(link)
	other.WantText("The link cannot be used")
	other.SignInAs(email)
	other.WantPath("/console")
	other.URL = j.second
	other.Open("/console/account")
	other.WantText("Your sessions", email)

	j.Press("Go to the person")
	j.WantText("Nia Moor", "Can sign in")
	j.Press("Deactivate…")
	j.WantText("Deactivate Nia Moor?", "1 session ends at the next request.")
	j.Press("Deactivate")
	j.WantText("Deactivated.")
	other.PressInSidebar("Account")
	other.WantPath("/console/sign-in")
	j.Press("Activate")
	j.WantText("Activated. The person can sign in again.")
	other.Open("/console")
	other.WantPath("/console/sign-in") // the session stays ended
}

// A manager gives feedback, makes a work order of it, puts it on hold and resumes it; its
// consultant sends it back and approves it; the feedback is resolved, another work order is
// cancelled.
func (j *journey) workOrder() {
	subject := "Cold air: " + j.t.Name()
	j.SignInAs(managerEmail)
	j.PressInSidebar("Feedback")
	j.Press("Give feedback")
	j.Fill("node", j.org.imported.IDs["hvac"])
	j.Fill("subject", subject)
	j.Press("Send")
	j.WantText(subject, "HVAC")
	feedback := j.Path()

	j.Press("Make a work order of it")
	j.Fill("title", subject)
	j.Choose("assignees", j.org.imported.IDs["manager"])
	j.Click("main details summary")
	j.Choose("consultants", j.org.imported.IDs["advisor"])
	j.Press("Create")
	j.WantText(subject, managerName, advisorName)
	order := j.Path()
	j.Press("Put on hold")
	j.WantText("On hold")
	j.Press("Resume")
	j.Press("Complete and send to review")
	j.WantText("In review")

	advisor := j.open()
	advisor.SignInAs(advisorEmail)
	advisor.WantText("Waiting for my review")
	advisor.Press(subject)
	advisor.WantPath(order)
	advisor.Fill("comment", "The picture is missing")
	advisor.Press("Send back")
	advisor.WantText("The picture is missing")
	j.Open(order)
	j.WantText("The picture is missing")
	j.Press("Complete and send to review")
	advisor.Open(order)
	advisor.Press("Approve")
	advisor.WantText("Completed")

	j.Open(feedback)
	j.Press("Resolve")
	j.WantText("Resolved")

	j.PressInSidebar("Work orders")
	j.Press("New work order")
	j.Fill("q", "AHU 1")
	j.Press("Search")
	j.Press("AHU 1")
	j.Fill("title", "No longer needed")
	j.Press("Create")
	j.Press("Cancel…")
	j.Press("Cancel the work order")
	j.WantText("Cancelled")
}

// A person signs in, creates an integration and signs out with Tab, Enter and the space
// bar, and always sees where the focus is.
func (j *journey) keyboard() {
	j.Open("/console")
	j.TabTo("E-mail address")
	j.Type(managerEmail)
	j.TabTo("Password")
	j.Type(consoletest.Password)
	j.Enter()
	j.WantPath("/console")
	j.TabTo("Integrations")
	j.Enter()
	j.TabTo("New integration")
	j.Enter()
	j.TabTo("Name")
	j.Type("Keyboard")
	j.TabTo("inventory:read")
	j.Type(" ")
	j.TabTo("Create")
	j.Enter()
	j.WantText("This page shows it once")
	erp := j.integratorAs(j.Text(".secrets .stack:first-child .secret"), j.Text(".secrets .stack:last-child .secret"))
	erp.get("/me")
	j.TabTo("Assign it to a node, add a webhook")
	j.Enter()
	j.WantText("Keyboard sees nothing yet")
	j.TabTo("Can it see this?")
	j.Type(j.org.imported.IDs["ahu1"])
	j.Enter()
	j.WantText("No, it cannot see this inventory node")
	j.TabTo("Sign out")
	j.Enter()
	j.WantText("You are signed out.")
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
