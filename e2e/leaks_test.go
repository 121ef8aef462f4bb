package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// temporalData returns what Temporal holds of each workflow: its description with
// search attributes and memo, its current details, and its history. The messages are
// in wire form, which contains payloads as they are.
func (h *harness) temporalData() map[string]string {
	h.t.Helper()
	ctx := h.t.Context()
	list, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000})
	if err != nil || len(list.GetNextPageToken()) > 0 {
		h.t.Fatalf("list the workflows: %v, %d on the first page", err, len(list.GetExecutions()))
	}
	held := map[string]string{}
	add := func(id string, messages ...proto.Message) {
		for _, m := range messages {
			text, err := proto.Marshal(m)
			if err != nil {
				h.t.Fatal(err)
			}
			held[id] += string(text)
		}
	}
	for _, w := range list.GetExecutions() {
		id, run := w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId()
		add(id, w)
		events := h.temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				h.t.Fatalf("the history of %s: %v", id, err)
			}
			add(id, event)
		}
		description, err := h.temporal.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			h.t.Fatalf("describe %s: %v", id, err)
		}
		add(id, description)
		details, err := h.temporal.QueryWorkflow(ctx, id, run, "__temporal_workflow_metadata")
		if err != nil {
			h.t.Fatalf("the current details of %s: %v", id, err)
		}
		var metadata sdk.WorkflowMetadata
		if err := details.Get(&metadata); err != nil {
			h.t.Fatalf("the current details of %s: %v", id, err)
		}
		add(id, &metadata)
	}
	return held
}

// leaks returns the secrets found in each place, in any form in which they could have
// got there.
func leaks(places, secrets map[string]string) []string {
	var found []string
	for place, text := range places {
		lower := strings.ToLower(text)
		for what, secret := range secrets {
			for _, form := range formsOf(secret) {
				in := text
				if form.anyCase {
					in = lower
				}
				if at := strings.Index(in, form.text); at >= 0 {
					found = append(found, fmt.Sprintf("%s is in %s, %s: …%q", what, place, form.name, text[max(0, at-80):at]))
					break
				}
			}
		}
	}
	return found
}

// form is one way to write a secret.
type form struct {
	name, text string
	anyCase    bool
}

func formsOf(secret string) []form {
	if secret == "" {
		return nil
	}
	quoted, _ := json.Marshal(strings.ToLower(secret)) // a string can be encoded
	forms := []form{
		{"as it is", strings.ToLower(secret), true},
		{"escaped for JSON", strings.Trim(string(quoted), `"`), true},
		{"escaped for a URL", strings.ToLower(url.QueryEscape(secret)), true},
		{"in hexadecimal", fmt.Sprintf("%x", secret), true},
	}
	// In base64 a string has three forms, depending on its offset, and its ends depend
	// on the bytes around it.
	for before, begin := range []int{0, 2, 3} {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		if end := (before + len(secret)) / 3 * 4; end-begin >= 8 {
			forms = append(forms, form{"in base64", encoded[begin:end], false})
		}
	}
	return forms
}

// TestLeaksAreFound checks that leaks finds a secret in every form.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"a name": "Quarrington's"}
	for what, text := range map[string]string{
		"as it is":            `{"msg":"call","title":"Mrs Quarrington's radiator"}`,
		"in another case":     "MRS QUARRINGTON'S RADIATOR",
		"in a message's form": "\n\x16\x12\x12\"Mrs Quarrington's\"",
		"escaped for a URL":   "external_id=Mrs%20Quarrington%27s",
		"in hexadecimal":      fmt.Sprintf("%x", "Mrs Quarrington's"),
		"in base64":           base64.StdEncoding.EncodeToString([]byte("Miss: Quarrington's")),
		"in base64, moved":    base64.StdEncoding.EncodeToString([]byte("Miss Quarrington's")),
		"in base64, again":    base64.RawURLEncoding.EncodeToString([]byte("Mrs Quarrington's")),
	} {
		if len(leaks(map[string]string{what: text}, secrets)) != 1 {
			t.Errorf("%s: nothing is found in %q", what, text)
		}
	}
	if found := leaks(map[string]string{"a log": "nothing of the kind"}, secrets); len(found) != 0 {
		t.Errorf("found %q in a log without secrets", found)
	}
}
