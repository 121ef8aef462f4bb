package receivers_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/examples/receivers"
	"millwright/webhook"
)

// Each example runs as its first line says, and gets the same requests over HTTP.
func TestExamplesAcceptOnlySignedRequests(t *testing.T) {
	t.Parallel()
	for _, program := range []struct{ language, name, file string }{
		{"JavaScript", "node", "verify.js"},
		{"Python", "python3", "verify.py"},
		{"PHP", "php", "verify.php"},
	} {
		t.Run(program.language, func(t *testing.T) {
			t.Parallel()
			path := interpreter(t, program.name)
			secrets := newSecrets(t)
			args := []string{program.file}
			if program.name == "php" {
				args = []string{"-S", "127.0.0.1:0", program.file}
			}
			checkReceiver(t, secrets, start(t, secrets.own, path, args...))
		})
	}
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		secrets := newSecrets(t)
		r := &receiver{output: newTranscript()}
		server := httptest.NewServer(receivers.Receiver(secrets.own, func(_ context.Context, e webhook.Event) error {
			var data struct {
				WorkOrder struct {
					ID        string `json:"id"`
					ChangedAt string `json:"changed_at"`
				} `json:"work_order"`
			}
			err := json.Unmarshal(e.Data, &data)
			r.output.add(strings.Join([]string{e.ID, e.Type, data.WorkOrder.ID, data.WorkOrder.ChangedAt}, " "))
			return err
		}))
		t.Cleanup(server.Close)
		r.url = server.URL
		checkReceiver(t, secrets, r)
	})
}

// Without a secret anyone could sign, so an example must not accept requests without one.
func TestExamplesNeedASecret(t *testing.T) {
	t.Parallel()
	for _, program := range []struct{ name, file string }{{"node", "verify.js"}, {"python3", "verify.py"}} {
		t.Run(program.file, func(t *testing.T) {
			t.Parallel()
			path := interpreter(t, program.name)
			output, err := command(t, "", path, program.file).CombinedOutput()
			if err == nil || !strings.Contains(string(output), "WEBHOOK_SECRET is not set") {
				t.Errorf("without a secret: error %v, output\n%s", err, output)
			}
		})
	}
	t.Run("verify.php", func(t *testing.T) {
		t.Parallel()
		r := start(t, "", interpreter(t, "php"), "-S", "127.0.0.1:0", "verify.php")
		body := event("evt_1", "Replace the filter")
		if status := r.post(t, request{signature: mac("", now(0), body), body: body}); status != http.StatusInternalServerError {
			t.Errorf("without a secret: status %d, want 500", status)
		}
	})
	t.Run("verify.go", func(t *testing.T) {
		w, body := httptest.NewRecorder(), event("evt_1", "Replace the filter")
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set(webhook.HeaderSignature, mac("", now(0), body))
		receivers.Receiver("", nil).ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("without a secret: status %d, want 400", w.Code)
		}
	})
}

// interpreter returns the path of an interpreter, and skips the test if it is not installed, as
// node and python3 must be in CI.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err != nil && name != "php" && os.Getenv("CI") != "":
		t.Fatalf("%s is not installed", name)
	case err != nil:
		t.Skipf("%s is not installed", name)
	}
	return path
}

// checkReceiver posts every request to the receiver, one after another.
func checkReceiver(t *testing.T, s secrets, r *receiver) {
	t.Helper()
	for n, accepted := range validRequests(t, s) {
		t.Run("accepts "+accepted.name, func(t *testing.T) {
			accepted := validRequests(t, s)[n] // signed again: some signatures are almost too old
			if status := r.post(t, accepted); status != http.StatusNoContent {
				t.Fatalf("status %d, want 204", status)
			}
			r.output.await(t, accepted.prints)
		})
	}
	for n, rejected := range invalidRequests(s) {
		t.Run("rejects "+rejected.name, func(t *testing.T) {
			rejected := invalidRequests(s)[n] // signed again: some signatures soon become valid
			if status := r.post(t, rejected); status != http.StatusBadRequest && status != http.StatusUnauthorized {
				t.Errorf("status %d, want 400 or 401", status)
			}
		})
	}
	for _, failing := range []request{
		{name: "a signed body that is not JSON", signature: mac(s.own, now(0), "ping"), body: "ping"},
		{name: "more than 1 MiB", signature: mac(s.own, now(0), huge("evt_bad_huge")), body: huge("evt_bad_huge")},
	} {
		t.Run("does not accept "+failing.name, func(t *testing.T) {
			if status := r.post(t, failing); status/100 == 2 {
				t.Errorf("status %d", status)
			}
		})
	}
	t.Run("survives a sender that hangs up", func(t *testing.T) {
		r.hangUp(t)
		body := event("evt_last", "Replace the filter")
		if status := r.post(t, signed(t, "", "evt_last", body, s.own)); status != http.StatusNoContent {
			t.Fatalf("status %d, want 204", status)
		}
		r.output.await(t, "evt_last work_order.status_changed")
	})
	// A receiver prints before it responds, so a wrongly accepted event is printed before the last one.
	if text := r.output.text(); strings.Contains(text, "evt_bad") {
		t.Errorf("the receiver accepted an event and did not return 2xx:\n%s", text)
	}
}

type secrets struct{ own, other string }

func newSecrets(t *testing.T) secrets {
	t.Helper()
	var made [2]string
	for i := range made {
		secret, err := webhook.GenerateSecret(rand.Reader)
		must(t, err)
		made[i] = secret
	}
	return secrets{own: made[0], other: made[1]}
}

// request is one POST. If signature is empty, it has no signature header.
type request struct {
	name      string
	signature string
	body      string
	header    http.Header
	// prints is what a receiver prints when it accepts the request.
	prints string
}

const (
	recordID  = "wo_01m7ydkfr8fk4tyc409vp5a39k"
	changedAt = "2026-03-02T12:15:30.000Z"
)

// event returns the body of a delivery with the fields that the examples read.
func event(id, title string) string {
	return `{"id":"` + id + `","type":"work_order.status_changed","created_at":"` + changedAt + `","organization_id":"idn_1",` +
		`"data":{"actor":{"identity_id":"idn_2"},"previous_status":"open","status":"in_progress",` +
		`"work_order":{"id":"` + recordID + `","title":"` + title + `","changed_at":"` + changedAt + `"}}}`
}

func huge(id string) string { return event(id, strings.Repeat("x", 1<<20)) }

// now returns the Unix time the given seconds from now, in the form of t=.
func now(seconds int64) string { return strconv.FormatInt(time.Now().Unix()+seconds, 10) }

// mac returns the header that signs body with at as its time, even if at is not a time.
func mac(secret, at, body string) string { return "t=" + at + ",v1=" + digest(secret, at, body) }

func digest(secret, at, body string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(at + "." + body))
	return hex.EncodeToString(h.Sum(nil))
}

// signed returns a delivery as the service sends it.
func signed(t *testing.T, name, id, body string, secrets ...string) request {
	t.Helper()
	signer, err := webhook.NewSigner(secrets...)
	must(t, err)
	header := signer.Header(id, "work_order.status_changed", time.Now(), []byte(body))
	return request{
		name: name, body: body, header: header, signature: header.Get(webhook.HeaderSignature),
		prints: id + " work_order.status_changed " + recordID + " " + changedAt,
	}
}

func validRequests(t *testing.T, s secrets) []request {
	t.Helper()
	plain := event("evt_1", "Replace the filter")
	large := event("evt_5", strings.Repeat("Lüftung ", 100_000))
	requests := []request{
		signed(t, "a delivery", "evt_1", plain, s.own),
		signed(t, "a rotation when the receiver has the new secret", "evt_1", plain, s.own, s.other),
		signed(t, "a rotation when the receiver has the old secret", "evt_1", plain, s.other, s.own),
		signed(t, "text beyond ASCII", "evt_2", event("evt_2", "Lüftung prüfen – 換気 🔧 \u2028 ﬁ e\u0301"), s.own),
		signed(t, "escapes and numbers that encoders write differently", "evt_3",
			strings.Replace(event("evt_3", `L\u00fcftung \/ \ud83d\udd27`), `"data":{`, `"data":{"x":1.0,"y":1e3,`, 1), s.own),
		signed(t, "insignificant white space", "evt_4",
			" "+strings.NewReplacer(",", " ,\r\n\t", "{", "{\n").Replace(event("evt_4", "Replace the filter"))+"\n\n", s.own),
		signed(t, "a large body", "evt_5", large, s.own),
	}
	for _, other := range []struct{ name, signature string }{
		{"a signature of 290 seconds ago", mac(s.own, now(-290), plain)},
		{"a clock that is 290 seconds slow", mac(s.own, now(290), plain)},
		{"unknown schemes", "v0=00,a=b=c,x=," + mac(s.own, now(0), plain) + ",v2=Zg==,v11=1,sv1=2"},
		{"a time after the signature", "v1=" + digest(s.own, now(0), plain) + ",t=" + now(0)},
		{"a matching signature after others",
			"t=" + now(0) + ",v1=,v1=00,v1=" + strings.Repeat("0", 64) + ",v1=" + digest(s.own, now(0), plain)},
	} {
		r := signed(t, other.name, "evt_1", plain, s.own)
		r.signature = other.signature
		requests = append(requests, r)
	}
	return requests
}

func invalidRequests(s secrets) []request {
	body := event("evt_bad", "Replace the filter")
	at := now(0)
	good := mac(s.own, at, body)
	hexed := digest(s.own, at, body)
	raw, _ := hex.DecodeString(hexed)

	requests := []request{
		{name: "another secret", signature: mac(s.other, at, body), body: body},
		{name: "no secret", signature: mac("", at, body), body: body},
		{name: "a changed body", signature: good, body: strings.Replace(body, "Replace", "replace", 1)},
		{name: "a reformatted body", signature: good, body: strings.ReplaceAll(body, ",", ", ")},
		{name: "a line break after the body", signature: good, body: body + "\n"},
		{name: "no body", signature: good},
		{name: "no header", body: body},
		{name: "the Standard Webhooks headers alone", body: body, header: http.Header{
			webhook.HeaderStandardID: {"evt_bad"}, webhook.HeaderStandardTimestamp: {at},
			webhook.HeaderStandardSignature: {"v1," + base64.StdEncoding.EncodeToString(raw)},
		}},
		{name: "two headers", body: body, header: http.Header{webhook.HeaderSignature: {mac(s.other, at, body), mac(s.other, now(1), body)}}},
	}
	for _, other := range []struct{ name, signature string }{
		{"a signature of 310 seconds ago", mac(s.own, now(-310), body)},
		{"a signature of a day ago", mac(s.own, now(-86400), body)},
		{"a signature 310 seconds ahead", mac(s.own, now(310), body)},
		{"a signature a day ahead", mac(s.own, now(86400), body)},
		{"a changed time", "t=" + now(1) + ",v1=" + hexed},
		{"a word", "garbage"},
		{"commas", ",,,"},
		{"an equals sign", "="},
		{"the bare signature", hexed},
		{"a signature without a time", "v1=" + hexed},
		{"a time without a signature", "t=" + at},
		{"an empty signature", "t=" + at + ",v1="},
		{"empty signatures", "t=" + at + ",v1=,v1="},
		{"v1 without a value", "t=" + at + ",v1"},
		{"two times", "t=" + now(-310) + "," + good},
		{"a second time at the end", good + ",t=" + now(-310)},
		{"a signature under other schemes", "t=" + at + ",v2=" + hexed + ",v11=" + hexed + ",xv1=" + hexed},
		{"a signature that is cut short", good[:len(good)-2]},
		{"a signature that is too long", good + "00"},
		{"a signature with a tail", good + "=00"},
		{"a signature in quotes", "t=" + at + `,v1="` + hexed + `"`},
		{"a signature in base64", "t=" + at + ",v1=" + base64.StdEncoding.EncodeToString(raw)},
		{"64 letters that are not ASCII", "t=" + at + ",v1=" + strings.Repeat("é", 64)},
		{"64 bytes that are not text", "t=" + at + ",v1=" + strings.Repeat("\xff", 64)},
		{"upper-case hexadecimal", "t=" + at + ",v1=" + strings.ToUpper(hexed)},
		{"a long header", "t=" + at + strings.Repeat(",v1=00", 1000)},
		{"an empty time", mac(s.own, "", body)},
		{"a time that is a word", mac(s.own, "now", body)},
		{"a time that is not a number", mac(s.own, "NaN", body)},
		{"an infinite time", mac(s.own, "Infinity", body)},
		{"a time with a plus", mac(s.own, "+"+at, body)},
		{"a time with a minus", mac(s.own, "-"+at, body)},
		{"a time with a fraction", mac(s.own, at+".5", body)},
		{"a time with an exponent", mac(s.own, at[:1]+"."+at[1:]+"e9", body)},
		{"a time with a separator", mac(s.own, at[:4]+"_"+at[4:], body)},
		{"a time in hexadecimal", mac(s.own, fmt.Sprintf("0x%x", time.Now().Unix()), body)},
		{"a time in milliseconds", mac(s.own, at+"000", body)},
		{"a time beyond 64 bits", mac(s.own, "99999999999999999999", body)},
		{"a time with a digit beyond ASCII", mac(s.own, "\xb2", body)},
		{"a time in full-width digits", mac(s.own, strings.NewReplacer("1", "１", "7", "７").Replace(at), body)},
	} {
		requests = append(requests, request{name: other.name, signature: other.signature, body: body})
	}
	return requests
}

// receiver is a running example.
type receiver struct {
	url    string
	output *transcript
}

// start runs an example's program until the test ends and reads its address
// from what it prints.
func start(t *testing.T, secret, path string, args ...string) *receiver {
	t.Helper()
	cmd := command(t, secret, path, args...)
	r := &receiver{output: newTranscript()}
	cmd.Stdout, cmd.Stderr = &stream{to: r.output}, &stream{to: r.output} // PHP's server and its error_log write to the second
	cmd.WaitDelay = lineTimeout                                           // its children may keep the streams open
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error is that it was killed
		if t.Failed() {
			t.Logf("%s printed:\n%s", path, r.output.text())
		}
	})
	line := r.output.await(t, "http://127.0.0.1:")
	_, rest, _ := strings.Cut(line, "http://")
	address, _, _ := strings.Cut(rest, ")")
	r.url = "http://" + strings.TrimSpace(address)
	return r
}

func command(t *testing.T, secret, path string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "PORT=0", "WEBHOOK_SECRET="+secret)
	return cmd
}

// post sends the request and returns the response's status, 0 if there was none.
func (r *receiver) post(t *testing.T, q request) int {
	t.Helper()
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader(q.body))
	must(t, err)
	for name, values := range q.header {
		post.Header[name] = values
	}
	post.Header.Set("Content-Type", "application/json")
	if q.header.Get(webhook.HeaderEventID) == "" {
		// The service's unsigned headers: the example in Go compares them with the body.
		post.Header.Set(webhook.HeaderEventID, "evt_bad")
		post.Header.Set(webhook.HeaderEventType, "work_order.status_changed")
	}
	if q.signature != "" {
		post.Header.Set(webhook.HeaderSignature, q.signature)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(post)
	if err != nil {
		t.Logf("no response: %v", err)
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Logf("the response was cut short: %v", err)
	}
	return response.StatusCode
}

// hangUp sends part of a request and resets the connection.
func (r *receiver) hangUp(t *testing.T) {
	t.Helper()
	address, err := url.Parse(r.url)
	must(t, err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address.Host)
	must(t, err)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // a reset
		t.Fatal(err)
	}
	conn.Close()
}
