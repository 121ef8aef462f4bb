package console_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The day's work takes few clicks: work due today is on the first page, a worker's urgent
// work order is two taps away from its answers, and a dispatcher assigns a customer's work order
// in three.
func TestTheDaysWorkTakesFewClicks(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	create := func(title string, priority models.Priority, due time.Duration, worker string) {
		t.Helper()
		at := models.TimeOf(s.Clock.Now().Add(due))
		if _, err := s.CreateWorkOrder(t.Context(), s.Actor("erp"), store.RequestKey{}, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: title, Priority: priority, TargetDate: &at, Assignees: []string{s.ID(worker)}, FormID: new(s.ID("inspection")),
		}); err != nil {
			t.Fatal(err)
		}
	}
	create("Check the belt", models.PriorityLow, time.Hour, "bob")
	create("Compressor trips", models.PriorityHigh, time.Hour, "bob")
	create("Grease the lift", models.PriorityMedium, 5*time.Hour, "polar")
	within := func(b *consoletest.Browser, who string, most int) {
		t.Helper()
		if t.Logf("%s: %d clicks", who, b.Clicks); b.Clicks > most {
			t.Errorf("%s needs %d clicks, want at most %d", who, b.Clicks, most)
		}
	}
	signedIn := func(who string) *consoletest.Browser {
		t.Helper()
		b := s.Browser(t)
		b.SignIn(who)
		b.Clicks = 0
		return b
	}
	manager := signedIn("ann")
	manager.WantText("Today", "Compressor trips", "Check the belt", "Grease the lift")
	within(manager, "a manager who wants what is due today", 0)

	worker := signedIn("bob")
	worker.OnTelephone()
	worker.TapAt("table.work tbody tr") // anywhere on the card
	worker.WantText("Compressor trips")
	worker.Press("Answer")
	worker.WantText("Save and complete")
	within(worker, "a worker with an urgent order", 2)

	dispatcher := signedIn("pia")
	dispatcher.WantText("Incoming", "Grease the lift")
	dispatcher.Press("Forward… Grease the lift")
	dispatcher.Do(chromedp.Evaluate[chromedp.Void](`(who => who.tagName === "OPTION" ? who.selected = true : who.checked = true)(document.querySelector('main [value="` + s.ID("pia") + `"]'))`))
	dispatcher.Clicks++
	dispatcher.Press("Assign")
	within(dispatcher, "a dispatcher who forwards an order", 3)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM work_order_assignees WHERE identity_id = $1`, s.ID("pia")); n != 1 {
		t.Errorf("pia is assigned to %d", n)
	}
}
