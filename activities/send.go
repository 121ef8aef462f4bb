package activities

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"millwright/models"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// Sender posts one signed body; *webhook.Client is the real one.
type Sender interface {
	Post(ctx context.Context, address string, header http.Header, body []byte) (webhook.Response, error)
}

// Send makes one attempt to deliver to the URL, signed now. It never fails: the
// attempt holds the error.
func Send(ctx context.Context, sender Sender, signer *webhook.Signer, now func() time.Time, url string, d webhooks.RenderedDelivery) webhooks.Attempt {
	started := now()
	attempt := webhooks.Attempt{
		DeliveryID: d.DeliveryID, Number: d.Attempts + 1, Generation: d.Generation, Failures: d.Attempts - d.AttemptsBefore, StartedAt: models.TimeOf(started),
		EventID: d.EventID, EventType: d.EventType, EventAt: d.EventAt, TraceParent: d.TraceParent,
	}
	header := signer.Header(d.EventID, string(d.EventType), started, d.Body)
	response, err := sender.Post(ctx, url, header, d.Body)
	attempt.Latency = response.Latency
	if response.RemoteIP != (netip.Addr{}) {
		attempt.RemoteIP = response.RemoteIP.String()
	}
	if err != nil {
		attempt.Error, attempt.Problem = "The attempt failed.", webhook.KindOther
		if failed, ok := errors.AsType[*webhook.AttemptError](err); ok {
			attempt.Error, attempt.Problem = failed.Error(), failed.Kind
		}
		return attempt
	}
	attempt.Status, attempt.ResponseBody = response.Status, response.Body
	return attempt
}
