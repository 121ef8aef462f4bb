package conformance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2/clientcredentials"

	"millwright/mail"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

var section1 = []rule{
	{item: "item 1, OAuth", words: "a standard OAuth client gets a token with client credentials and calls the API", code: "service/access.(*Access).IssueToken", test: func(t *testing.T, h *harness) {
		config := clientcredentials.Config{
			ClientID: "cli_erp", ClientSecret: "secret-of-the-erp-integration", TokenURL: h.URL + "/v1/oauth/token",
		}
		response, err := config.Client(t.Context()).Get(h.URL + "/v1/me")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		want(t, "the status", response.StatusCode, http.StatusOK)
	}},
	{item: "item 1, identity", words: "the caller is an integration of one organization, not a person", code: "service/access.(*Access).admit", test: func(t *testing.T, h *harness) {
		id := h.get("/me").Text("identity_id")
		kind := servicetest.Value[string](h.Fixture, `SELECT kind FROM identities WHERE id = $1 AND organization_id = $2`, id, h.Acme.OrganizationID)
		want(t, "the caller's kind", kind, "integration")
		h.get("/people/"+id).Want(http.StatusNotFound, "not_found")
	}},
	{item: "item 2", words: "inventory, work orders, feedback, forms, answers, people and teams can be read", code: "service/lists.List, service/records.(*Records).Answers", test: func(_ *testing.T, h *harness) {
		answers := "/work-orders/" + h.workOrder(object{"form_id": h.ID("inspection")}) + "/answers"
		for _, path := range []string{
			"/locations", "/systems", "/equipment", "/sub-equipment", "/work-orders", "/issues", "/forms", answers, "/people", "/teams",
		} {
			h.get(path).Want(http.StatusOK, "")
		}
	}},
	{item: "item 3, feedback", words: "clients create feedback", code: "service/records.(*Records).CreateFeedback", test: func(_ *testing.T, h *harness) {
		h.feedback(nil).Want(http.StatusCreated, "")
	}},
	{item: "item 3, work orders", words: "and do everything with work orders, from creation to completion", code: "service/records.(*Records).CreateWorkOrder, service/records.(*Records).changeWorkOrder", test: func(_ *testing.T, h *harness) {
		id, other := h.workOrder(nil), h.workOrder(nil)
		h.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
		h.answer(id, false).Want(http.StatusOK, "")
		h.answer(id, true).Want(http.StatusOK, "")
		h.post("/work-orders/"+other+"/cancel", object{}).Want(http.StatusOK, "")
		h.wantStatus(id, models.StatusComplete)
		h.wantStatus(other, models.StatusCancelled)
	}},
	{item: "item 4", words: "a change of a work order or of feedback is sent, signed, to the registered address", code: "activities.Send", test: func(t *testing.T, h *harness) {
		got := h.sent(t)
		want(t, "signed", got.header.Get("Service-Signature") != "", true)
		want(t, "the event", got.header.Get("Service-Event-Type"), "work_order.created")
		want(t, "feedback waits for the address", len(h.events(h.feedback(nil).Text("id"))), 1)
	}},
	{item: "item 5, notices", words: "writes notify the people concerned, including members of teams", code: "service/effects.notify", test: func(t *testing.T, h *harness) {
		id := h.workOrder(object{"assignees": h.ids("erp", "crew")})
		for key, notices := range map[string]int{"bob": 1, "dan": 1, "cat": 0} {
			want(t, "notices for "+key, h.count(`SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2`, id, h.ID(key)), notices)
		}
		h.assign(id, object{"consultants": h.ids("cat")}).Want(http.StatusOK, "")
		want(t, "notices for cat afterwards", h.count(`SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2`, id, h.ID("cat")), 1)
	}},
	{item: "item 5, mail", words: "as the console does, by e-mail too", code: "activities.(*Mails).SendMail", test: func(t *testing.T, h *harness) {
		server := mailtest.NewServer(t, mailtest.Options{})
		client, err := mail.New(mail.Options{URL: server.URL(), From: mail.Address{Email: "no-reply@millwright.test"}})
		if err != nil {
			t.Fatal(err)
		}
		h.Exec(`DELETE FROM notices`)
		h.workOrder(object{"assignees": h.ids("erp", "crew")})
		sendMail(t, h.Fixture, client, h.Acme.OrganizationID)
		var recipients []string
		for _, m := range server.Messages() {
			recipients = append(recipients, m.Recipient)
		}
		slices.Sort(recipients)
		wantList(t, "the recipients of e-mail", recipients, "bob@acme.example.com", "dan@acme.example.com")
	}},
	{item: "item 5, history", words: "and record their changes in the work order's history", code: "service/records.(*workOrderChange).save", test: func(t *testing.T, h *harness) {
		id := h.workOrder(nil)
		h.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		h.answer(id, true).Want(http.StatusOK, "")
		want(t, "the change of title", h.count(`SELECT count(*) FROM history WHERE record_id = $1 AND actor_id = $2
			AND changes->'title'->>'from' = 'Replace filter' AND changes->'title'->>'to' = 'Changed'`, id, h.ID("erp")), 1)
		want(t, "the completion", h.count(`SELECT count(*) FROM history WHERE record_id = $1 AND changes->'status'->>'to' = 'complete'`, id), 1)
	}},
	{item: "item 5, log", words: "and in the Log Records under the integration's name and (API)", code: "service/store.NewLogEntry", test: func(t *testing.T, h *harness) {
		id, issue := h.workOrder(nil), h.feedback(nil).Text("id")
		h.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
		h.remove(id, "bob").Want(http.StatusOK, "")
		h.answer(id, false).Want(http.StatusOK, "")
		h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "")
		const entries = `SELECT count(*) FROM log_records WHERE record_id = $1 AND actor_name = 'ERP (API)' AND organization_id = $2`
		want(t, "entries of the work order", h.count(entries, id, h.Acme.OrganizationID), 6)
		want(t, "entries of the feedback", h.count(entries, issue, h.Acme.OrganizationID), 1)
	}},
	{item: "item 5, edit on a page", words: "a person who edits a work order on its page causes the same", code: "console.(*Console).editWorkOrder", test: wantEditPage},
	{item: "item 5, answers on a page", words: "and so does one who answers it", code: "console.(*Console).answerWorkOrder", test: wantAnswersPage},
	{item: "item 6, left out", words: "there are no time records, attachments or comments", code: "api.(*API).unknownPath", test: func(t *testing.T, h *harness) {
		id := h.workOrder(nil)
		for path := range h.openAPI()["paths"].(object) {
			for _, word := range []string{"time", "attachment", "comment", "file", "hold"} {
				want(t, path+" is about "+word, strings.Contains(strings.TrimPrefix(path, "/v1"), word), false)
			}
		}
		for _, part := range []string{"time-records", "attachments", "comments", "hold"} {
			h.post("/work-orders/"+id+"/"+part, object{}).Want(http.StatusNotFound, "not_found")
		}
	}},
	{item: "item 6, hold", words: "and no operation puts a work order on hold", code: "service/access.RequirePerson", test: wantNoHold},
	{item: "item 7", words: "scopes and permissions limit what an integration sees", code: "api.requireScope, service/access.ReadableWorkOrder", test: wantScopeAndPermission},
	{item: "item 8, page", words: "integrations are made on a page, by those with the permission", code: "console.(*Console).createIntegration", alone: true, test: wantIntegrationsPage},
	{item: "item 8, step 1", words: "a new integration has a name, scopes and an organization definition", code: "service/integrations.(*Integrations).CreateIntegration", alone: true, test: wantIntegrationsPage},
	{item: "item 8, step 2", words: "its client id and secret are shown when it is created, and work", code: "service/integrations.insertIntegration", alone: true, test: wantIntegrationsPage},
	{item: "item 8, step 3", words: "an assignment to any of three kinds of node gives it permissions there", code: "service/integrations.(*Integrations).AssignIntegration", test: func(t *testing.T, h *harness) {
		t.Cleanup(func() { h.Exec(`DELETE FROM assignments WHERE identity_id = $1`, h.ID("outsider")) })
		h.As("outsider", http.MethodGet, "/equipment/"+h.ID("ahu1"), nil).Want(http.StatusNotFound, "not_found")
		for path, node := range map[string]string{"/locations/": "roof", "/systems/": "hvac", "/equipment/": "ahu1"} {
			h.Exec(`DELETE FROM assignments WHERE identity_id = $1`, h.ID("outsider"))
			if err := h.Integrations.AssignIntegration(t.Context(), h.person("ann"), store.NoKey, h.ID("outsider"), h.ID(node), h.ID("full")); err != nil {
				t.Fatal(err)
			}
			h.As("outsider", http.MethodGet, path+h.ID(node), nil).Want(http.StatusOK, "")
			h.As("outsider", http.MethodGet, "/locations/"+h.ID("annex"), nil).Want(http.StatusNotFound, "not_found")
		}
	}},
	{item: "item 9", words: "a plan without the API issues no tokens", code: "service/access.(*Access).IssueToken", test: wantPlanWithAPI},
}
