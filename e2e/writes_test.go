package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/workflows"
)

var updateWrites = flag.Bool("update", false, "write docs/writes.md again")

// The ways to write.
const (
	byAPI      = "API"
	inConsole  = "console"
	byCommand  = "command"
	inTemporal = "Temporal"
)

const (
	clerkName, clerkEmail           = "Rosalind Featherby", "rosalind.featherby@acme.example.com"
	dispatcherName, dispatcherEmail = "Ignatius Holloway", "ignatius.holloway@polar.example.com"
	otherWorkerName                 = "Wilhelmina Ostrov"
	// leaver is assigned to nothing: what someone leaves is handed over later, during other writes.
	leaverName, leaverEmail = "Cornelius Ashdown", "cornelius.ashdown@acme.example.com"
)

// writes makes every write in every way, and reads who was notified, what was logged and sent.
type writes struct {
	*harness
	erp      *integrator
	receiver *receiver
	ids      map[string]string
	live     map[string]*consoletest.Visitor
	// roles are the people's, by identity id.
	roles map[string]string
	// made are the requests and commands of rows, by the names of allWrites; observed is whether a
	// row's write is being made, not its record.
	made     map[string]bool
	observed bool
}

// newWrites starts an installation with a person for each role on a work order, in an
// organization with a service company.
func newWrites(t *testing.T) *writes {
	t.Helper()
	r := newReceiver(t)
	r.events = "work_order.created, work_order.updated, work_order.status_changed, work_order.completed, work_order.sent_to_inspection, " +
		"work_order.cancelled, work_order.assignees_changed, issue.created, issue.resolved"
	h := newHarness(t, settings{"OPERATOR_ACTIONS": "true"}, r)
	h.importWorkforce()
	polar := h.importFile(fmt.Sprintf(`
organization: {key: polar, name: Polar Lifts, plan: {name: basic, api: true, manual_work_orders: true, calls_per_minute: 100, integrations: 2}}
organization_permission_definitions: [{key: incoming, name: Incoming, grants: [incoming_work_orders]}]
people: [{key: dispatcher, name: %q, email: %q, organization_definition: incoming}]
`, dispatcherName, dispatcherEmail))
	more := h.importFile(fmt.Sprintf(`
organization: {key: acme}
service_companies: [{key: polar}]
organization_permission_definitions: [{key: helpdesk, name: Help desk, grants: [people]}]
permission_definitions: [{key: desk, name: Desk, applies_below: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update, work_orders.delete, work_orders.forward, feedback.read, feedback.create, feedback.resolve]}]
people: [{key: clerk, name: %q, email: %q}, {key: leaver, name: %q, email: %q}]
teams: [{key: leavers, name: Leavers, members: [leaver]}]
assignments:
  - {node: hq, identity: clerk, definition: desk}
  - {node: hq, identity: polar, definition: working}
`, clerkName, clerkEmail, leaverName, leaverEmail))
	w := &writes{harness: h, receiver: r, ids: h.org.imported.IDs, live: map[string]*consoletest.Visitor{}, roles: map[string]string{}, made: map[string]bool{}}
	maps.Copy(w.ids, more.IDs)
	w.ids["dispatcher"], w.ids["hook"], w.ids["receiver"] = polar.IDs["dispatcher"], h.org.webhookID(1), r.url()
	w.ids["polar"] = w.text(`SELECT id FROM organizations WHERE key = 'polar'`)
	h.startWorker()
	h.startAPI(nil)
	w.erp = h.integrator()
	for key, person := range map[string][2]string{
		"manager": {managerEmail, managerName}, "clerk": {clerkEmail, clerkName}, "worker": {workerEmail, workerName},
		"advisor": {advisorEmail, advisorName}, "dispatcher": {dispatcherEmail, dispatcherName},
	} {
		organization := "acme"
		if key == "dispatcher" {
			organization = "polar"
		}
		h.firstSignInTo(organization, person[0], person[1])
		v := consoletest.Visit(t, h.settings["MILLWRIGHT_PUBLIC_URL"])
		v.Post("/console/sign-in", v.Get("/console/sign-in").Form("email", person[0], "password", consoletest.Password)).Want(http.StatusSeeOther)
		w.live[key] = v
	}
	for key, role := range map[string]string{
		"manager": "manager", "clerk": "creator", "worker": "worker", "member": "new worker", "advisor": "consultant", "dispatcher": "company",
	} {
		w.roles[w.ids[key]] = role
	}
	return w
}

func (w *writes) text(sql string, args ...any) (text string) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), sql, args...).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// call makes a call of the ERP, which must succeed.
func (w *writes) call(method, path string, body any) apiResponse {
	w.t.Helper()
	response, err := w.erp.call(method, path, "", body)
	if err != nil || response.status >= http.StatusBadRequest {
		w.t.Fatalf("%s %s: status %d, error %v, body %s", method, path, response.status, err, response.body)
	}
	w.record(method + " " + path)
	return response
}

// post sends the form of a page with the given pairs of name and value, and returns where it leads.
func (w *writes) post(as, page, action string, pairs ...string) string {
	w.t.Helper()
	v := w.live[as]
	form := v.Get(page).Want(http.StatusOK).Form()
	for i := 0; i < len(pairs); i += 2 {
		form.Del(pairs[i]) // of another form of the page
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	sent := v.Post(action, form)
	if sent.Status != http.StatusOK { // a page that shows a secret
		sent.Want(http.StatusSeeOther)
	}
	w.record("POST " + action)
	return sent.Location()
}

// order creates a work order in the console, as the clerk, with the people of the keys.
func (w *writes) order(workers []string, consultants ...string) string {
	w.t.Helper()
	pairs := []string{"title", "Replace filter"}
	for _, key := range workers {
		pairs = append(pairs, "assignees", w.ids[key])
	}
	for _, key := range consultants {
		pairs = append(pairs, "consultants", w.ids[key])
	}
	to := w.post("clerk", "/console/work-orders/new?node="+w.erp.node, "/console/work-orders", pairs...)
	id, _, _ := strings.Cut(strings.TrimPrefix(to, "/console/work-orders/"), "?")
	return id
}

// reviewed creates a work order that waits for its review.
func (w *writes) reviewed() string {
	w.t.Helper()
	id := w.order([]string{"worker", "erp"}, "advisor")
	w.erp.complete(id)
	return id
}

func (w *writes) held() string {
	w.t.Helper()
	id := w.planned()
	w.post("worker", consolePath(id), consolePath(id)+"/hold")
	return id
}

// planned creates a work order with a worker, the ERP as another and a consultant.
func (w *writes) planned() string { w.t.Helper(); return w.order([]string{"worker", "erp"}, "advisor") }

// simple creates a work order without a consultant.
func (w *writes) simple() string { w.t.Helper(); return w.order([]string{"worker", "erp"}) }

// forwarded creates a work order of the service company.
func (w *writes) forwarded() string { w.t.Helper(); return w.order([]string{"polar"}) }

func (w *writes) feedback() string {
	w.t.Helper()
	return w.createFeedback("clerk")
}

func (w *writes) createFeedback(as string) string {
	w.t.Helper()
	to := w.post(as, "/console/feedback/new?node="+w.erp.node, "/console/feedback", "subject", "It rattles")
	id, _, _ := strings.Cut(strings.TrimPrefix(to, "/console/feedback/"), "?")
	return id
}

func consolePath(id string) string { return "/console/work-orders/" + id }

// update sends an update in Temporal.
func (w *writes) updateIn(workflowID, name string, input any) {
	w.t.Helper()
	w.awaitFound(`WorkflowId = "`+workflowID+`"`, workflowID)
	if err := w.sendUpdate(workflowID, name, input, nil); err != nil {
		w.t.Fatalf("%s of %s: %v", name, workflowID, err)
	}
}

// write is a write in one way.
type writeWay struct {
	write, way string
	// prepare makes the record.
	prepare func(w *writes) string
	do      func(w *writes, id string)
}

// onPage is a write with the form of the record's page in the console.
func onPage(as, page, action string, pairs ...string) func(w *writes, id string) {
	return submitted(as, "/work-orders/{id}"+page, "/work-orders/{id}"+action, pairs...)
}

// called is a write by the API.
func called(method, path string, body func(w *writes) any) func(w *writes, id string) {
	return func(w *writes, id string) {
		w.t.Helper()
		var sent any
		if body != nil {
			sent = body(w)
		}
		w.call(method, w.fill(path, id), sent)
	}
}

func commanded(args ...string) func(w *writes, id string) {
	return func(w *writes, id string) {
		w.t.Helper()
		filled := slices.Clone(args)
		for i := range filled {
			filled[i] = w.fill(filled[i], id)
		}
		if _, message, status := w.operate(filled...); status != 0 {
			w.t.Fatalf("millwright %v ended with status %d: %s", filled, status, message)
		}
		w.record("millwright " + args[0])
		w.record("millwright " + args[0] + " " + args[1])
	}
}

func updated(name string, person string, more object) func(w *writes, id string) {
	return func(w *writes, id string) {
		w.t.Helper()
		input := object{"person": w.ids[person]}
		for member, value := range more {
			input[member] = value
		}
		flow := workflows.WorkOrderID(id)
		w.updateIn(flow, name, input)
	}
}

func body(value any) func(*writes) any { return func(*writes) any { return value } }

// writeWays are all writes in the order of the page. Ending the relation comes last: its work
// orders come back later. Before it come writes on people, which end their sessions.
func writeWays() []writeWay {
	return slices.Concat(workOrderWays(), workWays(), operatorWays(), deliveryWays(), integrationWays(), placeWays(), peopleWays(), []writeWay{
		{"end the relation with a service company", inConsole, func(*writes) string { return "" }, managed("/service-companies/{polar}/end")},
	})
}

// workOrderWays are the writes that people and programs make on work orders and feedback.
func workOrderWays() []writeWay {
	none := func(*writes) string { return "" }
	planned, simple, reviewed, held, forwarded := (*writes).planned, (*writes).simple, (*writes).reviewed, (*writes).held, (*writes).forwarded
	complete := body(object{"answers": []any{}, "complete": true})
	whom := func(w *writes) any {
		return object{"inventory_id": w.erp.node, "title": "Replace filter", "assignees": []string{w.ids["worker"]}, "consultants": []string{w.ids["advisor"]}}
	}
	return []writeWay{
		{"create", byAPI, none, called(http.MethodPost, "/work-orders", whom)},
		{"create", inConsole, none, func(w *writes, _ string) { w.order([]string{"worker"}, "advisor") }},
		{"change the title", byAPI, planned, called(http.MethodPatch, "/work-orders/{id}", body(object{"title": "Replace the filter"}))},
		{"change the title", inConsole, planned, onPage("manager", "/edit", "/edit", "title", "Replace the filter")},
		{"change the external id only", byAPI, planned, called(http.MethodPatch, "/work-orders/{id}", body(object{"external_id": "PO-7"}))},
		{"assign a worker", byAPI, planned, called(http.MethodPost, "/work-orders/{id}/assignees", func(w *writes) any { return object{"assignees": []string{w.ids["member"]}} })},
		{"assign a worker", inConsole, planned, onPage("manager", "/assign", "/assign", "identity", "{crew}", "role", "worker")},
		{"replace the workers", inConsole, planned, onPage("manager", "/assign", "/assign", "identity", "{crew}", "step", "replace")},
		{"remove a worker", byAPI, planned, called(http.MethodDelete, "/work-orders/{id}/assignees/{worker}", nil)},
		{"remove a worker", inConsole, planned, onPage("manager", "", "/unassign", "identity", "{worker}")},
		{"answer", byAPI, planned, called(http.MethodPost, "/work-orders/{id}/answers", body(object{"answers": []any{}}))},
		{"put on hold", inConsole, planned, onPage("worker", "", "/hold")},
		{"put on hold", byCommand, planned, commanded("work-orders", "hold", "{id}", "--as", workerEmail)},
		{"put on hold", inTemporal, planned, updated("hold", "worker", nil)},
		{"resume", inConsole, held, onPage("worker", "", "/resume")},
		{"resume", byCommand, held, commanded("work-orders", "resume", "{id}", "--as", workerEmail)},
		{"resume", inTemporal, held, updated("resume", "worker", nil)},
		{"complete", byAPI, simple, called(http.MethodPost, "/work-orders/{id}/answers", complete)},
		{"complete", inConsole, simple, onPage("worker", "/complete", "/complete")},
		{"send to review", byAPI, planned, called(http.MethodPost, "/work-orders/{id}/answers", complete)},
		{"send to review", inConsole, planned, onPage("worker", "", "/complete")},
		{"approve", inConsole, reviewed, onPage("advisor", "", "/review", "decision", "approve", "comment", "")},
		{"approve", byCommand, reviewed, commanded("work-orders", "review", "{id}", "--approve", "--as", advisorEmail)},
		{"approve", inTemporal, reviewed, updated("review", "advisor", object{"decision": "approve", "comment": ""})},
		{"send back", inConsole, reviewed, onPage("advisor", "", "/review", "decision", "send_back", "comment", "Loose.")},
		{"send back", byCommand, reviewed, commanded("work-orders", "review", "{id}", "--send-back", "--comment", "Loose.", "--as", advisorEmail)},
		{"send back", inTemporal, reviewed, updated("review", "advisor", object{"decision": "send_back", "comment": "Loose."})},
		{"cancel", byAPI, planned, called(http.MethodPost, "/work-orders/{id}/cancel", body(object{}))},
		{"cancel", inConsole, planned, onPage("manager", "/cancel", "/cancel", "reason", "A duplicate")},
		{"cancel", inTemporal, planned, updated("cancel", "manager", object{"reason": "A duplicate"})},
		{"forward to a service company", inConsole, none, func(w *writes, _ string) { w.forwarded() }},
		{"return to the customer", inConsole, forwarded, onPage("dispatcher", "/return", "/return", "reason", "No one is on site.")},
		{"give feedback", byAPI, none, called(http.MethodPost, "/issues", func(w *writes) any { return object{"inventory_id": w.erp.node, "subject": "It rattles"} })},
		{"give feedback", inConsole, none, func(w *writes, _ string) { w.createFeedback("clerk") }},
		{"resolve feedback", inConsole, (*writes).feedback, submitted("manager", "/feedback/{id}", "/feedback/{id}/resolve")},
		{"resolve feedback", byCommand, (*writes).feedback, commanded("issues", "resolve", "{id}", "--as", managerEmail)},
		{"comment on a work order", inConsole, planned, onPage("clerk", "", "/comments", "text", "Since when?")},
		{"comment on feedback", inConsole, (*writes).feedback, submitted("manager", "/feedback/{id}", "/feedback/{id}/comments", "text", "Since when?")},
	}
}

// operatorWays are what operators do to webhook addresses, integrations and people.
func operatorWays() []writeWay {
	none := func(*writes) string { return "" }
	return []writeWay{
		{"deactivate and replace a person", byCommand, none, commanded("people", "deactivate", leaverEmail, "--replace-with", workerEmail, "--as", managerEmail)},
		{"test an address", byCommand, none, commanded("webhooks", "test", "{hook}")},
		{"turn an address off", byCommand, none, commanded("webhooks", "disable", "{hook}", "--reason", "It moves.")},
		{"turn an address on", byCommand, none, commanded("webhooks", "enable", "{hook}")},
		{"turn an address off", inTemporal, none, func(w *writes, _ string) {
			w.updateIn(workflows.WebhookAddressID(w.org.webhookID(1)), "disable", object{"reason": "It moves."})
		}},
		{"turn an address on", inTemporal, none, func(w *writes, _ string) {
			w.updateIn(workflows.WebhookAddressID(w.org.webhookID(1)), "enable", object{"since": ""})
		}},
		{"test an address", inTemporal, none, func(w *writes, _ string) {
			w.updateIn(workflows.WebhookAddressID(w.org.webhookID(1)), "test", object{})
		}},
		{"trigger an event", inTemporal, none, func(w *writes, _ string) {
			w.updateIn(workflows.WebhookAddressID(w.org.webhookID(1)), "trigger", object{"event_type": "work_order.created"})
		}},
		{"trigger an event", byCommand, none, commanded("trigger", "work_order.created", "--address", "{hook}")},
		{"turn an integration off", byCommand, none, commanded("integrations", "turn-off", "{erp}", "--as", managerEmail)},
		{"turn an integration on", byCommand, none, commanded("integrations", "turn-on", "{erp}", "--as", managerEmail)},
		{"import a new name", byCommand, none, func(w *writes, _ string) {
			w.importFile("organization: {key: acme}\npeople: [{key: worker, name: " + otherWorkerName + ", email: " + workerEmail + "}]\n")
			w.record("millwright import")
		}},
	}
}

// writeEffects selects the notices, Log Records and events since.
const writeEffects = `SELECT
	coalesce((SELECT string_agg(DISTINCT n.kind || '=' || n.person_id, ',') FROM notices n WHERE n.id > $1), '') AS notices,
	coalesce((SELECT string_agg(l.action || '=' || l.actor_name, ',' ORDER BY l.id) FROM log_records l WHERE l.id > $2), '') AS log,
	coalesce((SELECT string_agg(e.type, ', ' ORDER BY e.type) FROM events e WHERE e.id > $3), '') AS events`

// observe makes a write and returns its row of the table.
func (w *writes) observe(way writeWay) string {
	w.t.Helper()
	id := way.prepare(w)
	var notice, log int64
	var event string
	const last = `SELECT coalesce(max(id), 0), coalesce((SELECT max(id) FROM log_records), 0), coalesce((SELECT max(id) FROM events), 'evt_')::text FROM notices`
	if err := w.db.QueryRow(w.t.Context(), last).Scan(&notice, &log, &event); err != nil {
		w.t.Fatal(err)
	}
	w.observed = true
	way.do(w, id)
	w.observed = false
	var notices, logged, events string
	if err := w.db.QueryRow(w.t.Context(), writeEffects, notice, log, event).Scan(&notices, &logged, &events); err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", way.write, way.way, w.notified(notices), w.actors(logged), orNothing(events))
}

// notified names who was notified by their roles.
func (w *writes) notified(notices string) string {
	var all []string
	for pair := range strings.SplitSeq(notices, ",") {
		kind, person, _ := strings.Cut(pair, "=")
		if kind != "" {
			all = append(all, cmp.Or(w.roles[person], "person")+": "+kind)
		}
	}
	slices.Sort(all)
	return orNothing(strings.Join(all, ", "))
}

// actors names who is logged by their roles.
func (w *writes) actors(logged string) string {
	names := strings.NewReplacer(managerName, "manager", clerkName, "creator", workerName, "worker", otherWorkerName, "worker", advisorName, "consultant", dispatcherName, "company", "ERP (API)", "integration")
	var all []string
	for pair := range strings.SplitSeq(logged, ",") {
		action, name, _ := strings.Cut(pair, "=")
		if action != "" {
			all = append(all, action+" by "+names.Replace(name))
		}
	}
	return orNothing(strings.Join(all, ", "))
}

func orNothing(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

const writesHead = `# Writes and their effects

For each write and each way to make it: notices, Log Record and event. A test makes all of
them and compares: ` + "`bin/devstack exec -- go test ./e2e -run TestEveryWriteInEveryWay -update`" + ` writes
this page again. The work orders were created by a person who is no inventory manager, and have a
worker, the integration as another, and where they are reviewed a consultant; the one who acts gets no
notice, except of an operator. "(operator)" follows who acts by a command or in Temporal.

| write | way | notified | logged | event |
|---|---|---|---|---|
`

// Every write has the same notices, Log Record and event in every way.
func TestEveryWriteInEveryWay(t *testing.T) {
	t.Parallel()
	w := newWrites(t)
	var table strings.Builder
	table.WriteString(writesHead)
	for _, way := range writeWays() {
		table.WriteString(w.observe(way))
	}
	w.wantAllMade()
	const page = "../docs/writes.md"
	if *updateWrites {
		if err := os.WriteFile(page, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows, want := strings.Split(table.String(), "\n"), strings.Split(readText(t, page), "\n")
	for i := range max(len(rows), len(want)) {
		if i >= len(rows) || i >= len(want) || rows[i] != want[i] {
			t.Errorf("%s differs from what happens from line %d on:\n%s", page, i+1, strings.Join(rows[min(i, len(rows)):min(i+3, len(rows))], "\n"))
			break
		}
	}
}
