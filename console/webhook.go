package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"millwright/models"
	"millwright/service/webhooks"
)

// AddressTester has a worker send a test to a webhook address, since only workers connect to
// receivers. The error is also that no worker sent it in time.
type AddressTester interface {
	Send(ctx context.Context, test webhooks.BegunTest, kind models.EventType) error
}

// webhookView is the webhook address page.
type webhookView struct {
	Webhook webhooks.WebhookDetail
	State   stateMark
	// Facts are the address's health in sentences and times.
	CreatedAt, OldSecretUntil, OlderSecretUntil          moment
	FailingSince, LastSuccess, LastAttempt, ShutOff, Off moment
	LastAnswer                                           string
	Counts                                               []countRow
	// Held is why deliveries are held although the address is on, "" if they are not.
	Held string
	// WaitsUntil is when the oldest pending delivery is tried while the address fails, Unplaced the number of retrying
	// ones that wait for a place.
	WaitsUntil moment
	Unplaced   string
	// Missed is the number of deliveries that failed or were held.
	Missed   string
	Test     *testView
	TestForm form
	// TestTypes are the event types that a test can have.
	TestTypes []models.EventType
	Form      form
	// Owns is whether the viewer may change the URL, add event types and renew the secret.
	Owns  bool
	Types []option
}

// countRow counts the deliveries of an address with a status.
type countRow struct {
	State stateMark
	Count string
	URL   string
}

// testView is the last test.
type testView struct {
	State   stateMark
	At      moment
	Latency string
	Answer  string
	// Body and BodyNote are the results of bodyText.
	Body, BodyNote string
}

var webhookPage = newPage[webhookView]("webhook.html")

func webhookMark(h webhooks.WebhookSummary) stateMark {
	switch {
	case !h.Enabled:
		return stateMark{"bad", "off", "Off"}
	case h.FailingSince != nil:
		return stateMark{"warn", "warn", "Failing"}
	}
	return stateMark{"good", "check", "On"}
}

// answerText describes a receiver's response, or the reason why it is missing.
func answerText(status *int, problem *string) string {
	switch {
	case status != nil:
		return statusText(*status)
	case problem != nil:
		return visible(*problem)
	}
	return ""
}

// managedWebhook returns the address of the request.
func (c *Console) managedWebhook(r *request) (webhooks.WebhookDetail, error) {
	return c.service.Webhooks.ManagedWebhook(r.ctx(), r.actor(), r.Param("id"))
}

func (c *Console) renderWebhook(r *request, status int, rejected *form) error {
	h, err := c.managedWebhook(r)
	if err != nil {
		return err
	}
	values := url.Values{"url": {h.URL}}
	for _, e := range h.Events {
		values.Add("events", string(e))
	}
	view := webhookView{
		Webhook: h, State: webhookMark(h.WebhookSummary), CreatedAt: r.moment(h.CreatedAt), OldSecretUntil: r.optionalMoment(h.PreviousSecretUntil), OlderSecretUntil: r.optionalMoment(h.OlderSecretUntil),
		FailingSince: r.optionalMoment(h.FailingSince), LastSuccess: r.optionalMoment(h.LastSuccessAt), LastAttempt: r.optionalMoment(h.LastAt),
		ShutOff: r.optionalMoment(h.ShutOffAt), Off: r.optionalMoment(h.OffAt), LastAnswer: answerText(h.LastStatus, h.LastError),
		Counts: countRows(h.ID, h.State.Failed, h.State.Retrying, h.State.Held, h.State.Pending), Form: editForm(h.Webhook, values).orRejected(rejected), TestForm: newForm(nil), TestTypes: slices.Concat([]models.EventType{models.EventPing}, subscribable()), Types: eventOptions(),
	}
	if h.Enabled {
		view.Held = valueOf(h.State.OffReason)
	}
	if view.WaitsUntil = r.optionalMoment(h.State.WaitsUntil); h.State.Unplaced > 0 {
		view.Unplaced = counted(h.State.Unplaced, "delivery", "deliveries")
	}
	view.Owns = r.viewer.Admin || slices.Contains(h.Owners, r.viewer.IdentityID)
	if n := h.State.Failed + h.State.Held; n > 0 {
		view.Missed = counted(n, "delivery", "deliveries")
	}
	if h.Test != nil {
		view.Test = r.testView(*h.Test)
	}
	return webhookPage.render(r, status, view)
}

// countRows shows how many deliveries of an address have not arrived.
func countRows(webhookID string, failed, retrying, held, pending int) (rows []countRow) {
	for i, n := range []int{failed, retrying, held, pending} {
		if status := deliveryOrder[i]; n > 0 {
			rows = append(rows, countRow{deliveryMarks[status], counted(n, "delivery", "deliveries"), linkTo("/webhooks/"+webhookID+"/deliveries", "status", string(status))})
		}
	}
	return rows
}

func (r *request) testView(t webhooks.WebhookTest) *testView {
	view := testView{
		State: stateMark{"good", "check", "The receiver accepted it"}, At: r.moment(t.StartedAt), Answer: answerText(t.Status, t.Error),
		Latency: fmt.Sprintf("%d ms", t.LatencyMS),
	}
	if t.Failure != "" {
		view.State = stateMark{"bad", "cross", "The receiver did not accept it"}
	}
	if t.Status != nil {
		view.Body, view.BodyNote = bodyText(t.AttemptRecord)
	}
	return &view
}

func (c *Console) changeWebhook(r *request) error {
	id := r.Param("id")
	page := outcome{to: webhookURL(id), done: "saved", again: c.renderWebhook}
	return r.submit(page, func(f form) error {
		address := f.Value("url")
		return errorOf(c.service.Webhooks.ChangeWebhook(r.ctx(), r.actor(), f.key(r), id, webhooks.WebhookChange{URL: &address, Events: eventsOf(f)}))
	})
}

func (c *Console) confirmWebhookSecret(r *request) error {
	h, err := c.managedWebhook(r)
	if err != nil {
		return err
	}
	effects := []string{
		"The new secret is shown once, on the next page.",
		fmt.Sprintf("The old secret works for another %d hours: until then deliveries are signed with both. Replace it in your receiver before.", int(models.SecretOverlap/time.Hour)),
	}
	if h.PreviousSecretUntil != nil {
		effects = append(effects, "The secret before that works until "+r.moment(*h.PreviousSecretUntil).Exact+", as it would without this.")
	}
	view := confirmView{Title: "Renew the signing secret", Effects: effects, Action: webhookURL(h.ID) + "/secret", Button: "Renew the secret", Harmless: true, Back: webhookURL(h.ID)}
	if h.OlderSecretUntil != nil {
		view.Button, view.BackText = "", "Back"
		view.Effects = []string{"Three secrets sign its deliveries, the most at a time. The oldest works until " + r.moment(*h.OlderSecretUntil).Exact + ": renew the secret after that."}
	}
	return r.confirm(view)
}

func (c *Console) renewWebhookSecret(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	renewed, err := c.service.Webhooks.RenewWebhookSecret(r.ctx(), r.actor(), f.key(r), r.Param("id"))
	intro := ""
	if err != nil {
		renewed.ID = r.Param("id")
	} else {
		h, readErr := c.managedWebhook(r)
		if readErr == nil && h.PreviousSecretUntil != nil {
			intro = "The old secret works until " + r.moment(*h.PreviousSecretUntil).Exact + "."
			if h.OlderSecretUntil != nil {
				intro += " The one before it works until " + r.moment(*h.OlderSecretUntil).Exact + "."
			}
		}
	}
	return r.showSecrets(err, webhookSecrets(renewed, intro, "Back to the address"))
}

// maxTest limits how long a person waits for a test: the receiver's time and the worker's.
const maxTest = 15 * time.Second

func (c *Console) testWebhook(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id, kind := r.Param("id"), cmp.Or(models.EventType(f.Value("type")), models.EventPing)
	page := outcome{to: webhookURL(id) + "#test", done: "test-sent"}
	if !kind.Known() {
		return models.Errorf(models.CodeInvalidRequest, "There is no event type %q.", kind)
	}
	test, err := c.service.Webhooks.BeginWebhookTest(r.ctx(), r.actor(), f.key(r), id)
	if err != nil {
		return r.finish(f, err, page)
	}
	ctx, cancel := context.WithTimeout(r.ctx(), maxTest)
	defer cancel()
	if c.options.Tester != nil {
		if err = c.options.Tester.Send(ctx, test, kind); err == nil {
			return r.done(page.to, page.done)
		}
		if models.CodeOf(err) == models.CodeRateLimited {
			return err
		}
		c.log.WarnContext(r.ctx(), "a test was not sent", "webhook_id", id, "error", err.Error())
	}
	return models.Errorf(models.CodeUnavailable, "No worker has sent the test in time. It may still be sent: look at the address again in a minute.")
}

func (c *Console) confirmWebhookOff(r *request, status int, rejected *form) error {
	h, err := c.managedWebhook(r)
	if err != nil {
		return err
	}
	f, page := newForm(nil).orRejected(rejected), webhookURL(h.ID)
	return confirmPage.render(r, status, confirmView{
		Title: "Turn the address off",
		Effects: []string{
			h.URL + " gets nothing more until it is turned on again.",
			"Nothing is lost: new events are held for " + fmt.Sprint(int(models.EventRetention/(24*time.Hour))) + " days, and so are " +
				counted(h.State.Pending+h.State.Retrying, "delivery that waits now.", "deliveries that wait now."),
		},
		Action: page + "/off", Button: "Turn it off", Back: page, Form: f,
		Fields: []field{f.Text("reason", "Why", "hint=Shown with the address. May stay empty.")},
	})
}

func (c *Console) turnWebhookOff(r *request) error {
	id := r.Param("id")
	return r.submit(outcome{to: webhookURL(id), done: "turned-off", again: c.confirmWebhookOff}, func(f form) error {
		return errorOf(c.service.Webhooks.DisableWebhook(r.ctx(), r.actor(), f.key(r), id, f.Value("reason")))
	})
}

func (c *Console) confirmDeleteWebhook(r *request) error {
	h, err := c.managedWebhook(r)
	if err != nil {
		return err
	}
	count := func(n int) string { return counted(n, "delivery", "deliveries") }
	page := webhookURL(h.ID)
	return r.confirm(confirmView{
		Title: "Delete the address",
		Effects: []string{
			h.URL + " gets no more events. This cannot be undone.",
			count(h.State.Pending+h.State.Retrying) + " that wait are not sent. " + count(h.State.Failed+h.State.Held) + " that failed or were held cannot be sent again.",
			"The list of its deliveries, with the responses of its receiver, is gone.",
		},
		Action: page + "/delete", Button: "Delete the address", Back: page,
	})
}

func (c *Console) deleteWebhook(r *request) error {
	to := Root + "/integrations"
	if h, err := c.managedWebhook(r); err == nil {
		to += "/" + h.IntegrationID
	}
	return r.submit(outcome{to: to, done: "deleted"}, func(f form) error {
		return c.service.Webhooks.DeleteWebhook(r.ctx(), r.actor(), f.key(r), r.Param("id"))
	})
}
