package e2e

import (
	"net/http"
	"strings"
	"time"

	"millwright/console/consoletest"
	"millwright/workflows"
)

const (
	invitedEmail    = "nia.moor@acme.example.com"
	newInvitedEmail = "nia.stone@acme.example.com"
)

// fill replaces {id}, and keys in braces by their ids.
func (w *writes) fill(text, id string) string {
	text = strings.ReplaceAll(text, "{id}", id)
	for key, of := range w.ids {
		text = strings.ReplaceAll(text, "{"+key+"}", of)
	}
	return text
}

// submitted is a write with a form of the console. Texts in braces are ids.
func submitted(as, page, action string, pairs ...string) func(w *writes, id string) {
	return func(w *writes, id string) {
		w.t.Helper()
		var filled []string
		for _, text := range pairs {
			filled = append(filled, w.fill(text, id))
		}
		w.post(as, "/console"+w.fill(page, id), "/console"+w.fill(action, id), filled...)
	}
}

// managed is a write of the manager with the form that has the path it sends to.
func managed(path string, pairs ...string) func(w *writes, id string) {
	return submitted("manager", path, path, pairs...)
}

// selected is what a query of one id finds.
func selected(sql string, args ...any) func(w *writes) string {
	return func(w *writes) string { w.t.Helper(); return w.text(sql, args...) }
}

// commented makes a record with a comment of the creator; {comment} is the comment.
func commented(record func(w *writes) string, path string) func(w *writes) string {
	return func(w *writes) string {
		w.t.Helper()
		id := record(w)
		w.post("clerk", path+id, path+id+"/comments", "text", "Since when?")
		w.ids["comment"] = w.text(`SELECT id FROM comments WHERE record_id = $1`, id)
		return id
	}
}

// withForm creates a work order with a form.
func (w *writes) withForm() string {
	w.t.Helper()
	to := w.post("clerk", "/console/work-orders/new?node="+w.erp.node, "/console/work-orders",
		"title", "Replace filter", "form_id", w.ids["inspection"], "assignees", w.ids["worker"], "consultants", w.ids["advisor"])
	id, _, _ := strings.Cut(strings.TrimPrefix(to, "/console/work-orders/"), "?")
	return id
}

// retrying creates a work order whose delivery the receiver rejected once, and returns the delivery.
func (w *writes) retrying() string {
	w.t.Helper()
	w.receiver.respondWith(always(http.StatusServiceUnavailable))
	order := w.planned()
	eventually(w.t, deliveryLimit, "the delivery waits for its next attempt", func() bool {
		return w.count(`SELECT count(*) FROM all_deliveries WHERE record_id = $1 AND status = 'retrying'`, order) == 1
	})
	w.receiver.respondWith(accept)
	return w.text(`SELECT id FROM all_deliveries WHERE record_id = $1`, order)
}

// inDelivery is an update of a delivery's workflow.
func inDelivery(name string) func(w *writes, id string) {
	return func(w *writes, id string) { w.t.Helper(); w.updateIn(workflows.DeliveryID(id), name, object{}) }
}

// workWays are more writes of people about work.
func workWays() []writeWay {
	planned, feedback := (*writes).planned, (*writes).feedback
	return []writeWay{
		{"start work", inConsole, planned, onPage("worker", "", "/start")},
		{"answer", inConsole, (*writes).withForm, submitted("worker", "/work-orders/{id}/answers", "/work-orders/{id}/answers", "{finding}", "Worn")},
		{"assign a worker to selected work orders", inConsole, planned, managed("/work-orders/assign?id={id}", "identity", "{crew}", "role", "worker")},
		{"set the due date of selected work orders", inConsole, planned, managed("/work-orders/due?id={id}", "target_date", "2030-01-02T10:00")},
		{"set the priority of selected work orders", inConsole, planned, managed("/work-orders/priority?id={id}", "priority", "high")},
		{"remove a comment on a work order", inConsole, commented(planned, "/console/work-orders/"), submitted("manager", "/work-orders/{id}/remove-comment?comment={comment}", "/work-orders/{id}/remove-comment?comment={comment}")},
		{"remove a comment on feedback", inConsole, commented(feedback, "/console/feedback/"), submitted("manager", "/feedback/{id}/remove-comment?comment={comment}", "/feedback/{id}/remove-comment?comment={comment}")},
	}
}

// deliveryWays are the writes on deliveries.
func deliveryWays() []writeWay {
	retrying := (*writes).retrying
	hook := func(w *writes) string { w.t.Helper(); w.retrying(); return w.ids["hook"] }
	return []writeWay{
		{"redeliver a delivery", inConsole, retrying, submitted("manager", "/deliveries/{id}", "/deliveries/{id}/redeliver")},
		{"redeliver a delivery", byCommand, retrying, commanded("deliveries", "redeliver", "{id}", "--as", managerEmail)},
		{"redeliver a delivery", inTemporal, retrying, inDelivery(workflows.SignalRedeliver)},
		{"stop a delivery", inTemporal, retrying, inDelivery(workflows.SignalStop)},
		{"redeliver selected deliveries", inConsole, retrying, submitted("manager", "/deliveries", "/deliveries/redeliver", "delivery", "{id}")},
		{"redeliver matching deliveries", inConsole, hook, managed("/deliveries/redeliver-matching?webhook={id}&status=retrying")},
		{"redeliver what an address missed", inConsole, hook, submitted("manager", "/webhooks/{id}/missed", "/webhooks/{id}/missed")},
		{"redeliver what an address missed", byCommand, hook, commanded("deliveries", "redeliver", "--address", "{id}", "--since", "1h", "--as", managerEmail)},
		{"redeliver what an address missed", inTemporal, hook, func(w *writes, id string) {
			w.updateIn(workflows.WebhookAddressID(id), "redeliver", object{"since": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)})
		}},
	}
}

// integrationWays are the writes on integrations and their webhook addresses.
func integrationWays() []writeWay {
	none := func(*writes) string { return "" }
	made := selected(`SELECT max(id) FROM integrations`)
	address := selected(`SELECT max(id) FROM webhooks`)
	const url = "{receiver}/more"
	return []writeWay{
		{"create an integration", inConsole, none, submitted("manager", "/integrations/new", "/integrations", "name", "Warehouse", "scopes", "work_orders:read", "organization_definition_id", "")},
		{"rename an integration", inConsole, made, managed("/integrations/{id}", "name", "Depot", "scopes", "work_orders:read", "organization_definition_id", "")},
		{"change an integration's scopes", inConsole, made, managed("/integrations/{id}", "name", "Depot", "scopes", "work_orders:read", "scopes", "inventory:read", "organization_definition_id", "")},
		{"renew an integration's secret", inConsole, made, managed("/integrations/{id}/secret", "overlap", "24")},
		{"end an integration's old secret", inConsole, made, submitted("manager", "/integrations/{id}", "/integrations/{id}/end-old-secret")},
		{"assign an integration to a place", inConsole, made, managed("/integrations/{id}/assign", "node", "{hq}", "definition_id", "{working}")},
		{"remove an integration from a place", inConsole, made, managed("/integrations/{id}/unassign?node={hq}")},
		{"turn an integration off", inConsole, made, managed("/integrations/{id}/off")},
		{"turn an integration on", inConsole, made, submitted("manager", "/integrations/{id}", "/integrations/{id}/on")},
		{"create an address", inConsole, made, submitted("manager", "/integrations/{id}/webhooks/new", "/integrations/{id}/webhooks", "url", url, "events", "work_order.created")},
		{"change an address", inConsole, address, managed("/webhooks/{id}", "url", url+"/2", "events", "work_order.created")},
		{"renew an address's secret", inConsole, address, managed("/webhooks/{id}/secret")},
		{"test an address", inConsole, none, submitted("manager", "/webhooks/{hook}", "/webhooks/{hook}/test")},
		{"turn an address off", inConsole, address, managed("/webhooks/{id}/off", "reason", "It moves.")},
		{"turn an address on", inConsole, address, submitted("manager", "/webhooks/{id}/missed", "/webhooks/{id}/on")},
		{"delete an address", inConsole, address, managed("/webhooks/{id}/delete")},
		{"change an integration's owners", inConsole, made, submitted("manager", "/integrations/{id}", "/integrations/{id}/owners")},
		{"delete an integration", inConsole, made, managed("/integrations/{id}/delete")},

		{"create an integration", byCommand, none, commanded("integrations", "create", "--organization", "acme", "--name", "Warehouse", "--scope", "work_orders:read", "--as", managerEmail)},
		{"rename an integration", byCommand, made, commanded("integrations", "rename", "{id}", "--name", "Depot", "--as", managerEmail)},
		{"change an integration's scopes", byCommand, made, commanded("integrations", "scopes", "{id}", "--scope", "inventory:read", "--as", managerEmail)},
		{"renew an integration's secret", byCommand, made, commanded("integrations", "renew-secret", "{id}", "--overlap", "24h", "--as", managerEmail)},
		{"end an integration's old secret", byCommand, made, commanded("integrations", "end-old-secret", "{id}", "--as", managerEmail)},
		{"disable an integration", byCommand, made, commanded("integrations", "disable", "{id}")},
		{"enable an integration", byCommand, made, commanded("integrations", "enable", "{id}")},
		{"create an address", byCommand, made, commanded("webhooks", "create", "--integration", "{id}", "--url", url, "--event", "work_order.created", "--as", managerEmail)},
		{"change an address", byCommand, address, commanded("webhooks", "change", "{id}", "--url", url+"/2", "--as", managerEmail)},
		{"renew an address's secret", byCommand, address, commanded("webhooks", "renew-secret", "{id}", "--as", managerEmail)},
		{"delete an address", byCommand, address, commanded("webhooks", "delete", "{id}", "--as", managerEmail)},
		{"change an integration's owners", byCommand, made, commanded("integrations", "owners", "{id}", "--as", managerEmail)},
		{"delete an integration", byCommand, made, commanded("integrations", "delete", "{id}", "--as", managerEmail)},
	}
}

// placeWays are the writes on the inventory and the permissions on it.
func placeWays() []writeWay {
	none := func(*writes) string { return "" }
	annex := selected(`SELECT id FROM inventory_nodes WHERE name LIKE 'Annex%'`)
	form := selected(`SELECT id FROM forms WHERE name LIKE 'Fire door%'`)
	return []writeWay{
		{"create a place", inConsole, none, submitted("manager", "/inventory/new?node={hq}", "/inventory", "node", "{hq}", "kind", "location", "name", "Annex")},
		{"create several places", inConsole, annex, managed("/inventory/{id}/several", "kind", "location", "lines", "Cellar; C-1")},
		{"change a place", inConsole, annex, managed("/inventory/{id}/edit", "name", "Annex 2")},
		{"give permissions on a place", inConsole, annex, managed("/inventory/{id}/assign", "identity_id", "{advisor}", "definition_id", "{working}")},
		{"change permissions on a place", inConsole, annex, submitted("manager", "/inventory/{id}/assign?identity={advisor}", "/inventory/{id}/assign", "identity_id", "{advisor}", "definition_id", "{desk}")},
		{"remove permissions on a place", inConsole, annex, managed("/inventory/{id}/unassign?identity={advisor}")},
		{"create a form", inConsole, none, submitted("manager", "/forms/new", "/forms", "name", "Fire door")},
		{"change a form", inConsole, form, managed("/forms/{id}/edit", "name", "Fire doors")},
		{"add a question", inConsole, form, managed("/forms/{id}/question", "label", "State", "type", "text")},
		{"create a role", inConsole, none, managed("/people/definitions/edit?on=places", "name", "Caretaker", "grants", "inventory.read")},
		{"retire a place", inConsole, selected(`SELECT id FROM inventory_nodes WHERE name = 'Cellar'`), managed("/inventory/{id}/retire")},
		{"bring a place back", inConsole, selected(`SELECT id FROM inventory_nodes WHERE name = 'Cellar'`), submitted("manager", "/inventory/{id}", "/inventory/{id}/bring-back")},
		{"move a place", inConsole, annex, managed("/inventory/{id}/move", "node", "")},
	}
}

// peopleWays are the writes on people and teams, and of people on their accounts.
func peopleWays() []writeWay {
	none := func(*writes) string { return "" }
	person := selected(`SELECT id FROM people WHERE email IN ($1, $2)`, invitedEmail, newInvitedEmail)
	team := selected(`SELECT max(id) FROM identities WHERE kind = 'team'`)
	advisor := func(w *writes) string { return w.ids["advisor"] }
	return []writeWay{
		{"invite a person", inConsole, none, submitted("manager", "/people/new", "/people", "email", invitedEmail, "name", "Nia Moor", "definition", "")},
		{"make a new link for a person", inConsole, person, submitted("manager", "/people/{id}", "/people/{id}/link")},
		{"change a person's permissions", inConsole, person, managed("/people/{id}", "definition", "{helpdesk}", "confirmed", invitedEmail)},
		{"change a person's address", inConsole, person, submitted("manager", "/people/{id}", "/people/{id}/email", "email", newInvitedEmail)},
		{"deactivate a person", inConsole, person, managed("/people/{id}/deactivate", "replacement", "")},
		{"activate a person", inConsole, person, submitted("manager", "/people/{id}", "/people/{id}/activate")},
		{"change a person's address", byCommand, person, commanded("people", "change-email", newInvitedEmail, invitedEmail)},
		{"set a person's password", byCommand, person, commanded("people", "set-password", invitedEmail, "--generate")},
		{"deactivate a person", byCommand, person, commanded("people", "deactivate", invitedEmail, "--as", managerEmail)},
		{"activate a person", byCommand, person, commanded("people", "activate", invitedEmail)},
		{"invite a person", byCommand, none, commanded("people", "invite", "noel.ward@acme.example.com", "--organization", "acme", "--name", "Noel Ward")},
		{"create a team", inConsole, none, submitted("manager", "/teams/new", "/teams", "name", "Roofers")},
		{"rename a team", inConsole, team, managed("/teams/{id}", "name", "Day shift")},
		{"add a member to a team", inConsole, team, managed("/teams/{id}/members", "person", "{worker}")},
		{"remove a member from a team", inConsole, team, managed("/teams/{id}/remove?member={worker}")},
		{"delete a team", inConsole, team, managed("/teams/{id}/delete")},
		{"change one's profile", inConsole, none, submitted("worker", "/account", "/account", "name", workerName, "time_zone", "UTC", "theme", "dark")},
		{"change one's password", inConsole, none, submitted("worker", "/account", "/account/password", "old_password", consoletest.Password, "password", "another good password")},
		{"remove the ways in of a person", inConsole, advisor, managed("/people/{id}/ways-in")},
	}
}
