package e2e

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"millwright/workflows"
)

func TestNothingPersonalInLogsAndHistories(t *testing.T) {
	const title, description = "Mrs Quarrington's radiator leaks", "Ring twice; the code of the door is 4711-19"
	taking, failing := newReceiver(t), newReceiver(t)
	s := newStack(t, settings{"WEBHOOK_RETRY_SCHEDULE": "100ms", "LOG_LEVEL": "DEBUG"}, taking, failing)
	worker := s.startWorker()
	api := s.startAPI(nil)
	i := s.integrator()
	failing.answers(always(http.StatusInternalServerError))

	order := map[string]string{"inventory_id": i.node, "title": title, "description": description}
	answer, err := i.call(http.MethodPost, "/work-orders", "the key of "+title, order)
	if err != nil || answer.status != http.StatusCreated {
		t.Fatalf("create: status %d, error %v, body %s", answer.status, err, answer.body)
	}
	id := idOf(t, answer.body)
	s.refuseCalls(i, order)
	if d := awaitDelivery(t, taking, id); !strings.Contains(string(d.body), managerEmail) {
		t.Fatalf("the delivery does not show the personal data that is looked for: %s", d.body)
	}
	failed := s.deliveryTo(2, id)
	s.awaitAttempts(failed, "failed", 500, 500)
	s.awaitFound(`DeliveryStatus = "failed"`, workflows.DeliveryID(failed))

	database, err := url.Parse(s.settings["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	password, _ := database.User.Password()
	secrets := map[string]string{
		"a person's name": managerName, "a part of the name": "Quarrington", "an e-mail address": managerEmail,
		"a phone number": managerPhone, "a description": "4711-19", "the client secret": s.org.clientSecret,
		"the access token": i.token(), "a key of the settings": s.key, "the database's password": password,
		"a signing secret": taking.secret, "another signing secret": failing.secret,
		"the path of a webhook address": taking.path, "the path of another": failing.path,
	}
	places := s.inTemporal()
	for _, workflow := range []string{workflows.WebhookAddressID(s.org.webhookID(1)), workflows.DeliveryID(failed)} {
		if places[workflow] == "" {
			t.Errorf("Temporal knows nothing of %s", workflow)
		}
	}
	places["the log of the api"], places["the log of the worker"] = api.log.String(), worker.log.String()
	for place, text := range places {
		for what, secret := range secrets {
			if at := strings.Index(strings.ToLower(text), strings.ToLower(secret)); at >= 0 && secret != "" {
				t.Errorf("%s is in %s: …%q", what, place, text[max(0, at-60):at])
			}
		}
	}
}

// refuseCalls makes calls that are refused, since what is wrong is easily logged.
func (s *stack) refuseCalls(i *integrator, order map[string]string) {
	s.t.Helper()
	with := func(name, value string) map[string]string {
		changed := maps.Clone(order)
		changed[name] = value
		return changed
	}
	calls := []struct {
		method, path, key string
		body              any
		status            int
	}{
		{http.MethodGet, "/people/" + managerEmail, "", nil, http.StatusNotFound},
		{http.MethodGet, "/work-orders?limit=Quarrington", "", nil, http.StatusBadRequest},
		{http.MethodGet, "/work-orders?external_id=Quarrington", "", nil, http.StatusOK},
		{http.MethodPost, "/work-orders", "", "Quarrington", http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("Quarrington", managerPhone), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("inventory_id", managerName), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("title", strings.Repeat(managerName, 20)), http.StatusUnprocessableEntity},
		{http.MethodPost, "/work-orders", "", with("description", "Quarrington\x00"), http.StatusBadRequest},
		{http.MethodPost, "/work-orders", "the key of " + order["title"], with("title", "Quarrington"), http.StatusUnprocessableEntity},
	}
	for _, c := range calls {
		answer, err := i.call(c.method, c.path, c.key, c.body)
		if err != nil || answer.status != c.status {
			s.t.Errorf("%s %s: status %d, error %v, want %d: %s", c.method, c.path, answer.status, err, c.status, answer.body)
		}
	}
	for secret, status := range map[string]int{s.org.clientSecret + "x": http.StatusUnauthorized, s.org.clientSecret: http.StatusBadRequest} {
		answer, err := http.PostForm(i.base+"/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {s.org.clientID}, "client_secret": {secret}, "scope": {"Quarrington"},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != status {
			s.t.Errorf("a token request is answered %d, want %d", answer.StatusCode, status)
		}
	}
}

// inTemporal returns what Temporal holds of each workflow: its description with
// search attributes and memo, its current details and its history. The messages
// are in their wire form, in which payloads stand as they are.
func (s *stack) inTemporal() map[string]string {
	s.t.Helper()
	ctx := s.t.Context()
	list, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	held := map[string]string{}
	add := func(id string, messages ...proto.Message) {
		for _, m := range messages {
			text, err := proto.Marshal(m)
			if err != nil {
				s.t.Fatal(err)
			}
			held[id] += string(text)
		}
	}
	for _, w := range list.GetExecutions() {
		id, run := w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId()
		add(id, w)
		events := s.temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				s.t.Fatalf("the history of %s: %v", id, err)
			}
			add(id, event)
		}
		description, err := s.temporal.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			s.t.Fatalf("describe %s: %v", id, err)
		}
		add(id, description)
		details, err := s.temporal.QueryWorkflow(ctx, id, run, "__temporal_workflow_metadata")
		if err != nil {
			s.t.Fatalf("the current details of %s: %v", id, err)
		}
		var metadata sdk.WorkflowMetadata
		if err := details.Get(&metadata); err != nil {
			s.t.Fatalf("the current details of %s: %v", id, err)
		}
		add(id, &metadata)
	}
	return held
}
