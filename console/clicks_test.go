package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// plantOthers adds open work orders that are due later, a fortieth of them bob's.
func plantOthers(s *consoletest.Site, n int) {
	s.Exec(`INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, target_date, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, 100000 + n, $2, 'Clean coil ' || n, 'medium', $3::timestamptz + (20 + n % 300) * interval '1 day', 'open', $4, $3, $3
		FROM generate_series(1, $5::integer) n`, s.Acme.OrganizationID, s.ID("ahu1"), s.Clock.Now(), s.ID("erp"), n)
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT 'wo_' || lpad(n::text, 26, '0'), CASE WHEN n % 40 = 0 THEN $1 ELSE $2 END, 'worker', 1 FROM generate_series(1, $3::integer) n`, s.ID("bob"), s.ID("erp"), n)
}

// The day's work takes few clicks, characters to enter and pages to open, with thousands of other work orders.
// TestWorkersAreReplacedInThreeClicks has the manager who gives work to a team.
func TestTheDaysWorkTakesFewClicks(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	plantOthers(s, 2000)
	create := func(title string, priority models.Priority, due time.Duration, worker string, consultants ...string) string {
		t.Helper()
		at := models.TimeOf(s.Clock.Now().Add(due))
		return s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: title, Priority: priority, TargetDate: &at, Assignees: []string{s.ID(worker)}, Consultants: consultants, FormID: new(s.ID("inspection")),
		}))
	}
	reviewed := create("Renew the seal", models.PriorityNone, 48*time.Hour, "bob", s.ID("cat"))
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, reviewed)
	s.PlantDeliveries("erp_hook", reviewed, models.EventWorkOrderCreated, models.DeliveryFailed, 500, 1, s.Clock.Now().Add(-time.Hour))
	create("Check the belt", models.PriorityLow, time.Hour, "bob")
	create("Compressor trips", models.PriorityHigh, time.Hour, "bob")
	create("Grease the lift", models.PriorityMedium, 5*time.Hour, "polar")
	within := func(b *consoletest.Browser, who string, clicks, keys, loads int) {
		t.Helper()
		spent := b.Spent()
		if t.Logf("%s: %+v", who, spent); spent.Clicks > clicks || spent.Keys > keys || spent.Loads > loads {
			t.Errorf("%s needs %+v, want at most %d clicks, %d keys, %d loads", who, spent, clicks, keys, loads)
		}
	}
	signedIn := func(who string) *consoletest.Browser {
		t.Helper()
		b := s.Browser(t)
		b.SignIn(who, "/console")
		b.BeginEffort()
		return b
	}
	manager := signedIn("ann")
	manager.WantText("Today", "Compressor trips", "Check the belt", "Grease the lift")
	within(manager, "a manager who wants what is due today", 0, 0, 0)

	worker := signedIn("bob")
	worker.OnTelephone()
	worker.Click("table.work tbody tr") // anywhere on the card
	worker.WantText("Start work")
	worker.Press("Start work")
	worker.WantText("The work is in progress.", "Bob Stone started the work.")
	within(worker, "a worker who starts an urgent order", 2, 0, 2)
	worker.Press("Answer and complete")
	worker.WantText("Save and complete")
	within(worker, "a worker who answers it", 3, 0, 3)

	dispatcher := signedIn("pia")
	dispatcher.WantText("Incoming", "Grease the lift")
	dispatcher.Press("Forward… Grease the lift")
	dispatcher.Do(chromedp.Evaluate[chromedp.Void](`(who => who.tagName === "OPTION" ? who.selected = true : who.checked = true)(document.querySelector('main [value="` + s.ID("pia") + `"]'))`))
	dispatcher.Clicks++
	dispatcher.Press("Assign")
	within(dispatcher, "a dispatcher who forwards an order", 3, 0, 2)
	s.WantRows(1, `work_order_assignees WHERE identity_id = $1`, s.ID("pia"))

	consultant := signedIn("cat")
	consultant.WantText("To review")
	consultant.Press("Renew the seal")
	consultant.Press("Approve")
	consultant.WantText("Approved: the work order is complete.")
	consultant.WantPath("/console/work-orders")
	within(consultant, "a consultant who approves", 2, 0, 2)

	integrations := signedIn("ann")
	integrations.Press("1 delivery")
	integrations.Press("work_order.created")
	integrations.WantText("500 Internal Server Error")
	within(integrations, "an administrator of integrations who asks why a delivery failed", 2, 0, 2)

	planner := signedIn("ann")
	planner.PressInSidebar("Work orders")
	planner.Press("New work order")
	planner.Fill("q", "AHU 1")
	planner.Press("Search")
	planner.Press("AHU 1")
	planner.Fill("title", "Clean the duct")
	planner.Choose("assignees", s.ID("crew"))
	planner.Press("Create")
	planner.WantText("Clean the duct", "Crew")
	within(planner, "a manager who creates a work order for a team", 6, 19, 5)

	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, s.ID("hvac"), s.ID("dan"), s.ID("creating"), s.Acme.OrganizationID)
	requester := signedIn("dan")
	requester.WantText("What is wrong, and where?")
	requester.Click("main .report > summary") // dan has work, too
	requester.Fill("node", "fan hvac")
	requester.Fill("subject", "It is loud")
	requester.Press("Send")
	requester.WantPath("/console") // not the list of feedback, which does not have it
	requester.WantText("Sent", "Your reports", "It is loud", "Open")
	within(requester, "a requester who reports something", 2, 18, 1)
	requester.Click("main .report > summary")
	requester.Fill("node", "1")
	requester.Fill("subject", "It rattles")
	requester.Press("Send")
	requester.WantText("Several places have these words.")
	requester.Choose("node", s.ID("fan1"))
	requester.Press("Send")
	requester.WantText("It rattles")
	within(requester, "a requester whose words name several places", 6, 29, 3)

	administrator := signedIn("ann")
	administrator.PressInSidebar("People")
	administrator.Press("Invite someone")
	administrator.Fill("email", "new@acme.example.com")
	administrator.Select("team", s.ID("crew"))
	administrator.Fill("node", "HQ")
	administrator.Select("definition_id", s.ID("working"))
	administrator.Press("Invite")
	administrator.WantText("Link for new")
	within(administrator, "an administrator who invites someone into a team, with a role on a building", 5, 22, 3)

	builder := signedIn("ann")
	builder.PressInSidebar("Inventory")
	builder.Press("Annex")
	builder.Press("Add several")
	builder.Fill("lines", strings.Repeat("Door; D-1\n", 30))
	builder.Press("Add all")
	builder.WantText("Created.", "Door")
	within(builder, "someone who adds 30 assets", 4, 300, 4)
	s.WantRows(30, `inventory_nodes WHERE external_id = 'D-1'`)

	keeper := signedIn("ann")
	keeper.PressInSidebar("Forms")
	keeper.Press("New form")
	keeper.Fill("name", "Fire door")
	keeper.Press("Create")
	keeper.Press("Add a question")
	keeper.Fill("label", "State")
	keeper.Fill("options", "Closes\nSticks")
	keeper.Press("Save")
	keeper.WantText("State", "Closes", "Sticks")
	within(keeper, "an administrator who makes a form with a question", 5, 27, 5)
}
