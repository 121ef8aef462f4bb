package conformance

import (
	"fmt"
	"net/http"
	"strings"

	"millwright/service/servicetest"
)

// wayToRecord is one way in which a record, or its node, reaches a person or a program.
type wayToRecord struct {
	name string
	// shows is what it shows of record N; "" is the title.
	shows string
	show  func(r *reach, n int) string
	// own is true if a service company does not have it, node if it shows the records' node to people who see that.
	own, node bool
}

func (w wayToRecord) marker() string {
	if w.shows == "" {
		return hidden + "titleN"
	}
	return hidden + w.shows
}

func (w wayToRecord) shownTo(r *reach) bool { return !w.own || r.person == "ray" }

// page returns the body of a page of the console.
func (r *reach) page(path string, args ...any) string {
	return r.visitor.Get("/console" + fmt.Sprintf(path, args...)).Body
}

// call returns the response to a GET of the program.
func (r *reach) call(path string, args ...any) string {
	return string(r.As(r.program, http.MethodGet, fmt.Sprintf(path, args...), nil).Body)
}

// deliveryOf returns the id of the delivery of the record that was answered.
func (r *reach) deliveryOf(id string) string {
	return servicetest.Value[string](r.Fixture, `SELECT d.id FROM all_deliveries d WHERE d.record_id = $1 AND d.webhook_id = $2 AND d.attempts = 1`, id, r.ID(r.hook))
}

// pagesAbout are pages about an id of the records, in the address after /console.
func pagesAbout(name, path string, id func(*reach, int) string) wayToRecord {
	return wayToRecord{name: name, show: func(r *reach, n int) string { return r.page(path, id(r, n)) }}
}

func orderOf(r *reach, n int) string    { return r.orders[n] }
func openOf(r *reach, n int) string     { return r.open[n] }
func feedbackOf(r *reach, n int) string { return r.feedback[n] }

// of makes a way one of acme alone.
func ofOwn(w wayToRecord) wayToRecord { w.own = true; return w }

// showing makes a way one that shows something else than the title.
func showing(what string, w wayToRecord) wayToRecord { w.shows = what; return w }

var waysToRecords = []wayToRecord{
	// The API and deliveries.
	{name: "GET /work-orders/{id}", show: func(r *reach, n int) string { return r.call("/work-orders/%s", r.orders[n]) }},
	{name: "GET /work-orders", show: func(r *reach, _ int) string { return r.call("/work-orders") }},
	{name: "GET /work-orders by id", show: func(r *reach, n int) string { return r.call("/work-orders?id=%s", r.orders[n]) }},
	{name: "GET /work-orders by external id", show: func(r *reach, n int) string { return r.call("/work-orders?external_id=%scode%d", hidden, n) }},
	{name: "GET /work-orders by node", show: func(r *reach, _ int) string { return r.call("/work-orders?inventory_id=%s", r.ID("hq")) }, own: true},
	{name: "GET /work-orders by assignee", show: func(r *reach, _ int) string { return r.call("/work-orders?assignee_id=%s", r.ID("bob")) }},
	{name: "GET /work-orders since a time", show: func(r *reach, _ int) string {
		r.WaitForOpenTransactions()
		return r.call("/work-orders?changed_since=2026-03-01T00:00:00Z")
	}},
	{name: "GET /work-orders/{id}/answers", shows: "answer", show: func(r *reach, n int) string { return r.call("/work-orders/%s/answers", r.open[n]) }, own: true},
	{name: "GET /issues/{id}", show: func(r *reach, n int) string { return r.call("/issues/%s", r.feedback[n]) }, own: true},
	{name: "GET /issues", show: func(r *reach, _ int) string { return r.call("/issues") }, own: true},
	{name: "GET /issues since a time", show: func(r *reach, _ int) string {
		r.WaitForOpenTransactions()
		return r.call("/issues?changed_since=2026-03-01T00:00:00Z")
	}, own: true},
	{name: "GET /equipment/{id}", shows: "node", show: func(r *reach, _ int) string { return r.call("/equipment/%s", r.ID("ahu1")) }, own: true, node: true},
	{name: "GET /equipment", shows: "node", show: func(r *reach, _ int) string { return r.call("/equipment") }, own: true, node: true},
	{name: "a delivery", show: func(r *reach, n int) string {
		var text strings.Builder
		for _, d := range r.pendingDeliveries(r.hook, r.open[n]) {
			text.Write(d.Body)
		}
		return text.String()
	}},

	// Notices.
	{name: "the mail about a work order", show: func(r *reach, n int) string { return r.mailed(r.orders[n]) }},
	{name: "the mail about feedback", show: func(r *reach, n int) string { return r.mailed(r.feedback[n]) }, own: true},
	{name: "the inbox", show: func(r *reach, _ int) string { return withChanger(r.page("/notices")) }},
	{name: "the reason in the inbox", shows: "reasonN", show: func(r *reach, _ int) string { return r.page("/notices") }},
	{name: "the reason in the mail", shows: "reasonN", show: func(r *reach, n int) string { return r.mailed(r.orders[n]) }},
	{name: "opening a notice", show: func(r *reach, n int) string {
		id := servicetest.Value[int64](r.Fixture, `SELECT max(id) FROM notices WHERE record_id = $1 AND person_id = $2`, r.orders[n], r.ID(r.person))
		to := r.visitor.Post(fmt.Sprintf("/console/notices/%d/open", id), r.visitor.Get("/console/notices").Form()).Location()
		return to + r.visitor.Get(to).Body
	}},

	// Lists, searches and exports.
	{name: "the start page", show: func(r *reach, _ int) string { return r.page("") }, own: true},
	{name: "the search of everything", show: func(r *reach, _ int) string { return r.page("/search?q=overhaul") }},
	{name: "the search of everything for feedback", show: func(r *reach, _ int) string { return r.page("/search?q=rattle") }, own: true},
	{name: "the search of everything for a node", shows: "node", show: func(r *reach, _ int) string { return r.page("/search?q=plant") }, own: true, node: true},
	{name: "the list of work orders", show: func(r *reach, _ int) string { return r.page("/work-orders?status=any") }},
	{name: "the search of work orders", show: func(r *reach, _ int) string { return r.page("/work-orders?q=overhaul") }},
	{name: "the file of work orders", show: func(r *reach, _ int) string { return r.page("/work-orders.csv?q=overhaul") }},
	{name: "the list of feedback", show: func(r *reach, _ int) string { return r.page("/feedback") }, own: true},
	{name: "the search of feedback", show: func(r *reach, _ int) string { return r.page("/feedback?q=rattle") }, own: true},
	{name: "the search of nodes", shows: "node", show: func(r *reach, _ int) string { return r.page("/inventory?q=plant") }, own: true, node: true},

	// Pages of records.
	pagesAbout("the work order page", "/work-orders/%s", orderOf),
	showing("comment", pagesAbout("a comment", "/work-orders/%s", orderOf)),
	showing("reasonN", pagesAbout("the reason on the work order page", "/work-orders/%s", orderOf)),
	pagesAbout("the form of answers", "/work-orders/%s/answers", openOf),
	ofOwn(pagesAbout("the form of a change", "/work-orders/%s/edit", openOf)),
	ofOwn(pagesAbout("the form for several", "/work-orders/due?id=%s", openOf)),
	ofOwn(pagesAbout("the form of a cancellation", "/work-orders/%s/cancel", openOf)),
	ofOwn(pagesAbout("the form of assignees", "/work-orders/%s/assign", openOf)),
	ofOwn(pagesAbout("the feedback page", "/feedback/%s", feedbackOf)),
	ofOwn(pagesAbout("the form of a work order made of feedback", "/work-orders/new?feedback=%s", feedbackOf)),
	ofOwn(pagesAbout("a form with its work orders", "/forms/%s", func(r *reach, _ int) string { return r.ID("inspection") })),
	ofOwn(pagesAbout("the deactivation of a worker", "/people/%s/deactivate", func(r *reach, _ int) string { return r.ID("bob") })),
	{name: "a node's work orders", show: func(r *reach, _ int) string { return r.page("/inventory/%s?tab=work-orders", r.ID("ahu1")) }, own: true, node: true},
	{name: "a node's feedback", show: func(r *reach, _ int) string { return r.page("/inventory/%s?tab=feedback", r.ID("ahu1")) }, own: true, node: true},
	{name: "the label of a node", shows: "node", show: func(r *reach, _ int) string { return r.page("/inventory/%s/label", r.ID("ahu1")) }, own: true, node: true},

	// Pages of integrations and people, and the log.
	{name: "the delivery page", show: func(r *reach, n int) string { return r.page("/deliveries/%s", r.deliveryOf(r.orders[n])) }},
	{name: "the response on the delivery page", shows: "echo", show: func(r *reach, n int) string {
		_, attempts, _ := strings.Cut(r.page("/deliveries/%s", r.deliveryOf(r.orders[n])), `id="attempts"`)
		attempts, _, _ = strings.Cut(attempts, `id="body"`)
		return strings.ReplaceAll(attempts, hidden+"title", hidden+"echo")
	}},
	{name: "the list of deliveries", show: func(r *reach, _ int) string { return r.page("/deliveries") }},
	{name: "an integration's nodes", shows: "node", show: func(r *reach, _ int) string { return r.page("/integrations/%s", r.ID("outsider")) }, own: true, node: true},
	{name: "can it see a work order", shows: "node", show: func(r *reach, n int) string {
		return r.page("/integrations/%s?see=%s", r.ID("outsider"), r.open[n])
	}, own: true, node: true},
	{name: "can it see a node", shows: "node", show: func(r *reach, _ int) string {
		return r.page("/integrations/%s?see=%s", r.ID("outsider"), r.ID("ahu1"))
	}, own: true, node: true},
	{name: "a team page", shows: "node", show: func(r *reach, _ int) string { return r.page("/teams/%s", r.ID("crew")) }, own: true, node: true},
	{name: "a person page", shows: "node", show: func(r *reach, _ int) string { return r.page("/people/%s", r.ID("bob")) }, own: true, node: true},
	{name: "a link of the log", shows: "opens", show: func(r *reach, n int) string {
		return strings.ReplaceAll(r.page("/log?record=%s", r.orders[n]), "/console/work-orders/"+r.orders[n], hidden+"opens")
	}, own: true},

	// Writes.
	{name: "a change of a work order", show: func(r *reach, n int) string {
		return string(r.As(r.program, http.MethodPatch, "/work-orders/"+r.open[n], object{"external_id": "x"}).Body)
	}, own: true},
}
