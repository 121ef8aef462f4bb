package records_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// givesOn returns new feedback of the actor on a node of the fixture.
func givesOn(s *servicetest.Harness, by, node, subject string) string {
	s.T.Helper()
	s.Clock.Advance(time.Millisecond) // so that ids are in this order
	result, err := s.Records.CreateFeedback(s.T.Context(), s.As(by), store.NoKey, records.NewFeedback{InventoryID: s.ID(node), Subject: subject})
	servicetest.Must(s.T, err)
	return result.RecordID
}

// subjects are the subjects on all pages of a list.
func subjects(s *servicetest.Harness, by string, filter records.FeedbackFilter, limit int) string {
	s.T.Helper()
	var found []string
	for cursor, pages := "", 0; pages < 10; pages++ {
		page, err := s.Records.FeedbackForPerson(s.T.Context(), s.As(by), filter, cursor, limit)
		servicetest.Must(s.T, err)
		found = append(found, servicetest.Each(page.Data, func(f models.FeedbackRecord) string { return f.Subject })...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	return strings.Join(found, " ")
}

// A list has what its reader may read, by state, node, creator, and words of the subject and the external id.
func TestFeedbackForPeople(t *testing.T) {
	s := servicetest.NewHarness(t)
	givesOn(s, "erp", "ahu1", "pump-one")
	givesOn(s, "ann", "roof", "two")
	three := givesOn(s, "ann", "ahu1", "pump-three")
	givesOn(s, "eve", "annex", "four")
	servicetest.Must(t, resolves(s, "ann", three))
	s.Exec(`UPDATE feedback SET external_id = 'T-77' WHERE id = $1`, three)
	for _, test := range []struct {
		by     string
		filter records.FeedbackFilter
		want   string
	}{
		{"ann", records.FeedbackFilter{}, "pump-three two pump-one"},
		{"eve", records.FeedbackFilter{}, "four"},
		{"bob", records.FeedbackFilter{}, ""},
		{"pia", records.FeedbackFilter{}, ""},
		{"ann", records.FeedbackFilter{CreatorID: s.ID("ann")}, "pump-three two"},
		{"ann", records.FeedbackFilter{CreatorID: s.ID("eve")}, ""},
		{"ann", records.FeedbackFilter{CreatorID: s.ID("ann"), Statuses: []models.FeedbackStatus{models.FeedbackOpen}}, "two"},
		{"ann", records.FeedbackFilter{CreatorID: s.ID("ann"), InventoryID: s.ID("hvac")}, "pump-three"},
		{"ann", records.FeedbackFilter{InventoryID: s.ID("annex")}, ""},
		{"ann", records.FeedbackFilter{Text: "PUMP"}, "pump-three pump-one"},
		{"ann", records.FeedbackFilter{Text: "three, pump"}, "pump-three"},
		{"ann", records.FeedbackFilter{Text: "thr"}, "pump-three"},
		{"ann", records.FeedbackFilter{Text: "pump threefold"}, ""},
		{"ann", records.FeedbackFilter{Text: "t 77"}, "pump-three"},
		{"ann", records.FeedbackFilter{Text: "pump 77"}, "pump-three"},
		{"ann", records.FeedbackFilter{Text: "?"}, ""},
		{"eve", records.FeedbackFilter{Text: "pump"}, ""},
	} {
		for _, limit := range []int{1, 50} {
			servicetest.Expect(t, test.by, subjects(s, test.by, test.filter, limit), test.want)
		}
	}
	_, err := s.Records.FeedbackForPerson(t.Context(), s.As("ann"), records.FeedbackFilter{}, "nonsense", 1)
	servicetest.Expect(t, "a cursor of nothing", servicetest.Outcome(err), "invalid_request")
	page, err := s.Records.FeedbackForPerson(t.Context(), s.As("ann"), records.FeedbackFilter{}, "", 1)
	servicetest.Must(t, err)
	_, err = s.Records.FeedbackForPerson(t.Context(), s.As("ann"), records.FeedbackFilter{CreatorID: s.ID("ann")}, page.NextCursor, 1)
	servicetest.Expect(t, "the cursor of another filter", servicetest.Outcome(err), "invalid_request")
}

// A search goes on after a page although more was found in between.
func TestASearchOfFeedbackGoesOn(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, subject := range []string{"pump one", "pump two", "pump three"} {
		givesOn(s, "ann", "ahu1", subject)
	}
	filter, found := records.FeedbackFilter{Text: "pump"}, ""
	for cursor, pages := "", 0; pages < 3; pages++ {
		page, err := s.Records.FeedbackForPerson(t.Context(), s.As("ann"), filter, cursor, 1)
		if err != nil || len(page.Data) != 1 {
			t.Fatalf("page %d has %d records, %v", pages, len(page.Data), err)
		}
		found += page.Data[0].Subject + "; "
		cursor = page.NextCursor
		givesOn(s, "ann", "ahu1", "pump, again")
	}
	servicetest.Expect(t, "found", found, "pump three; pump two; pump one; ")
	long := strings.Repeat("насос ", 50) // 300 characters, 550 bytes
	servicetest.Expect(t, "a long text", subjects(s, "ann", records.FeedbackFilter{Text: long}, 10), "")
	givesOn(s, "ann", "ahu1", "насос")
	servicetest.Expect(t, "a long text that matches", subjects(s, "ann", records.FeedbackFilter{Text: long}, 10), "насос")
}

// The page of feedback has names, the path of the node, the history, and what the reader may do.
func TestFeedbackDetail(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`INSERT INTO permission_definitions (id, organization_id, name, applies_below, grants) VALUES ('def_listening', $1, 'Listening', true, '{feedback.read}')`, s.Acme.OrganizationID)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, 'def_listening', $3)`, s.ID("ahu1"), s.ID("eve"), s.Acme.OrganizationID)
	id := givesOn(s, "erp", "ahu1", "It rattles")
	show := func(by string) records.FeedbackDetail {
		t.Helper()
		detail, err := s.Records.FeedbackDetail(t.Context(), s.As(by), id, 0)
		servicetest.Must(t, err)
		return detail
	}
	detail := show("ann")
	shown, err := s.Records.Feedback(t.Context(), s.As("ann"), id)
	if err != nil || detail.ETag != store.ETag(shown) {
		t.Errorf("the ETag is %s, that of GET %s, %v", detail.ETag, store.ETag(shown), err)
	}
	if detail.Record.Inventory.Name != "AHU 1" || len(detail.Record.Inventory.Path) != 2 || detail.Record.People[0].Name != "ERP" || detail.Resolving != nil || !detail.CreatesWorkOrders {
		t.Errorf("it shows %+v", detail)
	}
	if h := detail.History.Changes; len(h) != 1 || h[0].Action != "issue.created" || h[0].ActorName == nil || *h[0].ActorName != "erp (API)" {
		t.Errorf("the history is %+v", h)
	}
	listening := show("eve")
	servicetest.Expect(t, "resolving by a reader", servicetest.Outcome(listening.Resolving), "permission_denied")
	if listening.CreatesWorkOrders {
		t.Error("a reader may create work orders")
	}
	for _, by := range []string{"bob", "pia", "zed"} {
		_, err := s.Records.FeedbackDetail(t.Context(), s.As(by), id, 0)
		servicetest.Expect(t, by, servicetest.Outcome(err), "not_found")
	}
	for _, other := range []string{"iss_00000000000000000000000000", "nonsense", s.ID("ahu1")} {
		_, err := s.Records.FeedbackDetail(t.Context(), s.As("ann"), other, 0)
		servicetest.Expect(t, other, servicetest.Outcome(err), "not_found")
	}
	s.Exec(`UPDATE plans SET manual_work_orders = false`)
	if show("ann").CreatesWorkOrders {
		t.Error("the plan allows no work orders")
	}
	s.Exec(`UPDATE plans SET manual_work_orders = true`)
	s.Exec(`UPDATE organizations SET read_only = true`)
	if detail = show("ann"); detail.CreatesWorkOrders {
		t.Error("work orders in a read-only organization")
	}
	servicetest.Expect(t, "resolving in a read-only organization", servicetest.Outcome(detail.Resolving), "ok")
	s.Exec(`UPDATE organizations SET read_only = false`)
	servicetest.Must(t, resolves(s, "ann", id))
	detail = show("ann")
	servicetest.Expect(t, "resolving again", servicetest.Outcome(detail.Resolving), "rule_violation status")
	if h := detail.History.Changes; len(h) != 2 || h[0].Action != "issue.resolved" || *h[0].ActorName != "Ann Field" {
		t.Errorf("the history is %+v", h)
	}
}

// People name the node by its id or its code, of those on which they may give feedback.
func TestGiveFeedback(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE inventory_nodes SET external_id = 'TWICE' WHERE id = ANY ($1)`, []string{s.ID("fan1"), s.ID("mast")})
	s.Exec(`UPDATE inventory_nodes SET external_id = 'DEPOT' WHERE id = $1`, s.ID("depot"))
	for name, test := range map[string]struct {
		by, node string
		in       records.NewFeedback
		want     string
	}{
		"by code":              {"ann", "AHU-1", records.NewFeedback{Subject: "It leaks"}, "ok"},
		"by code as typed":     {"ann", "ahu‐1", records.NewFeedback{Subject: "It leaks"}, "ok"}, // a typographic hyphen
		"by id":                {"ann", s.ID("ahu1"), records.NewFeedback{Subject: "It leaks"}, "ok"},
		"of several":           {"ann", "TWICE", records.NewFeedback{Subject: "It leaks"}, "/node"},
		"an unknown code":      {"ann", "nowhere", records.NewFeedback{Subject: "It leaks"}, "/node"},
		"no node":              {"ann", "", records.NewFeedback{Subject: "It leaks"}, "/node"},
		"another's code":       {"ann", "DEPOT", records.NewFeedback{Subject: "It leaks"}, "/node"},
		"another's id":         {"ann", s.ID("depot"), records.NewFeedback{Subject: "It leaks"}, "/node"},
		"where she sees none":  {"ann", s.ID("annex"), records.NewFeedback{Subject: "It leaks"}, "/node"},
		"no subject":           {"ann", "HQ", records.NewFeedback{Subject: " "}, "/subject"},
		"by words":             {"ann", "headquarters ahu", records.NewFeedback{Subject: "It leaks"}, "ok"},
		"words of several":     {"ann", "1", records.NewFeedback{Subject: "It leaks"}, "/node"},
		"all wrong":            {"ann", s.ID("annex"), records.NewFeedback{Subject: ""}, "/subject /node"},
		"without permission":   {"bob", s.ID("ahu1"), records.NewFeedback{Subject: "It leaks"}, "permission_denied"},
		"no permission, codes": {"bob", "AHU-1", records.NewFeedback{Subject: "It leaks"}, "/node"},
	} {
		_, err := s.Records.GiveFeedback(t.Context(), s.As(test.by), store.NoKey, test.node, test.in)
		got := servicetest.Pointers(err)
		if got == "" {
			got = servicetest.Outcome(err)
		}
		servicetest.Expect(t, name, got, test.want)
	}
}

// Places to give feedback are found by ids, codes and words of them and of those above, in any order.
func TestFeedbackPlaces(t *testing.T) {
	s := servicetest.NewHarness(t)
	for words, want := range map[string]string{
		"AHU-1": "AHU 1", s.ID("fan1"): "Fan 1", s.ID("annex"): "", s.ID("depot"): "", "nowhere": "", "": "", "1 fan": "Fan 1", "headquarters fan": "Fan 1", "headquarters nowhere": "",
	} {
		places, err := s.Records.FeedbackPlaces(t.Context(), s.As("ann"), words)
		servicetest.Must(t, err)
		got := ""
		if len(places) > 0 {
			got = places[0].Name
		}
		servicetest.Expect(t, words, got, want)
	}
	for _, by := range []string{"bob", "pia"} {
		if places, err := s.Records.FeedbackPlaces(t.Context(), s.As(by), "ahu"); err != nil || len(places) != 0 {
			t.Errorf("%s gives feedback on %v: %v", by, places, err)
		}
	}
}

// People see what became of their reports, also where they may not read feedback, and no one else's.
func TestOwnFeedback(t *testing.T) {
	s := servicetest.NewHarness(t)
	givesOn(s, "erp", "ahu1", "Another's")
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, s.ID("hvac"), s.ID("dan"), s.ID("creating"), s.Acme.OrganizationID)
	own := func() string {
		t.Helper()
		found, err := s.Records.OwnFeedback(t.Context(), s.As("dan"))
		servicetest.Must(t, err)
		return servicetest.Listed(found, func(f records.OwnFeedback) string {
			return fmt.Sprint(f.Subject, " at ", f.Place, " ", f.Status, " ", f.WorkOrder)
		})
	}
	first, second := givesOn(s, "dan", "ahu1", "It rattles"), givesOn(s, "dan", "hvac", "It is cold")
	servicetest.Expect(t, "new", own(), "It is cold at HVAC open , It rattles at AHU 1 open ")
	s.Exec(`UPDATE work_orders SET feedback_id = $1 WHERE id = $2`, first, s.NewWorkOrder([]string{"bob"}, nil))
	s.MustWrite(s.Records.ResolveFeedback(t.Context(), s.As("ann"), store.NoKey, second))
	servicetest.Expect(t, "later", own(), "It is cold at HVAC resolved , It rattles at AHU 1 open open")
	s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("dan"))
	servicetest.Expect(t, "without the permission", own(), "")
}

// Opening a notice opens its record only if the person may read that.
func TestReadingANotice(t *testing.T) {
	s := servicetest.NewHarness(t)
	feedback, order := givesOn(s, "erp", "ahu1", "It rattles"), s.NewWorkOrder([]string{"bob"}, nil)
	s.Exec(`DELETE FROM notices`)
	for _, test := range []struct {
		by, record string
		readable   bool
	}{
		{"ann", feedback, true}, {"bob", feedback, false}, {"ann", order, true}, {"bob", order, true}, {"eve", order, false},
		{"ann", s.ID("erp_hook"), true}, {"bob", s.ID("erp_hook"), false}, {"ann", "iss_00000000000000000000000000", false},
	} {
		id := servicetest.Value[int64](s.Fixture, `INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail)
			VALUES ($1, $2, 'some.kind', $3, now(), 'inbox') RETURNING id`, s.Acme.OrganizationID, s.ID(test.by), test.record)
		_, err := s.People.ReadNotice(t.Context(), s.As("zed"), id)
		servicetest.Expect(t, "of someone else", servicetest.Outcome(err), "not_found")
		want := ""
		if test.readable {
			want = test.record
		}
		got, err := s.People.ReadNotice(t.Context(), s.As(test.by), id)
		servicetest.Expect(t, test.by+" "+test.record, servicetest.Outcome(err)+" "+got, "ok "+want)
		s.Clock.Advance(time.Second)
		servicetest.Expect(t, "notices that are marked read",
			servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE id = $1 AND read_at IS NOT NULL`, id), 1)
	}
}

// The feedback of a creator is read by index, by readers of many and of few nodes, even
// if the plan was made while the table was empty.
func TestFeedbackOfACreatorReadsLittle(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read}' WHERE id = $1`, s.ID("reading"))
	s.Plant(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 400) n`, s.Acme.OrganizationID, s.ID("mast"))
	s.AnalyzeOnce([]string{"feedback", "inventory_nodes"})
	reads, filled := map[string]servicetest.BoundedRead{}, 0
	for _, reader := range []string{"erp", "reader"} {
		reads[reader] = servicetest.BoundedRead{Tables: []string{"feedback"}, Most: 100, Do: func() error {
			page, err := s.Records.FeedbackForPerson(t.Context(), s.As(reader), records.FeedbackFilter{CreatorID: s.ID("bob")}, "", 20)
			servicetest.Expect(t, "feedback found", len(page.Data), filled)
			return err
		}}
	}
	servicetest.WantBounded(t, s.Fixture, reads, func() {
		s.Plant(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at)
			SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'open', CASE n % 100 WHEN 77 THEN $3 ELSE $4 END, now(), now() FROM generate_series(1, 3000) n`,
			s.Acme.OrganizationID, s.ID("ahu1"), s.ID("bob"), s.ID("erp"))
		filled = 20
	})
}

// A search has more if it did not look at all feedback with the words.
func TestASearchOfFeedbackTellsThatThereIsMore(t *testing.T) {
	s := servicetest.NewHarness(t)
	add := func(from, to int) {
		s.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at)
			SELECT 'iss_' || lpad(n::text, 26, '0'), $1, $2, 'It rattles', 'open', $3, now(), now() FROM generate_series($4::int, $5::int) n`,
			s.Acme.OrganizationID, s.ID("ahu1"), s.ID("erp"), from, to)
	}
	search := func(who, text string, found int, more bool) {
		t.Helper()
		page, err := s.Records.FeedbackForPerson(t.Context(), s.As(who), records.FeedbackFilter{Text: text}, "", models.MaxPageSize)
		if err != nil || len(page.Data) != found || page.HasMore != more {
			t.Errorf("%s finds %d with %q, more %t, want %d, %t: %v", who, len(page.Data), text, page.HasMore, found, more, err)
		}
	}
	search("ann", "rattles", 0, false)
	add(1, models.MaxPageSize)
	search("ann", "rattles", models.MaxPageSize, false)
	add(models.MaxPageSize+1, models.MaxPageSize+1)
	search("ann", "rattles", models.MaxPageSize, true)
	search("ann", "rattles loudly", 0, false)
	search("eve", "rattles", 0, false)
	add(models.MaxPageSize+2, 2000)
	search("eve", "rattles", 0, true)
}
