package api_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

// Each of 200 creations is sent five times concurrently, a third of them on
// connections that close before the response. There must be 200 records, and one
// response per key.
func TestRetriedCreationsCreateOneRecordEach(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE plans SET calls_per_minute = 1000000`)
	token := s.Token("erp")
	const records, tries = 200, 5
	body := func(i int) string {
		return fmt.Sprintf(`{"inventory_id":%q,"title":"Number %d"}`, s.ID("ahu1"), i)
	}
	var mu sync.Mutex
	responses := make([]map[string]bool, records)
	var calls sync.WaitGroup
	slots := make(chan struct{}, 32)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range records * tries {
		i, cut := n%records, random.IntN(3) == 0
		calls.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if cut {
				sendAndCut(t, s.URL, token, fmt.Sprintf("key-%d", i), body(i))
				return
			}
			response := s.As("erp", http.MethodPost, "/work-orders", body(i), "Idempotency-Key", fmt.Sprintf("key-%d", i))
			if response.Status != http.StatusCreated {
				t.Errorf("key-%d: the response is %d: %s", i, response.Status, response.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			if responses[i] == nil {
				responses[i] = map[string]bool{}
			}
			responses[i][string(response.Body)] = true
		})
	}
	calls.Wait()
	for i := range records {
		// Retry, in case every connection of this key was closed early.
		last := s.As("erp", http.MethodPost, "/work-orders", body(i), "Idempotency-Key", fmt.Sprintf("key-%d", i))
		if responses[i] == nil {
			continue
		}
		if len(responses[i]) != 1 || !responses[i][string(last.Body)] {
			t.Errorf("key-%d had %d different responses", i, len(responses[i]))
		}
	}
	for _, table := range []string{"work_orders", "events", "history", "log_records"} {
		want(t, "rows in "+table, servicetest.Value[int](s.Fixture, `SELECT count(*) FROM `+table), records)
	}
}

// sendAndCut sends a call and closes the connection without reading the response.
func sendAndCut(t *testing.T, url, token, key, body string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Errorf("dial: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /v1/work-orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", token, key, len(body), body)
	if err != nil {
		t.Errorf("send: %v", err)
	}
}
