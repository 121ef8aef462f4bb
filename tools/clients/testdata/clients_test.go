// Package clients tests the clients that oapi-codegen and ogen generate with their defaults
// (make lint-clients). The server responds with the document's examples.
package clients

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/oapi-codegen/nullable"

	"millwright/tools/clients/oapi"
	"millwright/tools/clients/ogen"
)

// examples returns the examples of the JSON that an operation or webhook sends, in content, by name.
func examples(t *testing.T, path ...string) map[string]struct{ Value json.RawMessage } {
	t.Helper()
	node, err := os.ReadFile("openapi.json")
	for _, name := range append(path, "content", "application/json", "examples") {
		var members map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(node, &members)
		}
		node = members[name]
	}
	var found map[string]struct{ Value json.RawMessage }
	if err == nil {
		err = json.Unmarshal(node, &found)
	}
	if err != nil || len(found) == 0 {
		t.Fatalf("no examples at %v: %v", path, err)
	}
	return found
}

func TestPatchClearsAField(t *testing.T) {
	for name, clear := range map[string]func(url string) (id string, err error){
		"oapi-codegen": func(url string) (string, error) {
			client, err := oapi.NewClientWithResponses(url)
			if err != nil {
				return "", err
			}
			response, err := client.UpdateWorkOrderWithResponse(t.Context(), "wo_1", nil, oapi.WorkOrderPatch{Description: nullable.NewNullNullable[string]()})
			if err != nil {
				return "", err
			}
			return response.JSON200.Id, nil
		},
		"ogen": func(url string) (string, error) {
			client, err := ogen.NewClient(url, token{})
			if err != nil {
				return "", err
			}
			var description ogen.OptNilString
			description.SetToNull()
			response, err := client.UpdateWorkOrder(t.Context(), &ogen.UpdateWorkOrderApplicationJSON{Description: description}, ogen.UpdateWorkOrderParams{ID: "wo_1"})
			if err != nil {
				return "", err
			}
			return response.(*ogen.UpdateWorkOrderOKHeaders).Response.ID, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = r.Method + " " + r.URL.Path + " " + string(body)
				header := w.Header()
				header.Set("Content-Type", "application/json")
				header.Set("ETag", `"x"`)
				header.Set("X-Request-Id", "req_1")
				for _, name := range []string{"Limit", "Remaining", "Reset"} {
					header.Set("X-RateLimit-"+name, "1")
				}
				for _, example := range examples(t, "paths", "/work-orders/{id}", "patch", "responses", "200") {
					_, _ = w.Write(example.Value)
					return
				}
			}))
			defer server.Close()
			id, err := clear(server.URL)
			if err != nil || id == "" {
				t.Errorf("the call returns %q, %v", id, err)
			}
			if want := `PATCH /work-orders/wo_1 {"description":null}`; sent != want {
				t.Errorf("sent %s, want %s", sent, want)
			}
		})
	}
}

// token is what ogen's client sends.
type token struct{}

func (token) OAuth2(context.Context, ogen.OperationName) (ogen.OAuth2, error) {
	return ogen.OAuth2{Token: "t"}, nil
}

func (token) Basic(context.Context, ogen.OperationName) (ogen.Basic, error) { return ogen.Basic{}, nil }

func TestEveryEventIsDecoded(t *testing.T) {
	events := map[string]json.Unmarshaler{
		"work_order.created": new(ogen.WorkOrderCreatedEvent), "work_order.updated": new(ogen.WorkOrderUpdatedEvent),
		"work_order.status_changed": new(ogen.WorkOrderStatusChangedEvent), "work_order.completed": new(ogen.WorkOrderCompletedEvent),
		"work_order.sent_to_inspection": new(ogen.WorkOrderSentToInspectionEvent), "work_order.cancelled": new(ogen.WorkOrderCancelledEvent),
		"work_order.assignees_changed": new(ogen.WorkOrderAssigneesChangedEvent),
		"issue.created":                new(ogen.IssueCreatedEvent), "issue.resolved": new(ogen.IssueResolvedEvent), "ping": new(ogen.PingEvent),
	}
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		body := examples(t, "webhooks", kind, "post", "requestBody")["event"].Value
		if err := json.Unmarshal(body, events[kind]); err != nil {
			t.Errorf("ogen does not decode %s: %v", kind, err)
		}
		var event oapi.Event
		err := json.Unmarshal(body, &event)
		if err == nil {
			_, err = event.ValueByDiscriminator()
		}
		if err != nil {
			t.Errorf("oapi-codegen does not decode %s: %v", kind, err)
		}
	}
}
