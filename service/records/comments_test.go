package records_test

import (
	"errors"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// comment comments on a record and returns the outcome.
func comment(s *servicetest.Harness, by, id, text string) string {
	s.T.Helper()
	return servicetest.Outcome(s.Records.AddComment(s.T.Context(), s.As(by), store.NoKey, id, text))
}

// quotes lists the latest comments on a record that a person reads, newest first.
func quotes(s *servicetest.Harness, by, id string) string {
	s.T.Helper()
	page, err := s.Records.HistoryPage(s.T.Context(), s.As(by), id, 0, 0)
	servicetest.Must(s.T, err)
	var found []string
	for _, change := range page.Changes {
		if change.CommentID() != "" {
			found = append(found, *change.ActorName+" "+string(change.Changes["comment"].To))
		}
	}
	return strings.Join(found, ", ")
}

// latestComment is the id of the latest comment on a record.
func latestComment(s *servicetest.Harness, id string) string {
	return servicetest.Value[string](s.Fixture, `SELECT id FROM comments WHERE record_id = $1 ORDER BY created_at DESC LIMIT 1`, id)
}

// A comment on a work order notifies its workers and consultants once each, and is a line of
// the history and the log. The record stays as it is, and no event is sent.
func TestACommentOnAWorkOrder(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"bob", "crew", "polar"}, []string{"cat"})
	s.ClearEffects(id)
	before, form := shownTo(s, "ann", id), ofForm(s, "bob", "one", "")
	servicetest.Must(t, s.Records.AddComment(t.Context(), s.As("bob"), form, id, "The belt is loose.\n<b>Look</b>"))
	servicetest.Expect(t, "the record", string(shownTo(s, "ann", id)), string(before))
	servicetest.Expect(t, "the notices", s.NoticesOf(id), "cat commented, dan commented, pia commented")
	servicetest.Expect(t, "the events", s.EventsOf(id), "")
	servicetest.Expect(t, "the Log Records", s.LogOf(id), "Bob Stone work_order.commented")
	servicetest.Expect(t, "the history", s.LastChange(id), `bob work_order.commented: comment_id null>"`+latestComment(s, id)+`"`)
	servicetest.Expect(t, "who reads it", quotes(s, "pia", id), `Bob Stone "The belt is loose.\n<b>Look</b>"`)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log WHERE log::text LIKE '%belt%'`) +
		servicetest.Value[int](s.Fixture, `SELECT count(*) FROM stored_responses WHERE convert_from(body, 'UTF8') LIKE '%belt%'`); n != 0 {
		t.Errorf("the text is in the log or in %d responses", n)
	}
	servicetest.Expect(t, "marks, so that its workflow mails the notices",
		servicetest.Value[int](s.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, id), 1)
	entries, err := s.Records.History(t.Context(), s.As("ann"), id)
	servicetest.Must(t, err)
	states, err := models.Rebuild(entries)
	if err != nil || states[len(states)-1].Record.ChangedAt != servicetest.Read[models.WorkOrderRecord](t, before).ChangedAt {
		t.Errorf("the history does not rebuild the work order: %v", err)
	}
	again := s.Records.AddComment(t.Context(), s.As("bob"), form, id, "The belt is loose.\n<b>Look</b>")
	if done, ok := errors.AsType[*store.FormDoneError](again); !ok || done.RecordID != id || strings.Count(quotes(s, "pia", id), "belt") != 1 {
		t.Errorf("the form comments twice: %v", again)
	}
	// A comment makes no other form stale, and is not the change that a stale one names.
	_, err = s.Records.HoldWorkOrder(t.Context(), s.As("bob"), ofForm(s, "bob", "two", store.ETag(before)), id)
	servicetest.Must(t, err)
	comment(s, "ann", id, "Why?")
	_, err = s.Records.ResumeWorkOrder(t.Context(), s.As("bob"), ofForm(s, "bob", "three", store.ETag(before)), id)
	if stale, ok := errors.AsType[*store.FormStaleError](err); !ok || stale.Action != "work_order.held" {
		t.Errorf("a stale form names the change: %v", err)
	}
}

// A comment on feedback notifies its creator, if a person, and the inventory managers.
func TestACommentOnFeedback(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read,feedback.create}' WHERE id = $1`, s.ID("working"))
	id := issue(s, "bob")
	before := servicetest.Value[string](s.Fixture, `SELECT f::text FROM feedback f WHERE id = $1`, id)
	servicetest.Expect(t, "cat", comment(s, "cat", id, "Since when?"), "ok")
	servicetest.Expect(t, "the notices", s.NoticesOf(id), "ann commented, bob commented")
	servicetest.Expect(t, "the events", s.EventsOf(id), "")
	servicetest.Expect(t, "the Log Records", s.LogOf(id), "Cat Rivers issue.commented")
	servicetest.Expect(t, "the feedback", servicetest.Value[string](s.Fixture, `SELECT f::text FROM feedback f WHERE id = $1`, id), before)
	s.ClearEffects(id)
	servicetest.Expect(t, "bob", comment(s, "bob", id, "Since Monday."), "ok")
	servicetest.Expect(t, "the notices of the creator's own", s.NoticesOf(id), "ann commented")
	detail, err := s.Records.FeedbackDetail(t.Context(), s.As("ann"), id, 0)
	if err != nil || len(detail.History.Changes) != 3 || string(detail.History.Changes[0].Changes["comment"].To) != `"Since Monday."` {
		t.Errorf("the page has %+v, %v", detail.History, err)
	}
	other := issue(s, "erp")
	servicetest.Expect(t, "on an integration's", comment(s, "cat", other, "Since when?"), "ok")
	servicetest.Expect(t, "its notices", s.NoticesOf(other), "ann commented")
}

// Everyone who reads a record comments on it, and no one else, whatever its status and that of
// the organization.
func TestWhoCommentsOnWhatAndWhen(t *testing.T) {
	s := servicetest.NewHarness(t)
	id, feedback := s.NewWorkOrder([]string{"bob", "polar"}, nil), issue(s, "erp")
	for by, want := range map[string]string{"ann": "ok", "bob": "ok", "pia": "ok", "ola": "not_found", "zed": "not_found", "eve": "not_found", "erp": "permission_denied", "outsider": "not_found"} {
		servicetest.Expect(t, by+" on a work order", comment(s, by, id, "Hello"), want)
	}
	for by, want := range map[string]string{"ann": "ok", "bob": "not_found", "pia": "not_found", "erp": "permission_denied"} {
		servicetest.Expect(t, by+" on feedback", comment(s, by, feedback, "Hello"), want)
	}
	for _, other := range []string{"wo_00000000000000000000000000", "iss_00000000000000000000000000", s.ID("ahu1"), "nonsense"} {
		servicetest.Expect(t, other, comment(s, "ann", other, "Hello"), "not_found")
	}
	for text, want := range map[string]string{
		"": "validation_failed", "\n": "validation_failed", "a\x00b": "validation_failed", "x": "ok",
		strings.Repeat("ä", models.MaxComment): "ok", strings.Repeat("x", models.MaxComment+1): "validation_failed",
	} {
		servicetest.Expect(t, models.Shorten(text), comment(s, "ann", id, text), want)
	}
	s.Exec(`UPDATE organizations SET read_only = true`)
	s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = now() WHERE id = $1`, id)
	s.Exec(`UPDATE feedback SET status = 'resolved', resolved_at = now() WHERE id = $1`, feedback)
	servicetest.Expect(t, "closed and read-only", comment(s, "pia", id, "Hello"), "ok")
	servicetest.Expect(t, "resolved and read-only", comment(s, "ann", feedback, "Hello"), "ok")
	s.Exec(`UPDATE organizations SET suspended = true WHERE id = $1`, s.Acme.OrganizationID)
	suspended := func() error { return s.Records.AddComment(t.Context(), s.As("pia"), store.NoKey, id, "Hello") }
	expectOutcome(t, s, "suspended", id, suspended, denied)
}

// Only an administrator of the record's organization removes a comment, for good. The line
// stays, and the log has who did it.
func TestAdministratorsRemoveComments(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE people SET admin = true WHERE id = ANY ($1)`, s.IDs("pia", "zed"))
	id, feedback := s.NewWorkOrder([]string{"bob", "polar"}, nil), issue(s, "ann")
	remove := func(by, comment string) string {
		t.Helper()
		_, shown := s.Records.CommentToRemove(t.Context(), s.As(by), comment)
		err := s.Records.RemoveComment(t.Context(), s.As(by), store.NoKey, comment)
		servicetest.Expect(t, "the page for "+by, servicetest.Outcome(shown), servicetest.Outcome(err))
		return servicetest.Outcome(err)
	}
	for record, topic := range map[string]string{id: "work_order", feedback: "issue"} {
		servicetest.Expect(t, "ann", comment(s, "ann", record, "Secret"), "ok")
		one := latestComment(s, record)
		servicetest.Expect(t, "another", comment(s, "ann", record, "Kept"), "ok")
		s.ClearEffects(record)
		reader := map[string]string{"work_order": "permission_denied", "issue": "not_found"}[topic]
		for by, want := range map[string]string{"bob": reader, "pia": reader, "zed": "not_found", "ola": "not_found"} {
			servicetest.Expect(t, by, remove(by, one), want)
		}
		servicetest.Expect(t, "an administrator", remove("ann", one), "ok")
		servicetest.Expect(t, "again", remove("ann", one), "ok")
		servicetest.Expect(t, "what is left", quotes(s, "ann", record), `Ann Field "Kept", Ann Field null`)
		servicetest.Expect(t, "the Log Records", s.LogOf(record), "Ann Field "+topic+".comment_removed")
		servicetest.Expect(t, "the notices", s.NoticesOf(record), "")
		servicetest.Expect(t, "secrets left",
			servicetest.Value[int](s.Fixture, `SELECT count(*) FROM comments WHERE text = 'Secret'`), 0)
	}
	for _, unknown := range []string{"cmt_00000000000000000000000000", id, "nonsense"} {
		servicetest.Expect(t, unknown, remove("ann", unknown), "not_found")
	}
}
