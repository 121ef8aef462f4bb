package main

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/webhook"
)

// publishing returns a publisher of events, which a server delivers to two addresses of the
// receiver. The server rejects events without the token.
func publishing(t *testing.T, token string) publisher {
	t.Helper()
	receiver, err := listenForDeliveries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(receiver.close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		go func() {
			for n := range 2 {
				delivery, err := http.NewRequest(http.MethodPost, receiver.url("/"+strconv.Itoa(n)), strings.NewReader(string(event)))
				if err != nil {
					t.Error(err)
					return
				}
				delivery.Header.Set(webhook.HeaderEventID, textAfter(event, `"created_at":"`))
				response, err := http.DefaultClient.Do(delivery)
				if err != nil {
					return // the test has ended
				}
				response.Body.Close()
			}
		}()
	}))
	t.Cleanup(server.Close)
	publish := func(c *caller) (answeredChange, error) {
		a := answeredChange{changeKey{"wo_1", rand.Text()}, time.Now(), time.Time{}}
		_, err := c.write(http.MethodPost, "/events", "key", `{"created_at":"`+a.at+`","work_order":{"id":"wo_1"}}`, http.StatusAccepted)
		a.respondedAt = time.Now()
		return a, err
	}
	tenant := &tenant{Address: strings.TrimPrefix(server.URL, "http://"), Token: token}
	return publisher{tenant, t.Context(), receiver, 2, publish, func() usage { return usage{"bench": time.Second} }}
}

func TestEventsAreFollowedToTheirReceiver(t *testing.T) {
	p := publishing(t, "token")
	err := attempt(func() {
		f := p.flood(30 * time.Millisecond)
		if f.changes == 0 || f.deliveries != 2*f.changes || f.through() <= 0 || f.through() > f.accepted() || f.arrived() <= 0 {
			t.Errorf("the flood is %+v", f)
		}
		paused := 0
		if w := p.oneByOne(3, func() { paused++ }); len(w.fromCall) != 6 || len(w.fromResponse) != 6 || paused != 3 {
			t.Errorf("one by one, %d and %d deliveries were timed after %d pauses, want 6 and 6 after 3", len(w.fromCall), len(w.fromResponse), paused)
		}
		if w := p.paced(100, 100*time.Millisecond); len(w.fromCall) != 20 || w.fromCall.percentile(50) <= 0 {
			t.Errorf("%d deliveries at a rate were timed: %v, want 20", len(w.fromCall), w.fromCall)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestServerThatRejectsEvents(t *testing.T) {
	p := publishing(t, "another")
	if err := attempt(func() { p.flood(time.Minute) }); err == nil || !strings.Contains(err.Error(), "returned 401") {
		t.Errorf("the error is %v", err)
	}
}
