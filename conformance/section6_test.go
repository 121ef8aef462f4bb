package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

var section6 = slices.Concat(setup, eventTypes, requests, receivers, signatures, deliveries)

const hookSecret = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=" // of erp_hook

var setup = []rule{
	{item: "setup 1, page", words: "addresses are managed on the integrations page", code: "console.(*Console).createWebhook", alone: true, test: wantWebhooksPage},
	{item: "setup 1, https", words: "an address uses https", code: "webhook.CheckURL", test: func(t *testing.T, _ *harness) {
		for address, accepted := range map[string]bool{
			"https://hooks.example.com/in": true, "http://hooks.example.com/in": false, "ftp://hooks.example.com": false, "hooks.example.com": false,
		} {
			err := webhook.CheckURL(t.Context(), address, webhook.Rules{})
			want(t, address, err == nil, accepted)
		}
	}},
	{item: "setup 1, internet", words: "and is reachable from the internet", code: "webhook.CheckURL", test: func(t *testing.T, _ *harness) {
		for _, address := range []string{
			"https://127.0.0.1/", "https://10.1.2.3/", "https://192.168.0.1/", "https://169.254.169.254/", "https://[::1]/", "https://localhost/",
		} {
			if err := webhook.CheckURL(t.Context(), address, webhook.Rules{}); err == nil {
				t.Errorf("%s is accepted", address)
			}
			if _, err := webhook.NewClient(webhook.Options{}).Post(t.Context(), address, nil, nil); err == nil {
				t.Errorf("%s was dialed", address)
			}
		}
	}},
	{item: "setup 1, types", words: "an address subscribes to known event types", code: "service/webhooks.checkEvents", test: func(t *testing.T, h *harness) {
		in := webhooks.NewWebhook{URL: "http://127.0.0.1:9/odd", Events: []models.EventType{"work_order.eaten"}}
		if _, err := h.Webhooks.CreateWebhook(t.Context(), h.person("ann"), store.NoKey, h.ID("erp"), in); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("an address with an unknown event type: %v", err)
		}
	}},
	{item: "setup 2", words: "the signing secret is shown once and then sealed", code: "service/store.(*Vault).Seal", test: func(t *testing.T, h *harness) {
		file := []byte(`
organization: {key: acme}
integrations: [{key: erp, webhooks: [{key: fresh_hook, url: "http://127.0.0.1:9/fresh", events: [ping]}]}]`)
		first, err := h.Imports.Run(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := h.Imports.Run(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		secret := first.Integrations["erp"].Webhooks["fresh_hook"].Secret
		want(t, "the secret has the documented form", regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(secret), true)
		want(t, "the secret on the second import", again.Integrations["erp"].Webhooks["fresh_hook"].Secret, "")
		want(t, "rows that contain it unsealed", h.count(`SELECT count(*) FROM webhooks WHERE position(convert_to($1, 'UTF8') IN secret_sealed) > 0`, secret), 0)
	}},
	{item: "setup 3, test", words: "a test delivery shows the receiver's response", code: "service/webhooks.(*Webhooks).TestWebhook", test: func(t *testing.T, h *harness) {
		shown := h.sendTest(http.StatusTeapot, "short and stout").attempt
		want(t, "the status", shown.Status, http.StatusTeapot)
		want(t, "the response", string(shown.ResponseBody), "short and stout")
	}},
	{item: "setup 3, page", words: "Send test on the address's page posts a ping and shows the response", code: "console.(*Console).testWebhook", alone: true, test: wantTestPage},
	{item: "setup 3, deliveries", words: "each address lists its deliveries, which can be redelivered", code: "service/webhooks.(*Webhooks).Deliveries", test: wantDeliveriesList},
	{item: "setup 4", words: "an integration has at most five addresses", code: "service/webhooks.FreeSlot", test: wantFiveAddresses},
}

// eventType is a row of the table of event types: change changes a work order, which sends
// all these events in this order; extra are the fields that the event adds to data.
func eventType(kind models.EventType, words, code, extra, all string, change func(h *harness, id string)) rule {
	return eventOf(kind, words, code, extra, all, func(h *harness) string {
		id := h.quiet(nil)
		change(h, id)
		return id
	})
}

// eventOf is the same of any record, which change returns.
func eventOf(kind models.EventType, words, code, extra, all string, change func(h *harness) (record string)) rule {
	return rule{item: "event " + string(kind), words: words, code: code, test: func(t *testing.T, h *harness) {
		h.forgetDeliveries()
		events := h.wantEvents(change(h), all)
		n := slices.IndexFunc(events, func(e event) bool { return e.Type == string(kind) })
		if n < 0 {
			t.Fatalf("there is no event of type %s", kind)
		}
		names := slices.Sorted(maps.Keys(events[n].Data))
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains([]string{"work_order", "issue", "actor"}, name) })
		wantList(t, "the extra fields", names, strings.Fields(extra)...)
		for name, value := range events[n].Data {
			if value == nil {
				t.Errorf("data.%s is null", name)
			}
		}
	}}
}

var eventTypes = []rule{
	eventOf(models.EventWorkOrderCreated, "a new work order", "service/records.(*Records).CreateWorkOrder", "", "work_order.created",
		func(h *harness) string { return h.workOrder(nil) }),
	eventType(models.EventWorkOrderUpdated, "one of four fields changed, with fields", "service/records.(*Records).UpdateWorkOrder", "fields", "work_order.updated",
		func(h *harness, id string) { h.patch(id, object{"title": "Other"}).Want(http.StatusOK, "") }),
	{item: "event work_order.updated, when", words: "each of the four fields by name; nothing without a real change", code: "service/records.(*Records).UpdateWorkOrder", test: wantUpdatedEvents},
	eventType(models.EventWorkOrderStatusChanged, "any change of status, with both codes", "service/records.(*workOrderChange).apply", "previous_status status", "work_order.status_changed",
		func(h *harness, id string) { h.answer(id, false).Want(http.StatusOK, "") }),
	eventType(models.EventWorkOrderCompleted, "completed, with both codes", "service/records.(*workOrderChange).apply", "previous_status status", "work_order.status_changed work_order.completed",
		func(h *harness, id string) { h.answer(id, true).Want(http.StatusOK, "") }),
	eventOf(models.EventWorkOrderSentToInspection, "completed and sent to the consultant, with both codes", "service/records.(*workOrderChange).apply", "previous_status status",
		"work_order.status_changed work_order.sent_to_inspection", func(h *harness) string {
			id := h.quiet(object{"consultants": h.ids("cat")})
			h.answer(id, true).Want(http.StatusOK, "")
			return id
		}),
	eventType(models.EventWorkOrderCancelled, "cancelled, with both codes", "service/records.(*workOrderChange).apply", "previous_status status", "work_order.status_changed work_order.cancelled",
		func(h *harness, id string) { h.post("/work-orders/"+id+"/cancel", object{}).Want(http.StatusOK, "") }),
	eventType(models.EventWorkOrderAssigneesChanged, "people were added or removed, with their ids", "service/records.(*workOrderChange).reassign",
		"added removed", "work_order.assignees_changed work_order.assignees_changed", func(h *harness, id string) {
			h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
			h.remove(id, "bob").Want(http.StatusOK, "")
		}),
	eventOf(models.EventIssueCreated, "new feedback", "service/records.(*Records).CreateFeedback", "", "issue.created",
		func(h *harness) string { return h.feedback(nil).Want(http.StatusCreated, "").Text("id") }),
	eventOf(models.EventIssueResolved, "feedback was resolved", "service/records.(*Records).ResolveFeedback", "", "issue.resolved", func(h *harness) string {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.forgetDeliveries()
		h.resolve(id)
		return id
	}),
	{item: "event ping", words: "sent as a test, with a message", code: "service/webhooks.(*Webhooks).TestWebhook", test: func(t *testing.T, h *harness) {
		sent := h.sendTest(http.StatusNoContent, "")
		var body event
		if err := json.Unmarshal(sent.body, &body); err != nil {
			t.Fatal(err)
		}
		want(t, "the type", body.Type, "ping")
		want(t, "its header", sent.header.Get("Service-Event-Type"), "ping")
		message, _ := body.Data["message"].(string)
		want(t, "a message", message != "", true)
	}},
	{item: "events 1", words: "completing sends two events: the change of status and the completion", code: "service/records.(*workOrderChange).apply", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		h.answer(id, true).Want(http.StatusOK, "")
		for _, e := range h.wantEvents(id, "work_order.status_changed work_order.completed") {
			want(t, e.Type+" before", e.Data["previous_status"], any("open"))
			want(t, e.Type+" after", e.Data["status"], any("complete"))
		}
	}},
	{item: "events 2, subscribed", words: "an address gets the types that it subscribes to", code: "service/effects.publish", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		h.patch(id, object{"title": "Other"}).Want(http.StatusOK, "")
		want(t, "events at the address for updates", len(h.eventsAt("reader_updates", id)), 1)
		want(t, "deliveries to the address for creations", h.queued("reader_hook", id), 1)
	}},
	{item: "events 2, readable", words: "for records that its integration may read, by permission", code: "service/effects.publish", test: func(t *testing.T, h *harness) {
		below, roof := h.workOrder(nil), h.workOrder(object{"inventory_id": h.ID("roof")})
		want(t, "deliveries below its node", h.queued("reader_hook", below), 1)
		want(t, "deliveries elsewhere", h.queued("reader_hook", roof), 0)
		want(t, "deliveries without permissions", h.queued("outsider_hook", below), 0)
	}},
	{item: "events 2, scope", words: "and by scope", code: "service/effects.publish", test: func(t *testing.T, h *harness) {
		h.setScopes(t, "reader", "people:read")
		want(t, "deliveries without the scope", h.queued("reader_hook", h.workOrder(nil)), 0)
		h.setScopes(t, "reader", "work_orders:read")
		want(t, "deliveries with the scope", h.queued("reader_hook", h.workOrder(nil)), 1)
	}},
	{item: "events 2, later", words: "a record that it may no longer read at delivery is skipped", code: "service/webhooks.(*Webhooks).render", test: func(t *testing.T, h *harness) {
		d := h.pendingDeliveries("reader_hook", h.workOrder(nil))[0]
		h.removeAssignment(t, "reader")
		want(t, "pending deliveries", len(h.pendingDeliveries("reader_hook", d.RecordID)), 0)
		want(t, "the delivery", h.delivery(d.DeliveryID).Status, models.DeliverySkipped)
	}},
}

// request is a rule about the request that a receiver gets.
func request(item, words, code string, check func(t *testing.T, h *harness, got received, body event)) rule {
	return rule{item: item, words: words, code: code, test: func(t *testing.T, h *harness) {
		got := h.sent(t)
		var body event
		if err := json.Unmarshal(got.body, &body); err != nil {
			t.Fatal(err)
		}
		check(t, h, got, body)
	}}
}

var requests = []rule{
	request("request", "a POST of JSON to the address", "webhook.(*Client).Post", func(t *testing.T, _ *harness, got received, _ event) {
		want(t, "method", got.method, http.MethodPost)
		want(t, "path", got.address, "/erp")
		want(t, "Content-Type", got.header.Get("Content-Type"), "application/json")
	}),
	request("header Service-Event-Id", "the event's id", "webhook.(*Signer).Header", func(t *testing.T, _ *harness, got received, body event) {
		want(t, "the header", got.header.Get("Service-Event-Id"), body.ID)
	}),
	request("header Service-Event-Type", "the event's type", "webhook.(*Signer).Header", func(t *testing.T, _ *harness, got received, body event) {
		want(t, "the header", got.header.Get("Service-Event-Type"), body.Type)
	}),
	request("header Service-Signature", "a time and a hex signature", "webhook.(*Signer).Header", func(t *testing.T, h *harness, got received, _ event) {
		form := regexp.MustCompile(`^t=[0-9]+,v1=[0-9a-f]{64}$`)
		want(t, "the header's form", form.MatchString(got.header.Get("Service-Signature")), true)
		if err := webhook.Verify(got.header, got.body, hookSecret, h.Clock.Now()); err != nil {
			t.Error(err)
		}
	}),
	request("body field id", "the same as the header's", "service/webhooks.claimedEvent.body", func(t *testing.T, h *harness, got received, body event) {
		want(t, "id", body.ID, got.header.Get("Service-Event-Id"))
		want(t, "the id's form", strings.HasPrefix(body.ID, "evt_"), true)
		want(t, "events of that id", h.count(`SELECT count(*) FROM events WHERE id = $1`, body.ID), 1)
	}),
	request("body field type", "the event's type", "service/webhooks.claimedEvent.body", func(t *testing.T, _ *harness, _ received, body event) {
		want(t, "the type", body.Type, "work_order.created")
	}),
	request("body field created_at", "when it happened, in UTC", "service/webhooks.claimedEvent.body", func(t *testing.T, h *harness, _ received, body event) {
		want(t, "the time", body.CreatedAt, formatTime(h.Clock.Now()))
	}),
	request("body field organization_id", "the organization in which it happened", "service/webhooks.claimedEvent.body", func(t *testing.T, h *harness, _ received, body event) {
		want(t, "the organization", body.OrganizationID, h.Acme.OrganizationID)
	}),
	request("body field data", "an object", "service/webhooks.claimedEvent.body", func(t *testing.T, _ *harness, _ received, body event) {
		want(t, "data has fields", len(body.Data) > 0, true)
	}),
	request("body field data.work_order", "the work order as a read shows it at delivery", "service/webhooks.(*Webhooks).readClaimed", func(t *testing.T, h *harness, got received, body event) {
		record, _ := body.Data["work_order"].(object)
		want(t, "the title at delivery", record["title"], any("Renamed since"))
		read := h.read(record["id"].(string)).Body
		want(t, "the read record is in the body", bytes.Contains(got.body, read), true)
	}),
	{item: "body field data.issue", words: "the feedback as a read shows it at delivery", code: "service/webhooks.(*Webhooks).readClaimed", test: func(t *testing.T, h *harness) {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.Exec(`UPDATE feedback SET subject = 'Renamed since' WHERE id = $1`, id)
		read := h.get("/issues/"+id).Want(http.StatusOK, "").Body
		d := h.pendingDeliveries("erp_hook", id)[0]
		want(t, "the read record is in the body", strings.Contains(string(d.Body), `"issue":`+string(read)), true)
		want(t, "it is the record at delivery", strings.Contains(string(read), "Renamed since"), true)
	}},
	{item: "body field data.previous_status", words: "previous_status and status are codes", code: "service/records.(*workOrderChange).apply", test: func(t *testing.T, h *harness) {
		id := h.quiet(nil)
		h.answer(id, false).Want(http.StatusOK, "")
		data := h.wantEvents(id, "work_order.status_changed")[0].Data
		want(t, "before", data["previous_status"], any("open"))
		want(t, "after", data["status"], any("in_progress"))
	}},
	{item: "body field data.actor", words: "the identity that made the change", code: "service/webhooks.claimedEvent.body", test: func(t *testing.T, h *harness) {
		h.forgetDeliveries()
		made := h.As("creator", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "x"}).Want(http.StatusCreated, "")
		actor, _ := h.events(made.Text("id"))[0].Data["actor"].(object)
		want(t, "identity_id", actor["identity_id"], any(h.ID("creator")))
	}},
	{item: "body field data.actor, resolved", words: "resolved feedback names its user_id", code: "service/webhooks.claimedEvent.body", test: func(t *testing.T, h *harness) {
		id := h.feedback(nil).Want(http.StatusCreated, "").Text("id")
		h.forgetDeliveries()
		h.resolve(id)
		resolved := h.wantEvents(id, "issue.resolved")[0]
		actor, _ := resolved.Data["actor"].(object)
		want(t, "user_id", actor["user_id"], any(h.ID("ann")))
		issue, _ := resolved.Data["issue"].(object)
		status, _ := issue["status"].(object)
		want(t, "the record's status", status["code"], any("resolved"))
	}},
	{item: "own changes", words: "the actor of one's own change is the identity of GET /me", code: "service/webhooks.claimedEvent.body", test: func(t *testing.T, h *harness) {
		h.forgetDeliveries()
		actor, _ := h.events(h.workOrder(nil))[0].Data["actor"].(object)
		want(t, "the actor", actor["identity_id"], any(h.get("/me").Text("identity_id")))
	}},
}

var receivers = []rule{
	{item: "receiver rule 1, answer", words: "only a 2xx within the limit counts as delivered", code: "service/webhooks.(*Webhooks).RecordAttempts", test: func(t *testing.T, h *harness) {
		for code, status := range map[int]models.DeliveryStatus{
			200: models.DeliveryDelivered, 204: models.DeliveryDelivered, 299: models.DeliveryDelivered,
			302: models.DeliveryRetrying, 404: models.DeliveryRetrying, 500: models.DeliveryRetrying, 0: models.DeliveryRetrying,
		} {
			d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
			h.attempt("erp_hook", d, code)
			want(t, "after "+strconv.Itoa(code), h.delivery(d.DeliveryID).Status, status)
		}
	}},
	{item: "receiver rule 1, time", words: "after 10 seconds the attempt fails", code: "webhook.(*Client).Post", test: wantReceiverTimeout},
	{item: "receiver rule 1, redirects", words: "a redirect is not followed", code: "webhook.NewClient", test: func(t *testing.T, _ *harness) {
		var paths []string
		server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.URL.Path)
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		})
		response, err := client().Post(t.Context(), server.URL+"/hook", nil, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "the status", response.Status, http.StatusTemporaryRedirect)
		wantList(t, "the requested paths", paths, "/hook")
	}},
}

var signatures = []rule{
	{item: "signature step 1", words: "lowercase hex HMAC-SHA256 of time, dot and body, keyed with the secret as shown", code: "webhook.(*Signer).Header", test: func(t *testing.T, _ *harness) {
		signer, err := webhook.NewSigner(hookSecret)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"id":"evt_1","Ä":"ü"}`
		got := signer.Header("evt_1", "ping", signingTime, []byte(body)).Get("Service-Signature")
		want(t, "the header", got, signed(hookSecret, signingTime, body).Get("Service-Signature"))
	}},
	{item: "signature step 2", words: "over the raw bytes: the same JSON with other spacing does not verify", code: "webhook.Verify", test: func(t *testing.T, _ *harness) {
		header := signed(hookSecret, signingTime, `{"id":"evt_1"}`)
		if err := webhook.Verify(header, []byte(`{"id":"evt_1"}`), hookSecret, signingTime); err != nil {
			t.Error(err)
		}
		if err := webhook.Verify(header, []byte(`{"id": "evt_1"}`), hookSecret, signingTime); !errors.Is(err, webhook.ErrMismatch) {
			t.Errorf("with an added space: %v, want a mismatch", err)
		}
	}},
	{item: "signature step 3", words: "our verifier compares every byte, first and last alike", code: "webhook.Verify", test: func(t *testing.T, _ *harness) {
		good := signed(hookSecret, signingTime, "{}").Get("Service-Signature")
		start := strings.Index(good, "v1=") + 3
		for _, n := range []int{start, len(good) / 2, len(good) - 1} {
			bad := []byte(good)
			bad[n] ^= 1
			if err := webhook.Verify(http.Header{"Service-Signature": {string(bad)}}, []byte("{}"), hookSecret, signingTime); err == nil {
				t.Errorf("a signature with a changed byte %d verifies", n)
			}
		}
	}},
	{item: "signature step 4", words: "a signature older than 300 seconds is rejected", code: "webhook.Verify", test: wantStale},
}

var deliveries = []rule{
	{item: "delivery 1", words: "a retried event keeps its id", code: "service/webhooks.(*Webhooks).NextRetry", test: func(t *testing.T, h *harness) {
		first := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
		h.attempt("erp_hook", first, 500)
		want(t, "the event's id", h.dueRetry(first.DeliveryID).EventID, first.EventID)
	}},
	{item: "delivery 2", words: "a record's events are sent in the order of its changes", code: "activities.(*dispatchRun).claim", test: func(t *testing.T, h *harness) {
		h.forgetDeliveries()
		id := h.workOrder(nil)
		h.patch(id, object{"title": "Other"}).Want(http.StatusOK, "")
		h.assign(id, object{"assignees": h.ids("bob")}).Want(http.StatusOK, "")
		h.answer(id, true).Want(http.StatusOK, "")
		var types []string
		for _, one := range h.arrivals(t) {
			types = append(types, one.header.Get("Service-Event-Type"))
		}
		wantList(t, "the events", types, "work_order.created", "work_order.updated", "work_order.assignees_changed", "work_order.status_changed", "work_order.completed")
	}},
	{item: "delivery 3, schedule", words: "seven retries on schedule, then the delivery fails", code: "models.RetrySchedule.After", alone: true, test: wantSchedule},
	{item: "delivery 3, redelivery", words: "a failed delivery can be sent again", code: "service/webhooks.(*Webhooks).RetryNow", test: func(t *testing.T, h *harness) {
		d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
		d = servicetest.MadeBefore(h.Fixture, d, 7)
		h.attempt("erp_hook", d, 500)
		want(t, "before", h.delivery(d.DeliveryID).Status, models.DeliveryFailed)
		if err := h.Webhooks.RetryNow(t.Context(), d.DeliveryID); err != nil {
			t.Fatal(err)
		}
		h.attempt("erp_hook", h.dueRetry(d.DeliveryID), 200)
		want(t, "after", h.delivery(d.DeliveryID).Status, models.DeliveryDelivered)
	}},
	{item: "delivery 3, list", words: "from the list of deliveries", code: "service/webhooks.(*Webhooks).RedeliverDelivery", test: wantDeliveriesList},
	{item: "delivery 3, page", words: "with Redeliver, in the console", code: "console.(*Console).redeliverOne", alone: true, test: wantRedeliverPage},
	{item: "delivery 4, off", words: "a final failure after 3 days without success turns off the address", code: "service/webhooks.(*Webhooks).TurnOffIfUnsuccessful", alone: true, test: wantShutOff},
	{item: "delivery 4, page", words: "the page shows why, and turns it on again", code: "console.(*Console).renderWebhook, console.(*Console).turnWebhookOn", alone: true, test: wantOffPage},
	{item: "delivery 5, retention", words: "an event is kept for 30 days", code: "service/upkeep.(*Upkeep).RemoveExpired", alone: true, test: wantRetention},
	{item: "delivery 5, sync", words: "missed changes are found with changed_since", code: "service/records.(*Records).WorkOrders", alone: true, test: func(t *testing.T, h *harness) {
		h.workOrder(nil)
		h.WaitForOpenTransactions()
		token := h.get("/work-orders?changed_since=2020-01-01T00:00:00Z").Want(http.StatusOK, "").Text("sync_token")
		h.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'test', off_at = now()`)
		missed := h.workOrder(nil)
		h.WaitForOpenTransactions()
		page := h.get("/work-orders?changed_since="+token).Want(http.StatusOK, "")
		wantList(t, "the changes", pageIDs(page), missed)
	}},
}
