package workflows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// recordActivities is what the workflows WorkOrder and Feedback ask of the world.
// The real activities and the desk's are of this shape.
type (
	recordActivities interface {
		LookAtWorkOrder(ctx context.Context, id string) (service.WorkOrderState, error)
		RemindOfWorkOrder(ctx context.Context, id string, reminder models.Reminder) (activities.ReminderResult, error)
		LookAtFeedback(ctx context.Context, id string) (service.FeedbackState, error)
	}
	noticeActivities interface {
		MailNotices(ctx context.Context, recordID string) (activities.MailResult, error)
	}
)

var (
	_, _ recordActivities = (*activities.Records)(nil), (*desk)(nil)
	_, _ noticeActivities = (*activities.Notices)(nil), (*desk)(nil)
)

// desk is the world around one record: its row, the notices about it, the mail
// server, and what people do to it while its workflow runs. It was created at 0.
type desk struct {
	t    reporter
	seen *observer
	// runs the workflow: a work order's or feedback's.
	workflow func(env *testsuite.TestWorkflowEnvironment, reminded []models.Reminder)

	// down says when the database cannot be reached, mailDown when the mail
	// server takes no mail; nil is never.
	down, mailDown func(at time.Duration) bool
	// duringLook and duringMail are called in the middle of the n-th look, after it
	// has read, and of the n-th mailing, after it has claimed.
	duringLook, duringMail func(n int)
	// alwaysNew has Temporal suggest after every step to continue as new.
	alwaysNew bool

	env     *testsuite.TestWorkflowEnvironment
	planned []plan
	running bool
	runs    int
	starts  int
	ended   time.Duration
	err     error

	mu       sync.Mutex
	id       string
	status   string
	dates    models.Dates
	gone     bool
	workers  []string
	advisers []string // the consultants
	notices  []*leaf
	marked   bool // the workflow owes a look
	looks    []time.Duration
	tries    []time.Duration // of any local activity, also those that failed
	mailings []time.Duration
}

// leaf is a notice.
type leaf struct {
	person, kind string
	about        models.Time // of a reminder
	mailed       bool
	mailedAt     time.Duration
}

// newDesk returns a work order of the worker wim that was just created.
func newDesk(t reporter) *desk {
	d := &desk{t: t, seen: &observer{poked: true}, id: recordID, workers: []string{"wim"}}
	d.workflow = func(env *testsuite.TestWorkflowEnvironment, reminded []models.Reminder) {
		env.ExecuteWorkflow(WorkOrder, recordID, reminded)
	}
	d.move(models.StatusOpen)
	d.tell("assigned", "wim")
	d.marked = true
	return d
}

// newFeedbackDesk returns feedback that the manager mia was just given.
func newFeedbackDesk(t reporter) *desk {
	d := newDesk(t)
	d.id, d.workers, d.notices = feedbackID, nil, nil
	d.status = string(models.FeedbackOpen)
	d.workflow = func(env *testsuite.TestWorkflowEnvironment, _ []models.Reminder) {
		env.ExecuteWorkflow(Feedback, feedbackID)
	}
	d.tell("opened", "mia")
	return d
}

const feedbackID = "iss_01jd8q4v6cf5e8hbbfwj0zq3tu"

// write is a change of the record at a time, with its poke after the commit.
func (d *desk) write(when string, change func()) { d.plan(when, change, true) }

// writeUnheard is a change whose poke is lost; the mark stays.
func (d *desk) writeUnheard(when string, change func()) { d.plan(when, change, false) }

func (d *desk) plan(when string, change func(), poked bool) {
	d.planned = append(d.planned, plan{at: durations(when)[0], do: func() {
		d.mu.Lock()
		change()
		d.marked = true
		d.mu.Unlock()
		if poked {
			d.wake()
		}
	}})
}

// wake signals the workflow; one that does not run is started with the poke.
func (d *desk) wake() {
	if d.running {
		d.env.SignalWorkflow(SignalWake, nil)
	}
}

// now is the time since the beginning.
func (d *desk) now() time.Duration {
	if d.env == nil {
		return 0
	}
	return d.env.Now().Sub(began)
}

// move sets the work order's status.
func (d *desk) move(status models.WorkOrderStatus) {
	d.status, d.dates.Status = string(status), status
	d.dates.InReviewSince = nil
	if status == models.StatusSentToInspection {
		d.dates.InReviewSince = d.at(d.now())
	}
}

// aim sets the target date to a time since the beginning, "" clears it.
func (d *desk) aim(when string) {
	d.dates.TargetDate, d.dates.TargetSetAt = nil, d.at(d.now())
	if when != "" {
		d.dates.TargetDate = d.at(durations(when)[0])
	}
}

func (d *desk) at(since time.Duration) *models.Time {
	at := models.TimeOf(began.Add(since))
	return &at
}

// tell leaves notices for people.
func (d *desk) tell(kind string, people ...string) {
	for _, p := range people {
		d.notices = append(d.notices, &leaf{person: p, kind: kind})
	}
}

// run runs the workflow to its end, over all the runs it continues in and all
// the times it is started again by what happens afterwards.
func (d *desk) run() {
	d.t.Helper()
	for start := began; ; {
		d.starts++
		d.goThrough(start)
		next := -1
		for i, p := range d.planned {
			if !p.done && (next < 0 || p.at < d.planned[next].at) {
				next = i
			}
		}
		if next < 0 || d.err != nil {
			return
		}
		start = began.Add(d.planned[next].at)
		d.env = newEnvironment(start, d.seen)
		d.planned[next].done = true
		d.planned[next].do()
		d.seen.poked = true
	}
}

// goThrough runs the workflow until it ends without continuing as new.
func (d *desk) goThrough(start time.Time) {
	var reminded []models.Reminder
	for {
		d.runs++
		d.env = newEnvironment(start, d.seen)
		d.env.SetContinueAsNewSuggested(d.alwaysNew)
		d.env.RegisterActivity(d)
		for i := range d.planned {
			if p := &d.planned[i]; !p.done {
				d.env.RegisterDelayedCallback(func() { p.done = true; p.do() }, max(1, p.at-start.Sub(began)))
			}
		}
		d.running = true
		d.workflow(d.env, reminded)
		d.running = false
		d.ended, d.err = d.now(), d.env.GetWorkflowError()
		next, anew := errors.AsType[*workflow.ContinueAsNewError](d.err)
		if !anew || d.runs > maxCalls {
			return
		}
		d.seen.poked = false // the new run starts without a signal
		start, reminded = d.env.Now(), continued(d.t, next)
	}
}

// reach does something in the database, if it can be reached.
func (d *desk) reach(id string, do func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries = append(d.tries, d.now())
	if len(d.tries) == maxCalls {
		d.t.Errorf("the workflow goes round in circles at %v", d.now())
		d.env.CancelWorkflow()
	}
	if id != d.id {
		d.t.Errorf("an activity was asked about %q", id)
	}
	if d.down != nil && d.down(d.now()) {
		return errors.New("the database cannot be reached")
	}
	do()
	return nil
}

// looked is called with the lock held when the state was read.
func (d *desk) looked() {
	d.marked = false
	d.looks = append(d.looks, d.now())
	if n := len(d.looks); d.duringLook != nil {
		d.mu.Unlock()
		d.duringLook(n)
		d.mu.Lock()
	}
}

func (d *desk) waiting() bool {
	return slices.ContainsFunc(d.notices, func(l *leaf) bool { return !l.mailed })
}

// LookAtWorkOrder returns the row.
func (d *desk) LookAtWorkOrder(_ context.Context, id string) (state service.WorkOrderState, err error) {
	err = d.reach(id, func() { state = d.workOrder(); d.looked() })
	return state, err
}

// workOrder is the row with what goes with it, empty when it is gone.
func (d *desk) workOrder() service.WorkOrderState {
	if d.gone {
		return service.WorkOrderState{}
	}
	return service.WorkOrderState{
		ID: d.id, OrganizationID: organizationID, Dates: d.dates, Mail: d.waiting(),
		Reminders: d.dates.Reminders(*d.at(d.now())),
	}
}

// RemindOfWorkOrder leaves the notices of a reminder once for each person.
func (d *desk) RemindOfWorkOrder(_ context.Context, id string, reminder models.Reminder) (after activities.ReminderResult, err error) {
	err = d.reach(id, func() {
		if !d.gone {
			after.Applied = slices.ContainsFunc(d.dates.Reminders(*d.at(d.now())), func(r models.Reminder) bool {
				return r.Is(reminder.Kind, reminder.About)
			})
		}
		if after.Applied {
			d.remind(reminder)
		}
		after.State = d.workOrder()
		d.looked()
	})
	return after, err
}

func (d *desk) remind(reminder models.Reminder) {
	people := d.workers
	if reminder.Role() == models.RoleConsultant {
		people = d.advisers
	}
	kind := strings.TrimPrefix(string(reminder.Kind), "work_order.")
	for _, p := range people {
		if !slices.ContainsFunc(d.notices, func(l *leaf) bool {
			return l.person == p && l.kind == kind && l.about.Equal(reminder.About.Time)
		}) {
			d.notices = append(d.notices, &leaf{person: p, kind: kind, about: reminder.About})
		}
	}
}

// LookAtFeedback returns the row.
func (d *desk) LookAtFeedback(_ context.Context, id string) (state service.FeedbackState, err error) {
	err = d.reach(id, func() {
		if !d.gone {
			state = service.FeedbackState{ID: d.id, OrganizationID: organizationID, Status: models.FeedbackStatus(d.status), Mail: d.waiting()}
		}
		d.looked()
	})
	return state, err
}

// MailNotices mails what waits, unless the mail server is down.
func (d *desk) MailNotices(_ context.Context, id string) (activities.MailResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id != d.id {
		d.t.Errorf("notices of %q are mailed", id)
	}
	d.mailings = append(d.mailings, d.now())
	if d.mailDown != nil && d.mailDown(d.now()) {
		return activities.MailResult{}, errors.New("the mail server refused the connection")
	}
	claimed := slices.DeleteFunc(slices.Clone(d.notices), func(l *leaf) bool { return l.mailed })
	if n := len(d.mailings); d.duringMail != nil {
		d.mu.Unlock()
		d.duringMail(n)
		d.mu.Lock()
	}
	for _, l := range claimed {
		if l.mailed {
			d.t.Errorf("%s is mailed twice to %s", l.kind, l.person)
		}
		l.mailed, l.mailedAt = true, d.now()
	}
	return activities.MailResult{Sent: len(claimed)}, nil
}

// told checks who was told what when: "0s assigned wim, 48h due_soon wim".
func (d *desk) told(want string) {
	d.t.Helper()
	var got, lines []string
	for _, l := range d.notices {
		switch {
		case l.mailed:
			got = append(got, fmt.Sprintf("%v %s %s", l.mailedAt, l.kind, l.person))
		default:
			got = append(got, fmt.Sprintf("never %s %s", l.kind, l.person))
		}
	}
	for line := range strings.SplitSeq(want, ", ") {
		when, what, _ := strings.Cut(line, " ")
		if line != "" {
			lines = append(lines, fmt.Sprintf("%v %s", durations(when)[0], what))
		}
	}
	if !slices.Equal(got, lines) {
		d.t.Errorf("told were\n\t%s,\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// closed checks when the workflow ended for the last time, without an error and
// with nothing owed.
func (d *desk) closed(when string) {
	d.t.Helper()
	if d.err != nil {
		d.t.Errorf("the workflow ended with the error %v", d.err)
	}
	if want := durations(when)[0]; d.ended != want {
		d.t.Errorf("the workflow ended at %v, want %v", d.ended, want)
	}
	if d.marked {
		d.t.Errorf("the workflow ended at %v and owes a look", d.ended)
	}
}

// inBothWays runs a test with a workflow that goes through in one run, and with
// one that begins anew whenever it can.
func inBothWays(t *testing.T, newOne func(reporter) *desk, test func(t *testing.T, d *desk)) {
	t.Helper()
	for _, anew := range []bool{false, true} {
		t.Run(map[bool]string{false: "in one run", true: "continued as new after every step"}[anew], func(t *testing.T) {
			d := newOne(t)
			d.alwaysNew = anew
			test(t, d)
			if anew && d.runs <= d.starts {
				t.Error("it never continued as new")
			}
		})
	}
}
