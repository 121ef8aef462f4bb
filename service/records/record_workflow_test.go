package records_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// dirty reports whether the record is marked dirty.
func dirty(s *servicetest.Harness, id string) bool {
	return servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM dirty_records WHERE record_id = $1)`, id)
}

// loaded returns the work order's state as its workflow loads it, which clears the dirty mark.
func loaded(s *servicetest.Harness, id string) records.WorkOrderState {
	s.T.Helper()
	state, err := s.Records.WorkOrderState(s.T.Context(), id, models.Time{})
	servicetest.Must(s.T, err)
	return state
}

// setTarget sets the work order's target date to a time from now; 0 clears it.
func setTarget(s *servicetest.Harness, id string, away time.Duration) *models.Time {
	s.T.Helper()
	var target *models.Time
	if away != 0 {
		at := models.TimeOf(s.Clock.Now().Add(away))
		target = &at
	}
	servicetest.Must(s.T, updates(s, "erp", id, records.WorkOrderPatch{TargetDate: sent(target)}))
	return target
}

// A work order's workflow is woken when its status or target date changes, and not because people are
// notified: that wakes the workflow that mails them.
func TestWritesThatConcernTheWorkflowMarkAndWake(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Service = s.NewInstance(servicetest.Mails)
	operates := func(who string, operation models.Operation) func(id string) error {
		return func(id string) error { return does(s, who, operation, id) }
	}
	for _, tt := range []struct {
		name   string
		status models.WorkOrderStatus
		write  func(id string) error
		dirty  bool
	}{
		{"a title", models.StatusOpen, operates("erp", models.OperationUpdate), false},
		{"a target date", models.StatusOpen, func(id string) error { setTarget(s, id, 72*time.Hour); return nil }, true},
		{"nothing at all", models.StatusOpen, func(id string) error { return updates(s, "erp", id, records.WorkOrderPatch{}) }, false},
		{"the first answers, which begin the work", models.StatusOpen, operates("erp", models.OperationAnswer), true},
		{"further answers", models.StatusInProgress, operates("erp", models.OperationAnswer), false},
		{"completion", models.StatusInProgress, operates("erp", models.OperationComplete), true},
		{"approval", models.StatusSentToInspection, operates("cat", models.OperationApprove), true},
		{"sending back", models.StatusSentToInspection, operates("cat", models.OperationSendBack), true},
		{"hold", models.StatusOpen, operates("ann", models.OperationHold), true},
		{"resumption", models.StatusOnHold, operates("ann", models.OperationResume), true},
		{"cancellation", models.StatusOpen, operates("erp", models.OperationCancel), true},
		{"an assignment", models.StatusOpen, func(id string) error { return assigns(s, "erp", id, []string{"bob"}, nil) }, false},
		{"an assignment after the end", models.StatusComplete, func(id string) error { return assigns(s, "erp", id, []string{"bob"}, nil) }, false},
		{"a removal", models.StatusOpen, func(id string) error { return removes(s, "erp", id, "cat") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := s.WorkOrderIn(tt.status)
			loaded(s, id)
			s.Exec(`DELETE FROM notices`)
			s.Clock.Advance(time.Second)
			s.Wakes.Take()
			servicetest.Must(t, tt.write(id))
			if dirty(s, id) != tt.dirty {
				t.Errorf("dirty: %v, want %v", dirty(s, id), tt.dirty)
			}
			wakes := s.Wakes.Take()
			woken := slices.Contains(wakes, store.WakeTarget{Kind: store.TargetWorkOrder, ID: id})
			if woken != tt.dirty {
				t.Errorf("woken: %v, want %v", woken, tt.dirty)
			}
			notified := servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM notices)`)
			servicetest.Expect(t, "the workflow of mail is woken, as people are notified", slices.Contains(wakes, store.WakeTarget{Kind: store.TargetMail, ID: s.Acme.OrganizationID}), notified)
		})
	}
	t.Run("a creation, but not its retry", func(t *testing.T) {
		key := store.ForCall("k", "POST", "/work-orders", []byte{1}, "")
		again := func() string {
			answer, err := s.Records.CreateWorkOrder(s.T.Context(), s.As("erp"), key, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Replace filter"})
			return s.MustWrite(answer, err).ID
		}
		id := again()
		if !dirty(s, id) || !slices.Contains(s.Wakes.Take(), store.WakeTarget{Kind: store.TargetWorkOrder, ID: id}) {
			t.Error("a new work order is not dirty and woken")
		}
		loaded(s, id)
		s.Wakes.Take()
		if again() != id || dirty(s, id) || len(s.Wakes.Take()) > 0 {
			t.Error("a retry marks or wakes")
		}
	})
	t.Run("feedback and its resolution", func(t *testing.T) {
		id := gives(s, "erp")
		wake := store.WakeTarget{Kind: store.TargetFeedback, ID: id}
		if !dirty(s, id) || !slices.Contains(s.Wakes.Take(), wake) {
			t.Error("new feedback is not dirty and woken")
		}
		state, err := s.Records.FeedbackState(s.T.Context(), id, models.Time{})
		if err != nil || state.ID != id || state.OrganizationID != s.Acme.OrganizationID || state.Status != models.FeedbackOpen {
			t.Errorf("the state is %+v, error %v", state, err)
		}
		if dirty(s, id) {
			t.Error("loading leaves the mark")
		}
		servicetest.Must(t, resolves(s, "ann", id))
		if !dirty(s, id) || !slices.Contains(s.Wakes.Take(), wake) {
			t.Error("resolved feedback is not dirty and woken")
		}
	})
	t.Run("not a rejected write", func(t *testing.T) {
		id := s.WorkOrderIn(models.StatusCancelled)
		loaded(s, id)
		s.Wakes.Take()
		if err := does(s, "erp", models.OperationCancel, id); err == nil || dirty(s, id) || len(s.Wakes.Take()) > 0 {
			t.Errorf("error %v; dirty: %v", err, dirty(s, id))
		}
	})
}

func TestSweepFindsDirtyRecords(t *testing.T) {
	s := servicetest.NewHarness(t)
	order, issue := s.NewWorkOrder([]string{"bob"}, nil), gives(s, "erp")
	wanted := []store.WakeTarget{
		{Kind: store.TargetWorkOrder, ID: order, OrganizationID: s.Acme.OrganizationID, Swept: true},
		{Kind: store.TargetFeedback, ID: issue, OrganizationID: s.Acme.OrganizationID, Swept: true},
	}
	unclaimed := func() (found []store.WakeTarget) {
		t.Helper()
		all, err := s.Upkeep.Unclaimed(t.Context(), 10*time.Second)
		servicetest.Must(t, err)
		for _, work := range all {
			if slices.Contains(wanted, work) {
				found = append(found, work)
			}
		}
		return found
	}
	s.Clock.Advance(time.Minute)
	if found := unclaimed(); len(found) != 0 {
		t.Errorf("within a minute it finds %v", found)
	}
	s.Clock.Advance(time.Second)
	if found := unclaimed(); len(found) != 2 {
		t.Errorf("it finds %v, want %v", found, wanted)
	}
	loaded(s, order)
	if found := unclaimed(); len(found) != 1 || found[0].ID != issue {
		t.Errorf("after the work order was loaded it finds %v", found)
	}
	servicetest.Must(t, servicetest.ErrorOf(s.Records.FeedbackState(t.Context(), issue, models.Time{})))
	if found := unclaimed(); len(found) != 0 {
		t.Errorf("after both were loaded it finds %v", found)
	}
}

// The sweep finds organizations with mail that is due: notices, links, and what waited for an attempt.
func TestSweepFindsDueMail(t *testing.T) {
	s := servicetest.NewHarness(t)
	acme := store.WakeTarget{Kind: store.TargetMail, ID: s.Acme.OrganizationID, OrganizationID: s.Acme.OrganizationID, Swept: true}
	expect := func(when string, of *service.Service, want bool) {
		t.Helper()
		all, err := of.Upkeep.Unclaimed(t.Context(), 10*time.Second)
		if err != nil || slices.Contains(all, acme) != want {
			t.Errorf("%s it finds %v, %v; want mail: %v", when, all, err, want)
		}
	}
	mailing := s.NewInstance(servicetest.Mails)
	s.NewWorkOrder([]string{"bob"}, nil)
	expect("at first", mailing, false)
	s.Clock.Advance(11 * time.Second)
	expect("without a mail server", s.Service, false)
	expect("after the grace", mailing, true)
	mails := s.ClaimMails(s.Acme.OrganizationID)
	expect("during an attempt", mailing, false)
	servicetest.Must(t, s.Effects.RecordMail(t.Context(), mails[0], people.MailOutcome{Status: people.MailWaiting}))
	s.Clock.Advance(15 * time.Second)
	expect("when the next attempt is due", mailing, false)
	s.Clock.Advance(11 * time.Second)
	expect("when it is overdue", mailing, true)
	s.Exec(`DELETE FROM notices`)
	expect("without notices", mailing, false)
	_, err := mailing.People.NewPersonLink(t.Context(), s.As("ann"), store.NoKey, s.ID("bob"), false)
	servicetest.Must(t, err)
	s.Exec(`DELETE FROM notices`)
	s.Clock.Advance(11 * time.Second)
	expect("with a link", mailing, true)
}

// Loading that clears a mark sees the write that set it, even if that write had not
// committed when loading began.
func TestNoWriteIsLostBetweenMarkAndLoad(t *testing.T) {
	const afterTheMark = "AFTER INSERT OR UPDATE ON dirty_records FOR EACH ROW"
	cancel := func(s *servicetest.Harness, id string) func() error {
		return func() error {
			return servicetest.ErrorOf(s.Records.CancelWorkOrder(context.WithoutCancel(s.T.Context()), s.As("erp"), store.NoKey, id, nil))
		}
	}
	inBackground := func(do func() error) <-chan error {
		done := make(chan error, 1)
		go func() { done <- do() }()
		return done
	}
	t.Run("loading waits for a writer that set an old mark again", func(t *testing.T) {
		s := servicetest.NewHarness(t)
		id := s.NewWorkOrder([]string{"bob"}, nil)
		s.As("erp")
		release := servicetest.Hold(t, s.Fixture, afterTheMark)
		written := inBackground(cancel(s, id))
		servicetest.AwaitLocks(t, s.Fixture, 1)
		var state records.WorkOrderState
		looked := inBackground(func() (err error) {
			state, err = s.Records.WorkOrderState(context.WithoutCancel(t.Context()), id, models.Time{})
			return err
		})
		servicetest.AwaitLocks(t, s.Fixture, 2)
		release()
		servicetest.Must(t, <-written, <-looked)
		if state.Status != models.StatusCancelled || dirty(s, id) {
			t.Errorf("the loaded status is %s; dirty: %v", state.Status, dirty(s, id))
		}
	})
	t.Run("a new mark is left for the next load", func(t *testing.T) {
		s := servicetest.NewHarness(t)
		id := s.NewWorkOrder([]string{"bob"}, nil)
		loaded(s, id)
		release := servicetest.Hold(t, s.Fixture, afterTheMark)
		written := inBackground(cancel(s, id))
		servicetest.AwaitLocks(t, s.Fixture, 1)
		if state := loaded(s, id); state.Status != models.StatusOpen {
			t.Errorf("loading sees uncommitted data: %s", state.Status)
		}
		release()
		servicetest.Must(t, <-written)
		if !dirty(s, id) {
			t.Fatal("the write is lost")
		}
		if state := loaded(s, id); state.Status != models.StatusCancelled || dirty(s, id) {
			t.Errorf("the next loaded status is %s; dirty: %v", state.Status, dirty(s, id))
		}
	})
	t.Run("a write during loading sets the mark again", func(t *testing.T) {
		s := servicetest.NewHarness(t)
		id := s.NewWorkOrder([]string{"bob"}, nil)
		look := servicetest.Begin(t, s.Fixture)
		servicetest.ExecIn(t, look, `DELETE FROM dirty_records WHERE record_id = $1`, id)
		written := inBackground(cancel(s, id))
		servicetest.AwaitLocks(t, s.Fixture, 1)
		servicetest.Must(t, look.Commit(t.Context()))
		servicetest.Must(t, <-written)
		if !dirty(s, id) {
			t.Error("the write is lost")
		}
	})
}

func TestWorkOrderState(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx := t.Context()
	id := s.NewWorkOrder([]string{"bob", "erp"}, []string{"cat"})
	hour := func(n int) models.Time { return models.TimeOf(servicetest.Start.Add(time.Duration(n) * time.Hour)) }
	is := func(what string, got *models.Time, want int) {
		t.Helper()
		switch {
		case want < 0 && got != nil:
			t.Errorf("%s: %v, want none", what, got)
		case want >= 0 && (got == nil || !got.Equal(hour(want).Time)):
			t.Errorf("%s: %v, want %v", what, got, hour(want))
		}
	}
	at := func(n int) { s.Clock.Advance(hour(n).Sub(s.Clock.Now())) }

	state := loaded(s, id)
	if state.ID != id || state.OrganizationID != s.Acme.OrganizationID || state.Status != models.StatusOpen {
		t.Errorf("a new work order: %+v", state)
	}
	at(1)
	target := setTarget(s, id, 99*time.Hour) // at hour 100
	at(2)
	servicetest.Must(t, does(s, "erp", models.OperationUpdate, id))
	state = loaded(s, id)
	is("target date", state.TargetDate, 100)
	is("set at", state.TargetSetAt, 1)
	is("in review since", state.InReviewSince, -1)
	is("loaded at", &state.LoadedAt, 2)
	if state.Review != s.Store.ReviewPeriods || state.Review.Reminder == 0 {
		t.Errorf("review periods %v, want %v", state.Review, s.Store.ReviewPeriods)
	}
	at(3)
	setTarget(s, id, 50*time.Hour)
	at(4)
	setTarget(s, id, target.Sub(s.Clock.Now()))
	is("set again at", loaded(s, id).TargetSetAt, 4)
	at(5)
	servicetest.Must(t, does(s, "erp", models.OperationComplete, id))
	at(6)
	servicetest.Must(t, assigns(s, "erp", id, nil, []string{"dan"}))
	is("in review since", loaded(s, id).InReviewSince, 5)
	at(7)
	servicetest.Must(t, does(s, "cat", models.OperationSendBack, id))
	is("sent back, in review since", loaded(s, id).InReviewSince, -1)
	at(8)
	servicetest.Must(t, does(s, "erp", models.OperationComplete, id))
	state = loaded(s, id)
	is("in its second review since", state.InReviewSince, 8)
	if reminders := servicetest.Reminders(state.Dates, s.Clock.Now()); len(reminders) != 4 {
		t.Errorf("reminders %v, want two of the date and two of the review", reminders)
	}
	at(9)
	servicetest.Must(t, does(s, "cat", models.OperationApprove, id))
	if state = loaded(s, id); state.Status != models.StatusComplete || len(servicetest.Reminders(state.Dates, s.Clock.Now())) != 0 {
		t.Errorf("in the end: %+v", state)
	}

	s.Exec(`DELETE FROM work_orders WHERE id = $1`, id)
	if state, err := s.Records.WorkOrderState(ctx, id, models.Time{}); err != nil || state.ID != "" {
		t.Errorf("a missing work order is %+v, error %v", state, err)
	}
	if state, err := s.Records.FeedbackState(ctx, id, models.Time{}); err != nil || state.ID != "" {
		t.Errorf("missing feedback is %+v, error %v", state, err)
	}
}

// Answers wake no one: the next load counts them. Optional questions and other work orders' answers do not count.
func TestWorkOrderStateCountsAnswersToRequiredQuestions(t *testing.T) {
	s := servicetest.NewHarness(t)
	form, answered := s.ID("inspection"), []records.GivenAnswer{{QuestionID: s.ID("q_state"), Value: s.ID("o_ok")}, {QuestionID: s.ID("q_note"), Value: "Quiet"}}
	var ids [2]string
	for i := range ids {
		ids[i] = s.MustWrite(s.Records.CreateWorkOrder(t.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: "Replace filter", FormID: &form, Assignees: s.IDs("erp"),
		})).ID
	}
	s.MustWrite(s.Records.AnswerWorkOrder(t.Context(), s.As("erp"), store.NoKey, ids[0], answered, records.SaveAnswers))
	for i, want := range []int{1, 0} {
		if state := loaded(s, ids[i]); state.Required != 2 || state.Answered != want {
			t.Errorf("%d of %d required questions are answered, want %d of 2", state.Answered, state.Required, want)
		}
	}
	s.Exec(`UPDATE questions SET retired = true WHERE id = $1`, s.ID("q_hours"))
	if state := loaded(s, ids[0]); state.Required != 1 || state.Answered != 1 {
		t.Errorf("with a retired question %d of %d are answered", state.Answered, state.Required)
	}
}

// Workflow histories keep the state.
func TestWorkOrderStateHoldsNoNames(t *testing.T) {
	s := servicetest.NewHarness(t)
	const secret = "Quarrington"
	text := secret
	at := models.TimeOf(s.Clock.Now().Add(time.Hour))
	answer, err := s.Records.CreateWorkOrder(t.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: secret, Description: &text, ExternalID: &text, TargetDate: &at, Assignees: s.IDs("bob"),
	})
	id := s.MustWrite(answer, err).ID
	said, err := json.Marshal(loaded(s, id))
	servicetest.Must(t, err)
	for _, word := range []string{secret, "Bob", "bob@", "Field", "AHU", "Acme"} {
		if strings.Contains(string(said), word) {
			t.Errorf("it names %s: %s", word, said)
		}
	}
}

func TestLoadsReturnTheTransitionsAfterATime(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"erp"}, []string{"cat"})
	transitions := func(after models.Time) string {
		t.Helper()
		state, err := s.Records.WorkOrderState(t.Context(), id, after)
		servicetest.Must(t, err)
		return servicetest.Listed(state.Transitions, func(tr records.Transition) string {
			return tr.From + ">" + tr.To + " " + s.WithKeys(tr.By) + " " + tr.At.Sub(servicetest.Start).String()
		})
	}
	s.Clock.Advance(time.Hour)
	setTarget(s, id, 99*time.Hour)
	servicetest.Must(t, does(s, "erp", models.OperationComplete, id))
	second := loaded(s, id).Transitions[1].At
	// The clock does not advance: the times of a record's changes differ all the same.
	servicetest.Must(t, does(s, "cat", models.OperationSendBack, id))
	servicetest.Must(t, does(s, "ann", models.OperationHold, id))
	servicetest.Expect(t, "all", transitions(models.Time{}), ">open erp 0s, open>sent_to_inspection erp 1h0m0.001s, "+
		"sent_to_inspection>back_from_inspection cat 1h0m0.002s, back_from_inspection>on_hold ann 1h0m0.003s")
	servicetest.Expect(t, "after the second", transitions(second), "sent_to_inspection>back_from_inspection cat 1h0m0.002s, back_from_inspection>on_hold ann 1h0m0.003s")

	issue := gives(s, "erp")
	servicetest.Must(t, resolves(s, "ann", issue))
	state, err := s.Records.FeedbackState(t.Context(), issue, models.Time{})
	if err != nil || len(state.Transitions) != 2 || state.Transitions[1].From != "open" || state.Transitions[1].To != "resolved" || state.Transitions[1].By != s.ID("ann") {
		t.Errorf("feedback's state is %+v, error %v", state, err)
	}
}

func TestLoadsReturnTheNewestTransitions(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.WorkOrderIn(models.StatusOpen)
	s.Exec(`INSERT INTO log (organization_id, record_id, actor_id, action, changes, created_at)
		SELECT $2, $1, $3, 'work_order.held', '{"status": {"from": "open", "to": "on_hold"}}', $4::timestamptz + n * interval '1 second'
		FROM generate_series(1, 300) n`, id, s.Acme.OrganizationID, s.ID("ann"), servicetest.Start)
	found := loaded(s, id).Transitions
	if last := found[len(found)-1].At.Sub(servicetest.Start); len(found) != 200 || last != 300*time.Second || !found[0].At.Before(found[1].At.Time) {
		t.Errorf("%d transitions until %v, want the newest 200, oldest first", len(found), last)
	}
}
