package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/webhook"
)

const listenSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// The secret comes from the environment or a file, never from an argument.
func TestListenTakesItsSecretFromOutsideItsArguments(t *testing.T) {
	t.Setenv("WEBHOOK_SECRET", "")
	for _, command := range [][]string{{"listen"}, {"replay", "x", "--to", "http://127.0.0.1:1"}} {
		if _, err := run(t, command...); err == nil || !strings.Contains(err.Error(), "set WEBHOOK_SECRET or give --secret-file") {
			t.Errorf("%v without a secret: %v", command, err)
		}
		if _, err := run(t, append(command, "--secret", listenSecret)...); err == nil || !strings.Contains(err.Error(), "unknown flag: --secret") {
			t.Errorf("%v with an argument: %v", command, err)
		}
	}
	file := writeFile(t, listenSecret+"\n")
	if got, err := (&secretFlag{file: file}).read(); got != listenSecret || err != nil {
		t.Errorf("from a file: %q, %v", got, err)
	}
	t.Setenv("WEBHOOK_SECRET", listenSecret)
	if got, err := (&secretFlag{}).read(); got != listenSecret || err != nil {
		t.Errorf("from the environment: %q, %v", got, err)
	}
}

// What listen records is what came, and replay sends it so that a receiver verifies it again.
func TestRecordedDeliveriesAreReplayed(t *testing.T) {
	t.Setenv("WEBHOOK_SECRET", listenSecret)
	signer, err := webhook.NewSigner(listenSecret)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "000041-work_order.created-evt_1.http"), nil, 0o600); err != nil {
		t.Fatal(err) // of an earlier listen
	}
	record, err := openRecording(directory)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&receiver{secret: listenSecret, record: record, every: 1, out: &printed})
	defer server.Close()
	body := `{"id":"evt_1","type":"work_order.created","created_at":"2026-01-02T03:04:05.000Z","data":{"title":"Café"}}`
	send := func(at time.Time) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/hooks", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = signer.Header("evt_1", "work_order.created", at, []byte(body))
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := send(time.Now()); status != http.StatusNoContent {
		t.Fatalf("the delivery got %d: %s", status, printed.String())
	}
	if status := send(time.Now().Add(-time.Hour)); status != http.StatusBadRequest {
		t.Errorf("a delivery with an old signature got %d", status)
	}
	files, _ := filepath.Glob(filepath.Join(directory, "*"))
	if len(files) != 2 || filepath.Base(files[1]) != "000042-work_order.created-evt_1.http" {
		t.Fatalf("recorded: %v, want the verified delivery after the earlier one", files)
	}
	files = files[1:]
	content, err := os.ReadFile(files[0])
	if err != nil || !strings.HasPrefix(string(content), "POST /hooks HTTP/1.1\r\n") || !strings.HasSuffix(string(content), "\r\n\r\n"+body) || strings.Contains(string(content), listenSecret) {
		t.Errorf("the file is %q (%v)", content, err)
	}

	var again []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		content, _ := io.ReadAll(req.Body)
		again = append(again, string(content))
		if err := webhook.Verify(req.Header, content, listenSecret, time.Now()); err != nil {
			t.Errorf("the replay: %v", err)
		}
		if len(again) > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer other.Close()
	stale := regexp.MustCompile(`t=\d+`).ReplaceAll(content, []byte("t=1"))
	if err := os.WriteFile(files[0], stale, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, "replay", files[0], "--to", other.URL); err != nil || !strings.Contains(out, "responded 200") || len(again) != 1 || again[0] != body {
		t.Errorf("replay printed %q (%v), sent %q", out, err, again)
	}
	if out, err := run(t, "replay", files[0], "--to", other.URL); err == nil || !strings.Contains(out, "responded 503") {
		t.Errorf("a replay that is rejected printed %q (%v)", out, err)
	}
	if _, err := run(t, "replay", os.Args[0], "--to", other.URL); err == nil || !strings.Contains(err.Error(), "not a recorded delivery") {
		t.Errorf("another file: %v", err)
	}
}
