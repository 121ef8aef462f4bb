// Package receivers receives Millwright's webhooks.
package receivers

import (
	"context"
	"net/http"
	"time"

	"millwright/webhook"
)

// Receiver returns a handler for deliveries signed with secret. It passes each
// event to keep, which stores it in a table or a queue with a unique id and ignores
// an event that it knows.
func Receiver(secret string, keep func(ctx context.Context, event webhook.Event) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := webhook.VerifyRequest(r, secret, time.Now())
		if err != nil {
			http.Error(w, "not a delivery", http.StatusBadRequest)
			return
		}
		if err := keep(r.Context(), event); err != nil {
			http.Error(w, "not stored: send it again", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent) // stored; do the work later
	})
}
