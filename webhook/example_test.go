package webhook_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"millwright/webhook"
)

// A receiver verifies a delivery, which the example signs as the service does.
func ExampleVerifyRequest() {
	const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

	receive := func(w http.ResponseWriter, r *http.Request) {
		event, err := webhook.VerifyRequest(r, secret, time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s %s %s", event.ID, event.Type, event.Data)
	}

	signer, _ := webhook.NewSigner(secret)
	body := `{"id":"evt_01","type":"ping","created_at":"2026-01-02T03:04:05.000Z","organization_id":"org_01","data":{"message":"hello"}}`
	for _, sent := range []string{body, strings.Replace(body, "hello", "forged", 1)} {
		r := httptest.NewRequest(http.MethodPost, "/webhook", strings.NewReader(sent))
		r.Header = signer.Header("evt_01", "ping", time.Now(), []byte(body))
		w := httptest.NewRecorder()
		receive(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 evt_01 ping {"message":"hello"}
	// 400 webhook: signature does not match
}
