package workflows

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
)

// mailHarness runs the Mail workflow with a fake of its activity.
type mailHarness struct {
	harness
	// results are the results of SendMail, in order. No mail waits after them.
	results []activities.MailResult
	// down says when the database is unreachable; nil is never.
	down func(at time.Duration) bool
	// during is called during each SendMail, with its number from 1.
	during func(number int)

	sends []time.Duration
}

func newMailHarness(t *testing.T, results ...activities.MailResult) *mailHarness {
	return &mailHarness{harness: newHarness(t), results: results}
}

// mailWaits is a result after which the next attempt is at a time after the beginning.
func mailWaits(next string) activities.MailResult {
	return activities.MailResult{Sent: 1, PutOff: 1, Waiting: 3, Oldest: timeAt(0), NextAt: timeAt(durations(next)[0])}
}

var serverFailed = activities.MailResult{PutOff: 1, Waiting: 2, Oldest: timeAt(0), NextAt: timeAt(time.Second), ServerFailed: true, Reason: "The mail server refused the connection."}

// run runs the workflow to the end of its first run.
func (h *mailHarness) run() {
	h.runOnce(began,
		func(env *testsuite.TestWorkflowEnvironment) {
			register(env, activities.NameSendMail, (*activities.Mails)(nil).SendMail, h.SendMail)
		},
		func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(Mail, organizationID) })
}

// SendMail returns the next result.
func (h *mailHarness) SendMail(_ context.Context, id string) (result activities.MailResult, err error) {
	if id != organizationID {
		h.t.Errorf("mail of %q is sent", id)
	}
	h.sends = append(h.sends, h.now())
	if len(h.sends) == maxCalls {
		h.t.Errorf("the workflow loops at %v", h.now())
		h.env.CancelWorkflow()
	}
	if h.down != nil && h.down(h.now()) {
		return result, errors.New("the database is unreachable")
	}
	if h.during != nil {
		h.during(len(h.sends))
	}
	if len(h.results) > 0 {
		result, h.results = h.results[0], h.results[1:]
	}
	return result, nil
}

func (h *mailHarness) wantSends(want string) {
	h.t.Helper()
	if !slices.Equal(h.sends, durations(want)) {
		h.t.Errorf("mail is sent at %v, want %s", h.sends, want)
	}
}

func TestMailIsSentWhenItIsDue(t *testing.T) {
	type results = []activities.MailResult
	tests := []struct {
		name       string
		results    results
		wakes      string
		wakeDuring int // the number of a SendMail
		want       string
		ends       string
	}{
		{"at once, and none waits", nil, "", 0, "0s", "0s"},
		{"again after a wake while it is sent", nil, "", 1, "0s 0s", "0s"},
		{"again when the next attempt is due", results{mailWaits("10m"), mailWaits("30m")}, "", 0, "0s 10m 30m", "30m"},
		{"again at once if the next attempt is due already", results{mailWaits("-1s")}, "", 0, "0s 0s", "0s"},
		{"at once after a wake before the next attempt", results{mailWaits("10m"), mailWaits("10m")}, "4m", 0, "0s 4m 10m", "10m"},
		{"after pauses that wakes do not shorten", results{serverFailed, serverFailed, serverFailed, serverFailed, serverFailed},
			"5s 14s 20s 1m 3m", 3, "0s 15s 45s 1m45s 2m45s 3m45s", "3m45s"},
		{"after a pause that begins again after a success", results{serverFailed, serverFailed, mailWaits("2m"), serverFailed}, "", 0, "0s 15s 45s 2m 2m15s", "2m15s"},
		{"after a pause that begins again although none waited", results{serverFailed, serverFailed, {}, serverFailed}, "", 3, "0s 15s 45s 45s 1m", "1m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newMailHarness(t, tt.results...)
			h.signal(SignalWake, tt.wakes)
			h.during = func(number int) {
				if number == tt.wakeDuring {
					h.env.SignalWorkflow(SignalWake, nil)
				}
			}
			h.run()
			h.wantSends(tt.want)
			h.wantEnd(tt.ends)
		})
	}
}

func TestMailOutlastsAnOutageOfTheDatabase(t *testing.T) {
	h := newMailHarness(t)
	h.down = func(at time.Duration) bool { return at < time.Hour }
	h.run()
	if want := durations("0s 1s 3s 7s 15s 31s 61s 91s"); len(h.sends) < 100 || !slices.Equal(h.sends[:len(want)], want) {
		t.Errorf("attempts at %v, want them at %v and then every 30s", h.sends, want)
	}
	if h.err != nil || h.ended < time.Hour || h.ended > time.Hour+30*time.Second {
		t.Errorf("the workflow ended at %v with %v", h.ended, h.err)
	}
	options := h.observer.steps[0].options
	if len(h.observer.steps) != 1 || options.RetryPolicy.MaximumAttempts != 0 || options.ScheduleToCloseTimeout != 0 {
		t.Errorf("%d activities, the first ends after %d attempts or %v", len(h.observer.steps), options.RetryPolicy.MaximumAttempts, options.ScheduleToCloseTimeout)
	}
	if options.HeartbeatTimeout < 3*activities.MaxHeartbeatThrottle || options.HeartbeatTimeout > time.Minute {
		t.Errorf("a dead worker's activity is retried after %v", options.HeartbeatTimeout)
	}
}

func TestMailContinuesAsNewWithALongHistory(t *testing.T) {
	h := newMailHarness(t, mailWaits("10m"))
	h.historyLength = mailHistoryLimit + 1
	h.run()
	h.wantSends("0s") // the next run sends first
	continuesAs(t, h.err, MailName, organizationID)
	// But not with a short one, and not while a wake waits.
	h = newMailHarness(t, mailWaits("10m"))
	h.historyLength = mailHistoryLimit
	h.run()
	h.wantSends("0s 10m")
	h.wantEnd("10m")
	h = newMailHarness(t, serverFailed)
	h.historyLength = mailHistoryLimit + 1
	h.signal(SignalWake, "5s")
	h.run()
	h.wantSends("0s 15s")
	h.wantEnd("15s")
}

// The details have counts, times and the reason, and name no person.
func TestMailDetails(t *testing.T) {
	const list = "\n\n`millwright mail list` names the recipients' ids, attempts and reasons."
	h := newMailHarness(t, mailWaits("10m"), serverFailed)
	var got []string
	for _, at := range []string{"5m", "10m10s"} {
		h.at(at, func() { got = append(got, h.details()) })
	}
	h.run()
	got = append(got, h.details())
	want := []string{
		"Mail waits for people of organization " + organizationID + ": 3, the oldest since 2026-03-02T09:00:00.000Z, the next attempt at 2026-03-02T09:10:00.000Z." + list,
		"Mail waits for people of organization " + organizationID + ": 2, the oldest since 2026-03-02T09:00:00.000Z, the next attempt after a pause, since the mail server failed." +
			"\n\nThe last one was put off: The mail server refused the connection." + list,
		"No mail waits for people of organization " + organizationID + ".",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the details are %q, want %q", got, want)
	}
}

func TestCancellationEndsMail(t *testing.T) {
	for name, result := range map[string]activities.MailResult{"before the next attempt": mailWaits("10m"), "during a pause": serverFailed} {
		t.Run(name, func(t *testing.T) {
			h := newMailHarness(t, result)
			h.historyLength = mailHistoryLimit + 1 // a run that continued as new would lose the request
			h.at("5s", func() { h.env.CancelWorkflow() })
			h.run()
			h.wantSends("0s")
			if !temporal.IsCanceledError(h.err) || h.ended != 5*time.Second {
				t.Errorf("the workflow ended at %v with %v", h.ended, h.err)
			}
		})
	}
}
