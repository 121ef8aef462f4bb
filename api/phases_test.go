package api_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/service/servicetest"
)

func TestPhases(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	newAPI := func(temporal error) *api.API {
		a := api.New(f.Service, api.Options{
			PublicURL: servicetest.Issuer, TemporalReady: func(context.Context) error { return temporal },
		})
		return a
	}
	get := func(handler http.Handler, path string) *httptest.ResponseRecorder {
		return respondTo(t, handler, http.MethodGet, path, "")
	}
	for _, test := range []struct {
		phase        string
		enter        func(*api.API)
		temporal     error
		ready        int
		withTemporal int
		call         int
		closes       bool
	}{
		{"starting", (*api.API).Hold, nil, 200, 200, 503, false},
		{"serving", func(a *api.API) { a.Hold(); a.Serve() }, nil, 200, 200, 401, false},
		{"without Temporal", (*api.API).Serve, errors.New("Temporal does not respond"), 200, 503, 401, false},
		{"draining", (*api.API).Drain, nil, 503, 503, 401, true},
	} {
		a := newAPI(test.temporal)
		test.enter(a)
		for _, probes := range []http.Handler{a, a.Probes()} {
			alive, ready, withTemporal := get(probes, "/livez"), get(probes, "/readyz"), get(probes, "/readyz?temporal=1")
			if alive.Code != 200 || ready.Code != test.ready || withTemporal.Code != test.withTemporal {
				t.Errorf("%s: alive %d, ready %d %s, with Temporal %d %s", test.phase, alive.Code, ready.Code, ready.Body, withTemporal.Code, withTemporal.Body)
			}
		}
		call := get(a, "/v1/work-orders")
		if call.Code != test.call || (call.Header().Get("Connection") == "close") != test.closes {
			t.Errorf("%s: a call gets %d and Connection %q", test.phase, call.Code, call.Header().Get("Connection"))
		}
		want(t, test.phase+": a call of the probes' listener", get(a.Probes(), "/v1/work-orders").Code, http.StatusNotFound)
	}
	f.Exec(`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	if ready := get(newAPI(nil), "/readyz"); ready.Code != 503 || !strings.Contains(ready.Body.String(), "millwright migrate") {
		t.Errorf("with a migration to come the probe responds %d %s", ready.Code, ready.Body)
	}
}

// A panic is logged, and its text is not shown to the client. One that net/http uses to end a
// response is passed on.
func TestPanics(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	var log bytes.Buffer
	var value any = "password of the database"
	a := api.New(f.Service, api.Options{
		PublicURL: servicetest.Issuer, Log: slog.New(slog.NewTextHandler(&log, nil)),
		UnknownPage: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) }),
	})
	w := respondTo(t, a, http.MethodGet, "/nowhere", "text/html")
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"internal"`) || strings.Contains(w.Body.String(), "database") {
		t.Errorf("the response is %d %s", w.Code, w.Body)
	}
	if err := apitest.CheckLimits(w.Result().Header); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "panic: password of the database"); n != 1 || !strings.Contains(log.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("the log is\n%s", log.String())
	}
	defer func() {
		if passed := recover(); passed != http.ErrAbortHandler { //nolint:errorlint // the value itself
			t.Errorf("%v was passed on", passed)
		}
	}()
	value = http.ErrAbortHandler
	respondTo(t, a, http.MethodGet, "/nowhere", "text/html")
}
