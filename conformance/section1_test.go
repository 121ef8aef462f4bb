package conformance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2/clientcredentials"

	"millwright/activities"
	"millwright/mail"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service/servicetest"
)

var section1 = []rule{
	{item: "item 1, OAuth", words: "a stock OAuth client gets a token with client credentials and calls", test: func(t *testing.T, w *world) {
		config := clientcredentials.Config{
			ClientID: "cli_erp", ClientSecret: "secret-of-the-erp-integration", TokenURL: w.URL + "/v1/oauth/token",
		}
		answer, err := config.Client(t.Context()).Get(w.URL + "/v1/me")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		want(t, "the status", answer.StatusCode, http.StatusOK)
	}},
	{item: "item 1, identity", words: "the caller is an integration of one organization, not a person", test: func(t *testing.T, w *world) {
		id := w.get("/me").Text("identity_id")
		kind := servicetest.Value[string](w.Fixture, `SELECT kind FROM identities WHERE id = $1 AND organization_id = $2`, id, w.Acme.OrganizationID)
		want(t, "the caller's kind", kind, "integration")
		w.get("/people/"+id).Want(http.StatusNotFound, "not_found")
	}},
	{item: "item 2", words: "inventory, work orders, feedback, forms and answers, people and teams can be read", test: func(_ *testing.T, w *world) {
		answers := "/work-orders/" + w.workOrder(object{"form_id": w.ID("inspection")}) + "/answers"
		for _, path := range []string{
			"/locations", "/systems", "/equipment", "/sub-equipment", "/work-orders", "/issues", "/forms", answers, "/people", "/teams",
		} {
			w.get(path).Want(http.StatusOK, "")
		}
	}},
	{item: "item 3, feedback", words: "clients create feedback", test: func(_ *testing.T, w *world) {
		w.feedback(nil).Want(http.StatusCreated, "")
	}},
	{item: "item 3, work orders", words: "and do everything with work orders, from the first title to completion", test: func(_ *testing.T, w *world) {
		id, other := w.workOrder(nil), w.workOrder(nil)
		w.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		w.assign(id, object{"assignees": w.ids("bob")}).Want(http.StatusOK, "")
		w.answer(id, false).Want(http.StatusOK, "")
		w.answer(id, true).Want(http.StatusOK, "")
		w.post("/work-orders/"+other+"/cancel", object{}).Want(http.StatusOK, "")
		w.wantStatus(id, models.StatusComplete)
		w.wantStatus(other, models.StatusCancelled)
	}},
	{item: "item 4", words: "a change of work orders or feedback is posted, signed, to the registered address", test: func(t *testing.T, w *world) {
		got := w.sent(t)
		want(t, "signed", got.header.Get("Service-Signature") != "", true)
		want(t, "the event", got.header.Get("Service-Event-Type"), "work_order.created")
		want(t, "feedback waits for the address", len(w.events(w.feedback(nil).Text("id"))), 1)
	}},
	{item: "item 5, notices", words: "writes tell the people concerned, members of teams too", test: func(t *testing.T, w *world) {
		id := w.workOrder(object{"assignees": w.ids("erp", "crew")})
		for key, notices := range map[string]int{"bob": 1, "dan": 1, "cat": 0} {
			want(t, "notices for "+key, w.count(`SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2`, id, w.ID(key)), notices)
		}
		w.assign(id, object{"consultants": w.ids("cat")}).Want(http.StatusOK, "")
		want(t, "notices for cat afterwards", w.count(`SELECT count(*) FROM notices WHERE record_id = $1 AND person_id = $2`, id, w.ID("cat")), 1)
	}},
	{item: "item 5, mail", words: "as the app tells them, by e-mail too", test: func(t *testing.T, w *world) {
		server := mailtest.NewServer(t, mailtest.Options{})
		client, err := mail.New(mail.Options{URL: server.URL(), From: mail.Address{Email: "no-reply@millwright.test"}})
		if err != nil {
			t.Fatal(err)
		}
		id := w.workOrder(object{"assignees": w.ids("erp", "crew")})
		notices := activities.Notices{Service: w.Service, Mailer: client, AtOnce: make(chan struct{}, 1)}
		if _, err := notices.MailNotices(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, m := range server.Messages() {
			told = append(told, m.Recipient)
		}
		slices.Sort(told)
		wantList(t, "told by e-mail", told, "bob@acme.example.com", "dan@acme.example.com")
	}},
	{item: "item 5, history", words: "and are in the work order's history with what they changed", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		w.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		w.answer(id, true).Want(http.StatusOK, "")
		want(t, "the change of title", w.count(`SELECT count(*) FROM history WHERE record_id = $1 AND actor_id = $2
			AND changes->'title'->>'from' = 'Replace filter' AND changes->'title'->>'to' = 'Changed'`, id, w.ID("erp")), 1)
		want(t, "the completion", w.count(`SELECT count(*) FROM history WHERE record_id = $1 AND changes->'status'->>'to' = 'complete'`, id), 1)
	}},
	{item: "item 5, log", words: "and in the Log Records under the integration's name and (API)", test: func(t *testing.T, w *world) {
		id, issue := w.workOrder(nil), w.feedback(nil).Text("id")
		w.patch(id, object{"title": "Changed"}).Want(http.StatusOK, "")
		w.assign(id, object{"assignees": w.ids("bob")}).Want(http.StatusOK, "")
		w.remove(id, "bob").Want(http.StatusOK, "")
		w.answer(id, false).Want(http.StatusOK, "")
		w.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "")
		const entries = `SELECT count(*) FROM log_records WHERE record_id = $1 AND actor_name = 'ERP (API)' AND organization_id = $2`
		want(t, "entries of the work order", w.count(entries, id, w.Acme.OrganizationID), 6)
		want(t, "entries of the feedback", w.count(entries, issue, w.Acme.OrganizationID), 1)
	}},
	{item: "item 6, left out", words: "no time records, attachments or comments", test: func(t *testing.T, w *world) {
		id := w.workOrder(nil)
		for path := range w.openAPI()["paths"].(object) {
			for _, word := range []string{"time", "attachment", "comment", "file", "hold"} {
				want(t, path+" is about "+word, strings.Contains(strings.TrimPrefix(path, "/v1"), word), false)
			}
		}
		for _, part := range []string{"time-records", "attachments", "comments", "hold"} {
			w.post("/work-orders/"+id+"/"+part, object{}).Want(http.StatusNotFound, "not_found")
		}
	}},
	{item: "item 6, hold", words: "and no putting on hold", test: func(_ *testing.T, w *world) {
		id := w.workOrder(nil)
		w.patch(id, object{"status": "on_hold"}).Want(http.StatusUnprocessableEntity, "validation_failed")
		w.patch(id, object{"status": object{"code": "on_hold"}}).Want(http.StatusUnprocessableEntity, "validation_failed")
		w.wantStatus(id, models.StatusOpen)
	}},
	{item: "item 7", words: "a view is bounded by scopes and by permissions", test: func(t *testing.T, w *world) {
		roof := w.workOrder(object{"inventory_id": w.ID("roof")})
		seen := func(key string) bool {
			return slices.Contains(listed(w.As(key, http.MethodGet, "/work-orders?limit=200", nil).Want(http.StatusOK, "")), roof)
		}
		want(t, "seen with both", seen("erp"), true)
		want(t, "seen without the permission", seen("reader"), false)
		w.with("inventory:read", http.MethodGet, "/work-orders", nil).Want(http.StatusForbidden, "insufficient_scope")
	}},
	{item: "item 8, page", words: "integrations are made on a page, by those with the permission", notYet: "the app's page of integrations"},
	{item: "item 8, step 1", words: "a new integration has a name, scopes and an organization definition", test: func(t *testing.T, w *world) {
		imported, err := w.Import(t.Context(), []byte(`
organization: {key: acme}
integrations: [{key: made, name: Made here, scopes: ["work_orders:read"], organization_definition: org_incoming}]`))
		if err != nil {
			t.Fatal(err)
		}
		made := imported.Integrations["made"]
		row := servicetest.Value[string](w.Fixture, `SELECT n.name || ' ' || array_to_string(i.scopes, ' ') || ' ' || d.name FROM integrations i
			JOIN identities n ON n.id = i.id JOIN organization_permission_definitions d ON d.id = i.organization_definition_id
			WHERE i.client_id = $1`, made.ClientID)
		want(t, "the integration", row, "Made here work_orders:read Incoming")
	}},
	{item: "item 8, step 2", words: "its client id and secret are shown when it is made, and work", test: func(t *testing.T, w *world) {
		imported, err := w.Import(t.Context(), []byte(`
organization: {key: acme}
integrations: [{key: shown, name: Shown, scopes: ["work_orders:read"]}]`))
		if err != nil {
			t.Fatal(err)
		}
		form := w.credentials("erp", "")
		form.Set("client_id", imported.Integrations["shown"].ClientID)
		form.Set("client_secret", imported.Integrations["shown"].ClientSecret)
		w.token(form).Want(http.StatusOK, "")
	}},
	{item: "item 8, step 3", words: "an assignment on any of three kinds of node gives it permissions there", test: func(t *testing.T, w *world) {
		t.Cleanup(func() { w.Exec(`DELETE FROM assignments WHERE identity_id = $1`, w.ID("nobody")) })
		w.As("nobody", http.MethodGet, "/equipment/"+w.ID("ahu1"), nil).Want(http.StatusNotFound, "not_found")
		for path, node := range map[string]string{"/locations/": "roof", "/systems/": "hvac", "/equipment/": "ahu1"} {
			w.Exec(`DELETE FROM assignments WHERE identity_id = $1`, w.ID("nobody"))
			w.place("nobody", w.ID(node), w.ID("full"))
			w.As("nobody", http.MethodGet, path+w.ID(node), nil).Want(http.StatusOK, "")
			w.As("nobody", http.MethodGet, "/locations/"+w.ID("annex"), nil).Want(http.StatusNotFound, "not_found")
		}
	}},
	{item: "item 9", words: "a plan without the API gives no tokens", test: func(t *testing.T, w *world) {
		w.withoutAPI(t)
		refused := w.token(w.credentials("erp", "")).Want(http.StatusBadRequest, "")
		want(t, "the error", refused.Text("error"), "unauthorized_client")
		w.As("dispatch", http.MethodGet, "/me", nil).Want(http.StatusOK, "") // another organization's plan has it
	}},
}
