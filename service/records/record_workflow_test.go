package records_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
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
	if err != nil {
		s.T.Fatal(err)
	}
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
	s.MustWrite(s.Records.UpdateWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, records.WorkOrderPatch{
		TargetDate: records.Sent[*models.Time]{Value: target, Set: true},
	}))
	return target
}

// complete completes the work order as the ERP.
func complete(s *servicetest.Harness, id string) {
	s.T.Helper()
	s.MustWrite(s.Records.AnswerWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil, records.CompleteWork))
}

// feedback creates feedback as the ERP, of which ann is notified.
func feedback(s *servicetest.Harness) string {
	s.T.Helper()
	answer, err := s.Records.CreateFeedback(s.T.Context(), s.As("erp"), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"})
	if err != nil {
		s.T.Fatal(err)
	}
	return answer.RecordID
}

// A work order's workflow is woken when its status or target date changes, and not because people are
// notified: that wakes the workflow that mails them.
func TestWritesThatConcernTheWorkflowMarkAndWake(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Service = s.NewInstance(servicetest.Mails)
	text := func(v string) records.Sent[string] { return records.Sent[string]{Value: v, Set: true} }
	tests := []struct {
		name   string
		status models.WorkOrderStatus
		write  func(id string) (store.WriteResult, error)
		dirty  bool
	}{
		{"a title", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.UpdateWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, records.WorkOrderPatch{Title: text("Replace both filters")})
		}, false},
		{"a target date", models.StatusOpen, func(id string) (store.WriteResult, error) {
			at := models.TimeOf(s.Clock.Now().Add(72 * time.Hour))
			return s.Records.UpdateWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, records.WorkOrderPatch{
				TargetDate: records.Sent[*models.Time]{Value: &at, Set: true},
			})
		}, true},
		{"nothing at all", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.UpdateWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, records.WorkOrderPatch{})
		}, false},
		{"the first answers, which begin the work", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.AnswerWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil, records.SaveAnswers)
		}, true},
		{"further answers", models.StatusInProgress, func(id string) (store.WriteResult, error) {
			return s.Records.AnswerWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil, records.SaveAnswers)
		}, false},
		{"completion", models.StatusInProgress, func(id string) (store.WriteResult, error) {
			return s.Records.AnswerWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil, records.CompleteWork)
		}, true},
		{"approval", models.StatusSentToInspection, func(id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(s.T.Context(), s.As("cat"), store.NoKey, id, records.Review{Approve: true})
		}, true},
		{"sending back", models.StatusSentToInspection, func(id string) (store.WriteResult, error) {
			return s.Records.ReviewWorkOrder(s.T.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."})
		}, true},
		{"hold", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.HoldWorkOrder(s.T.Context(), s.As("ann"), store.NoKey, id)
		}, true},
		{"resumption", models.StatusOnHold, func(id string) (store.WriteResult, error) {
			return s.Records.ResumeWorkOrder(s.T.Context(), s.As("ann"), store.NoKey, id)
		}, true},
		{"cancellation", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.CancelWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil)
		}, true},
		{"an assignment", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.AssignWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob"), nil)
		}, false},
		{"an assignment after the end", models.StatusComplete, func(id string) (store.WriteResult, error) {
			return s.Records.AssignWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob"), nil)
		}, false},
		{"a removal", models.StatusOpen, func(id string) (store.WriteResult, error) {
			return s.Records.UnassignWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, s.ID("cat"))
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := s.WorkOrderIn(tt.status)
			loaded(s, id)
			s.Exec(`DELETE FROM notices`)
			s.Clock.Advance(time.Second)
			s.Wakes.Take()
			s.MustWrite(tt.write(id))
			if dirty(s, id) != tt.dirty {
				t.Errorf("dirty: %v, want %v", dirty(s, id), tt.dirty)
			}
			wakes := s.Wakes.Take()
			woken := slices.Contains(wakes, store.WakeTarget{Kind: store.TargetWorkOrder, ID: id})
			if woken != tt.dirty {
				t.Errorf("woken: %v, want %v", woken, tt.dirty)
			}
			notified := servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM notices)`)
			if mailed := slices.Contains(wakes, store.WakeTarget{Kind: store.TargetMail, ID: s.Acme.OrganizationID}); mailed != notified {
				t.Errorf("people are notified: %v, but their mail's workflow is woken: %v", notified, mailed)
			}
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
		id := feedback(s)
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
		if err := resolve(s, "ann", id); err != nil {
			t.Fatal(err)
		}
		if !dirty(s, id) || !slices.Contains(s.Wakes.Take(), wake) {
			t.Error("resolved feedback is not dirty and woken")
		}
	})
	t.Run("not a rejected write", func(t *testing.T) {
		id := s.WorkOrderIn(models.StatusCancelled)
		loaded(s, id)
		s.Wakes.Take()
		if _, err := s.Records.CancelWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil); err == nil || dirty(s, id) || len(s.Wakes.Take()) > 0 {
			t.Errorf("error %v; dirty: %v", err, dirty(s, id))
		}
	})
}

func TestSweepFindsDirtyRecords(t *testing.T) {
	s := servicetest.NewHarness(t)
	order, issue := s.NewWorkOrder([]string{"bob"}, nil), feedback(s)
	wanted := []store.WakeTarget{
		{Kind: store.TargetWorkOrder, ID: order, OrganizationID: s.Acme.OrganizationID, Swept: true},
		{Kind: store.TargetFeedback, ID: issue, OrganizationID: s.Acme.OrganizationID, Swept: true},
	}
	unclaimed := func() (found []store.WakeTarget) {
		t.Helper()
		all, err := s.Upkeep.Unclaimed(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
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
	if _, err := s.Records.FeedbackState(t.Context(), issue, models.Time{}); err != nil {
		t.Fatal(err)
	}
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
	if err := s.Effects.RecordMail(t.Context(), mails[0], people.MailOutcome{Status: people.MailWaiting}); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(15 * time.Second)
	expect("when the next attempt is due", mailing, false)
	s.Clock.Advance(11 * time.Second)
	expect("when it is overdue", mailing, true)
	s.Exec(`DELETE FROM notices`)
	expect("without notices", mailing, false)
	if _, err := mailing.People.NewPersonLink(t.Context(), s.As("ann"), store.NoKey, s.ID("bob"), false); err != nil {
		t.Fatal(err)
	}
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
			_, err := s.Records.CancelWorkOrder(context.WithoutCancel(s.T.Context()), s.As("erp"), store.NoKey, id, nil)
			return err
		}
	}
	inBackground := func(do func() error) func(t *testing.T) {
		done := make(chan error, 1)
		go func() { done <- do() }()
		return func(t *testing.T) {
			t.Helper()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
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
		written(t)
		looked(t)
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
		written(t)
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
		look, err := s.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = look.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := look.Exec(t.Context(), `DELETE FROM dirty_records WHERE record_id = $1`, id); err != nil {
			t.Fatal(err)
		}
		written := inBackground(cancel(s, id))
		servicetest.AwaitLocks(t, s.Fixture, 1)
		if err := look.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		written(t)
		if !dirty(s, id) {
			t.Error("the write is lost")
		}
	})
	t.Run("constant loading during many writes ends with the newest state", func(t *testing.T) {
		s := servicetest.NewHarness(t)
		id := s.NewWorkOrder([]string{"bob"}, nil)
		var writers sync.WaitGroup
		ctx, erp := context.WithoutCancel(t.Context()), s.As("erp")
		for w := range 4 {
			writers.Go(func() {
				for n := range 15 {
					at := models.TimeOf(servicetest.Start.Add(time.Duration(1000*w+n) * time.Hour))
					_, err := s.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{
						TargetDate: records.Sent[*models.Time]{Value: &at, Set: true},
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { writers.Wait(); close(done) }()
		var state records.WorkOrderState
		for looking := true; looking; {
			select {
			case <-done:
				looking = false
			default:
				state = loaded(s, id)
			}
		}
		if !dirty(s, id) {
			now := servicetest.Value[models.Time](s.Fixture, `SELECT target_date FROM work_orders WHERE id = $1`, id)
			if state.TargetDate == nil || !state.TargetDate.Equal(now.Time) {
				t.Errorf("without a mark the last loaded date is %v, want %v", state.TargetDate, now)
			}
		}
	})
}

func TestWorkOrderState(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx := t.Context()
	id := s.NewWorkOrder([]string{"bob", "erp"}, []string{"cat"})
	hour := func(n int) models.Time {
		return models.TimeOf(servicetest.Start.Add(time.Duration(n) * time.Hour))
	}
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
	s.MustWrite(s.Records.UpdateWorkOrder(ctx, s.As("erp"), store.NoKey, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Both filters", Set: true}}))
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
	complete(s, id)
	at(6)
	s.MustWrite(s.Records.AssignWorkOrder(ctx, s.As("erp"), store.NoKey, id, nil, s.IDs("dan")))
	is("in review since", loaded(s, id).InReviewSince, 5)
	at(7)
	s.MustWrite(s.Records.ReviewWorkOrder(ctx, s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."}))
	is("sent back, in review since", loaded(s, id).InReviewSince, -1)
	at(8)
	complete(s, id)
	state = loaded(s, id)
	is("in its second review since", state.InReviewSince, 8)
	if reminders := servicetest.Reminders(state.Dates, s.Clock.Now()); len(reminders) != 4 {
		t.Errorf("reminders %v, want two of the date and two of the review", reminders)
	}
	at(9)
	s.MustWrite(s.Records.ReviewWorkOrder(ctx, s.As("cat"), store.NoKey, id, records.Review{Approve: true}))
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, tr := range state.Transitions {
			lines = append(lines, tr.From+">"+tr.To+" "+s.WithKeys(tr.By)+" "+tr.At.Sub(servicetest.Start).String())
		}
		return strings.Join(lines, ", ")
	}
	s.Clock.Advance(time.Hour)
	setTarget(s, id, 99*time.Hour)
	complete(s, id)
	second := loaded(s, id).Transitions[1].At
	// The clock does not advance: the times of a record's changes differ all the same.
	s.MustWrite(s.Records.ReviewWorkOrder(t.Context(), s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."}))
	s.MustWrite(s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, id))
	servicetest.Expect(t, "all", transitions(models.Time{}), ">open erp 0s, open>sent_to_inspection erp 1h0m0.001s, "+
		"sent_to_inspection>back_from_inspection cat 1h0m0.002s, back_from_inspection>on_hold ann 1h0m0.003s")
	servicetest.Expect(t, "after the second", transitions(second), "sent_to_inspection>back_from_inspection cat 1h0m0.002s, back_from_inspection>on_hold ann 1h0m0.003s")

	issue := feedback(s)
	if err := resolve(s, "ann", issue); err != nil {
		t.Fatal(err)
	}
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
