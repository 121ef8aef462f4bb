// Package examples receives Millwright's webhooks.
package examples

import (
	"context"
	"net/http"
	"time"

	"millwright/webhook"
)

// Receiver answers deliveries that were signed with secret. It gives each event
// to keep, which puts it into a table or a queue with a unique id: an event that
// is known already changes nothing.
func Receiver(secret string, keep func(ctx context.Context, event webhook.Event) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := webhook.VerifyRequest(r, secret, time.Now())
		if err != nil {
			http.Error(w, "not a delivery", http.StatusBadRequest)
			return
		}
		if err := keep(r.Context(), event); err != nil {
			http.Error(w, "not kept: send it again", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent) // kept; the work is done later
	})
}
