package receivers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/webhook"
)

// The page prints the example files unchanged, and its sample delivery is what the service sends.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/receiving-webhooks.md")
	must(t, err)
	page := string(text)

	for file, language := range map[string]string{"verify.js": "js", "verify.py": "python", "verify.php": "php", "verify.go": "go"} {
		t.Run(file, func(t *testing.T) {
			code, err := os.ReadFile(file)
			must(t, err)
			if got := block(t, page, language); got != string(code) {
				t.Errorf("the page's block of %s differs from the file: copy the file into it", language)
			}
		})
	}
	t.Run("a delivery", func(t *testing.T) { checkDelivery(t, page) })
	t.Run("an example to try", func(t *testing.T) { checkExample(t, page) })
	t.Run("the retry schedule", func(t *testing.T) {
		if rows := schedule(); !strings.Contains(page, rows) {
			t.Errorf("the page should have these rows:\n%s", rows)
		}
	})
}

const shownSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// checkDelivery compares the page's request with what the service sends: its
// headers, and the fields of a record.
func checkDelivery(t *testing.T, page string) {
	var body bytes.Buffer
	must(t, json.Compact(&body, []byte(block(t, page, "json"))))
	var event struct {
		webhook.Event
		Data struct {
			WorkOrder json.RawMessage `json:"work_order"`
		} `json:"data"`
	}
	must(t, json.Unmarshal(body.Bytes(), &event))
	var record models.WorkOrderRecord
	must(t, json.Unmarshal(event.Data.WorkOrder, &record))
	current, err := json.Marshal(record)
	must(t, err)
	if !bytes.Equal(current, event.Data.WorkOrder) {
		t.Errorf("a record now is\n%s\nand not\n%s", current, event.Data.WorkOrder)
	}

	shown := http.Header{}
	for line := range strings.Lines(block(t, page, "http")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			shown.Set(name, value)
		}
	}
	unix, err := strconv.ParseInt(shown.Get(webhook.HeaderStandardTimestamp), 10, 64)
	must(t, err)
	want := sign(t, event.ID, event.Type, unix, body.Bytes())
	want.Set("Content-Type", "application/json")
	want.Set("User-Agent", webhook.UserAgent)
	for name := range want {
		if shown.Get(name) != want.Get(name) {
			t.Errorf("%s is %q, want %q", name, shown.Get(name), want.Get(name))
		}
	}
	if len(shown) != len(want) {
		t.Errorf("%d headers, want %d", len(shown), len(want))
	}
}

// checkExample verifies the page's header with its secret and body.
func checkExample(t *testing.T, page string) {
	fields := map[string]string{}
	for line := range strings.Lines(block(t, page, "text")) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	at, _, _ := strings.Cut(strings.TrimPrefix(fields["header"], "t="), ",")
	unix, err := strconv.ParseInt(at, 10, 64)
	must(t, err)
	if fields["secret"] != shownSecret {
		t.Errorf("the secret is %q, want %q", fields["secret"], shownSecret)
	}
	header := http.Header{webhook.HeaderSignature: {fields["header"]}}
	if err := webhook.Verify(header, []byte(fields["body"]), shownSecret, time.Unix(unix, 0)); err != nil {
		want := sign(t, "evt_1", "ping", unix, []byte(fields["body"]))
		t.Errorf("%v: the header is %q", err, want.Get(webhook.HeaderSignature))
	}
}

func sign(t *testing.T, id, eventType string, unix int64, body []byte) http.Header {
	t.Helper()
	signer, err := webhook.NewSigner(shownSecret)
	must(t, err)
	return signer.Header(id, eventType, time.Unix(unix, 0), body)
}

// schedule returns the table of attempts under the default settings.
func schedule() string {
	rows := "| 1 | | at once |\n"
	sum := time.Duration(0)
	for i, wait := range models.DefaultRetrySchedule {
		sum += wait
		rows += fmt.Sprintf("| %d | %s | %s |\n", i+2, formatDuration(wait), formatDuration(sum))
	}
	return rows
}

func formatDuration(d time.Duration) string {
	hours, minutes := int(d.Hours()), int(d.Minutes())%60
	var words []string
	if hours > 0 {
		words = append(words, fmt.Sprintf("%d h", hours))
	}
	if minutes > 0 {
		words = append(words, fmt.Sprintf("%d min", minutes))
	}
	return strings.Join(words, " ")
}

// block returns the page's first block in the language.
func block(t *testing.T, page, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n```"+language+"\n")
	if !found {
		t.Fatalf("the page has no block of %s", language)
	}
	code, _, _ := strings.Cut(rest, "```\n")
	return code
}
