package pages_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/pages"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// logged lists the log of a person's organization, oldest first: who, what, and the record if
// it is the one with the id.
func logged(t *testing.T, f *servicetest.Fixture, reader store.Actor, filter pages.LogFilter) string {
	t.Helper()
	page, err := f.Pages.LogRecords(t.Context(), reader, "", filter)
	servicetest.Must(t, err)
	var lines []string
	for _, r := range page.Records {
		lines = append([]string{r.ActorName + " " + r.Action}, lines...)
	}
	return strings.Join(lines, ", ")
}

// A service company's own log has what its people and its integrations did for a customer, as the
// customer's has it, and no more of it (api.md 1.5). It keeps it when the record is gone from view.
func TestACompanysLogHasWhatItDidForCustomers(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx, pia, call := t.Context(), s.As("pia"), store.NoKey
	id := s.NewWorkOrder([]string{"polar"}, []string{"cat"})
	s.MustWrite(s.Records.AssignWorkOrder(ctx, pia, call, id, s.IDs("pia", "dispatch"), nil))
	s.MustWrite(s.Records.HoldWorkOrder(ctx, pia, call, id))
	s.MustWrite(s.Records.ResumeWorkOrder(ctx, pia, call, id))
	s.MustWrite(s.Records.AnswerWorkOrder(ctx, s.As("dispatch"), call, id, nil, records.SaveAnswers))
	servicetest.Must(t, s.Records.AddComment(ctx, pia, store.NoKey, id, "The belt is loose."))
	s.MustWrite(s.Records.UpdateWorkOrder(ctx, s.As("ann"), call, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Replace both filters", Set: true}}))
	servicetest.Must(t, servicetest.ErrorOf(s.Records.ReturnWorkOrder(ctx, pia, call, id, "No one is on site.")))
	const theirs = "Pia Frost work_order.assignees_changed, Pia Frost work_order.held, Pia Frost work_order.resumed, dispatch (API) work_order.answered, Pia Frost work_order.commented, "
	servicetest.Expect(t, "the company's log", logged(t, s.Fixture, pia, pages.LogFilter{}), theirs+"Pia Frost work_order.returned")
	servicetest.Expect(t, "the customer's log", logged(t, s.Fixture, s.As("ann"), pages.LogFilter{}),
		"erp (API) work_order.created, "+theirs+"Ann Field work_order.updated, Pia Frost work_order.returned")

	for name, c := range map[string]struct {
		filter pages.LogFilter
		want   int
	}{
		"the person":  {pages.LogFilter{ActorID: s.ID("pia")}, 5},
		"the program": {pages.LogFilter{ActorID: s.ID("dispatch")}, 1},
		"a customer":  {pages.LogFilter{ActorID: s.ID("ann")}, 0},
		"the record":  {pages.LogFilter{RecordID: id}, 6},
		"the action":  {pages.LogFilter{Action: "work_order.held"}, 1},
		"the time":    {pages.LogFilter{From: s.Clock.Now().Add(-1)}, 6},
		"later":       {pages.LogFilter{From: s.Clock.Now().Add(1e10)}, 0},
	} {
		page, err := s.Pages.LogRecords(ctx, pia, "", c.filter)
		if err != nil || len(page.Records) != c.want {
			t.Errorf("filtered by %s it has %d entries, want %d, %v", name, len(page.Records), c.want, err)
		}
	}
	// Of the record it shows the id alone: the company may no longer read it.
	page, err := s.Pages.LogRecords(ctx, pia, "", pages.LogFilter{})
	servicetest.Must(t, err)
	for _, r := range page.Records {
		if r.RecordID != id || r.RecordName != nil {
			t.Errorf("an entry about %s names it %v", r.RecordID, r.RecordName)
		}
	}
	if found, err := s.Records.Readable(ctx, pia, []string{id}); err != nil || len(found) != 0 {
		t.Errorf("the company reads %v, %v", found, err)
	}
	// The record's history and its changes are the customer's alone, each once.
	servicetest.Expect(t, "entries of the history that are the company's", servicetest.Value[int](s.Fixture, `SELECT count(*) FROM history WHERE record_id = $1 AND organization_id <> $2`, id, s.Acme.OrganizationID), 0)
	history, err := s.Records.HistoryPage(ctx, s.As("ann"), id, 0, 0)
	if err != nil || len(history.Changes) != 8 {
		t.Errorf("the history has %d changes, %v", len(history.Changes), err)
	}
	// The e-mail about the return has its reason.
	returned := false
	for _, mail := range append(s.ClaimMails(s.Acme.OrganizationID), s.ClaimMails(s.Polar.OrganizationID)...) {
		for _, notice := range mail.Notices {
			if notice.Kind == models.NoticeReturned {
				returned = true
				servicetest.Expect(t, "the reason", notice.Reason, "No one is on site.")
			}
		}
	}
	if !returned {
		t.Error("no e-mail about the return")
	}
}

// Someone who was renamed since has both names, the old one first; suffixes of programs and
// operators belong to the first.
func TestTheLogShowsNamesOfThenAndNow(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx, call := t.Context(), store.NoKey
	id := s.NewWorkOrder([]string{"erp", "bob"}, nil)
	s.Exec(`UPDATE identities SET name = 'erp' WHERE id = $1`, s.ID("erp")) // as the test's actor is named
	operated := s.As("ann")
	operated.Operated = true
	s.MustWrite(s.Records.HoldWorkOrder(ctx, s.As("bob"), call, id))
	s.MustWrite(s.Records.ResumeWorkOrder(ctx, operated, call, id))
	read := func() string {
		page, err := s.Pages.LogRecords(ctx, s.As("ann"), "", pages.LogFilter{RecordID: id}) //nolint:contextcheck // the fixture has its own
		servicetest.Must(t, err)
		history, err := s.Records.HistoryPage(ctx, s.As("ann"), id, 0, 0) //nolint:contextcheck // the fixture has its own
		servicetest.Must(t, err)
		var names []string
		for i, r := range page.Records {
			change := history.Changes[i]
			if r.ActorName != *change.ActorName || (r.ActorNow == nil) != (change.ActorNow == nil) {
				t.Errorf("the log has %v, the history %v", r, change)
			}
			name := r.ActorName
			if r.ActorNow != nil {
				name += " now " + *r.ActorNow
			}
			names = append(names, name)
		}
		return strings.Join(names, ", ")
	}
	servicetest.Expect(t, "before", read(), "Ann Field (operator), Bob Stone, erp (API)")
	for key, name := range map[string]string{"bob": "Ann Field", "ann": "Ann Meadow", "erp": "SAP"} {
		s.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, s.ID(key), name)
	}
	servicetest.Expect(t, "after", read(), "Ann Field (operator) now Ann Meadow, Bob Stone now Ann Field, erp (API) now SAP")
	page, err := s.Pages.LogRecords(ctx, s.As("ann"), "", pages.LogFilter{})
	if err != nil || page.Next != 0 {
		t.Errorf("the next page is before %d, %v", page.Next, err)
	}
	// An integration without people:read gets no names, neither of then nor of now.
	history, err := s.Records.HistoryPage(ctx, s.As("erp"), id, 0, 0)
	if err != nil || history.Changes[0].ActorName != nil || history.Changes[0].ActorNow != nil {
		t.Errorf("an integration reads %+v, %v", history.Changes[0], err)
	}
}
