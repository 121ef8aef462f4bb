package console

import (
	"cmp"
	"net/http"
	"time"

	"millwright/models"
	"millwright/service/webhooks"
)

// missedView asks since when to send what an address has missed, and states how many
// deliveries those are. An address that is off is turned on.
type missedView struct {
	Webhook webhooks.WebhookDetail
	// Since is the time as the input shows it, Zone the person's.
	Since, Zone string
	At          moment
	Count       int
	Text        string
	Form        form
	Problem     string
}

var missedPage = newPage[missedView]("webhook_missed.html")

// renderMissed shows the page for a time as its input has it, "" being since the address began to
// fail or was turned off, with a form that was rejected or nil.
func (c *Console) renderMissed(r *request, status int, rejected *form) error {
	since := r.Query("since")
	if rejected != nil {
		since = rejected.Value("since")
	}
	h, err := c.managedWebhook(r)
	if err != nil {
		return err
	}
	at, problem := r.sinceOf(since, h)
	view := missedView{
		Webhook: h, Since: at.In(r.zone).Format(timeInput), Zone: r.zone.String(), At: r.moment(at), Form: newForm(nil).orRejected(rejected), Problem: problem,
	}
	if view.Count, err = c.service.Webhooks.CountMissed(r.ctx(), r.actor(), h.ID, at); err != nil {
		return err
	}
	view.Text = counted(view.Count, "delivery", "deliveries")
	return missedPage.render(r, status, view)
}

// sinceOf returns the time that was entered, or when the address began to miss events.
func (r *request) sinceOf(text string, h webhooks.WebhookDetail) (at models.Time, problem string) {
	at = models.TimeOf(h.State.LoadedAt.Add(-models.EventRetention))
	if began := cmp.Or(h.OffAt, h.FailingSince, h.LastSuccessAt); began != nil {
		at = *began
	}
	// The input has minutes.
	at = models.TimeOf(at.Truncate(time.Minute))
	if text == "" {
		return at, ""
	}
	parsed, err := time.ParseInLocation(timeInput, text, r.zone)
	if err != nil {
		return at, "A time is written as 2026-03-02T08:00."
	}
	return models.TimeOf(parsed), ""
}

// sendMissed sends what the address has missed since a time.
func (c *Console) sendMissed(r *request) error {
	return c.releaseMissed(r, func(f form, id string, since *models.Time) (webhooks.Released, error) {
		return c.service.Webhooks.RedeliverSince(r.ctx(), r.actor(), f.key(r), id, *since)
	}, "sending")
}

// turnWebhookOn turns the address on, and sends what it has missed if that was asked for.
func (c *Console) turnWebhookOn(r *request) error {
	return c.releaseMissed(r, func(f form, id string, since *models.Time) (webhooks.Released, error) {
		if f.Value("send") == "" {
			since = nil
		}
		_, released, err := c.service.Webhooks.EnableWebhook(r.ctx(), r.actor(), f.key(r), id, since)
		return released, err
	}, "turned-on")
}

func (c *Console) releaseMissed(r *request, release func(f form, id string, since *models.Time) (webhooks.Released, error), done string) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	id := r.Param("id")
	parsed, err := time.ParseInLocation(timeInput, f.Value("since"), r.zone)
	if err != nil {
		return c.renderMissed(r, http.StatusUnprocessableEntity, &f)
	}
	since := models.TimeOf(parsed)
	released, err := release(f, id, &since)
	return r.finish(f, err, outcome{to: webhookURL(id), done: withExpired(done, released), again: c.renderMissed})
}
