package records_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// orderModel is the model of a work order. Identities are keys of the fixture.
type orderModel struct {
	id                   string
	status, heldFrom     string
	workers, consultants []string
	creator              string
	completedBy          string // who completed it, until it is sent back
	form, answered       bool
	title                string
	events               []string
}

// machine runs random operations on work orders and predicts each result with its
// own implementation of the rules.
type machine struct {
	*servicetest.Harness
	r           *rapid.T
	orders      []*orderModel
	restriction string // the organization's restriction: "", read_only or suspended
	done        map[string]int
}

// The actors, and the identities that may be named for a role.
var (
	cast      = []string{"erp", "ann", "bob", "cat", "robot", "rita", "sol", "creator", "dan", "pia", "zed"}
	nameables = []string{"erp", "ann", "bob", "cat", "robot", "crew", "polar", "pia", "zed"}
)

func isPerson(who string) bool { return !slices.Contains([]string{"erp", "robot", "creator"}, who) }

// may reports whether the actor has the grant in the fixture.
func may(who, what string) bool {
	switch who {
	case "erp", "ann":
		return true
	case "rita":
		return what == "read"
	case "sol":
		return what == "read" || what == "update"
	case "creator":
		return what == "create"
	}
	return false
}

// acts reports whether the actor is one of the identities or belongs to one.
func acts(who string, identities []string) bool {
	of := map[string]string{"bob": "crew", "dan": "crew", "pia": "polar"}[who]
	return slices.Contains(identities, who) || of != "" && slices.Contains(identities, of)
}

func (o *orderModel) everyone() []string { return slices.Concat(o.workers, o.consultants) }

func (o *orderModel) readBy(who string) bool {
	return may(who, "read") || may(who, "create") && o.creator == who || acts(who, o.everyone())
}

// ownReview reports whether the actor reviews for the consultants and no other person does.
func ownReview(who string, consultants []string) bool {
	others := slices.DeleteFunc(slices.Clone(cast), func(other string) bool { return other == who || !isPerson(other) })
	return acts(who, consultants) && !slices.ContainsFunc(others, func(other string) bool { return acts(other, consultants) })
}

// ownWork predicts that a review would be left to who completed the work order.
func (o *orderModel) ownWork(consultants []string) string {
	return when(o.is("sent_to_inspection") && ownReview(o.completedBy, consultants), ownWork)
}

func (o *orderModel) is(statuses ...string) bool { return slices.Contains(statuses, o.status) }

func (o *orderModel) workable() bool { return o.is("open", "in_progress", "back_from_inspection") }

// setStatus changes the status of the model and adds the events.
func (o *orderModel) setStatus(to, event string) {
	if o.status == to {
		return
	}
	move := " " + o.status + ">" + to
	o.heldFrom = ""
	if to == "on_hold" {
		o.heldFrom = o.status
	}
	o.status = to
	o.events = append(o.events, "status_changed"+move)
	if event != "" {
		o.events = append(o.events, event+move)
	}
}

const (
	denied      = "permission_denied"
	wrongStatus = "rule_violation status"
	ownWork     = "rule_violation own_work"
	ok          = "ok"
)

// first returns the first reason for an error, in the order of the checks.
func first(reasons ...string) string {
	for _, reason := range reasons {
		if reason != "" {
			return reason
		}
	}
	return ok
}

func when(condition bool, reason string) string {
	if condition {
		return reason
	}
	return ""
}

// common predicts the errors that all operations have in common.
func (m *machine) common(o *orderModel, who string, change bool) string {
	return strings.TrimPrefix(first(
		when(!o.readBy(who), "not_found"), when(m.restriction == "suspended", denied), when(change && m.restriction == "read_only", "read_only")), ok)
}

// matches compares the result with the prediction and reports whether it succeeded.
func (m *machine) matches(what, who string, err error, said string) bool {
	m.r.Helper()
	if got := servicetest.Outcome(err); got != said {
		m.r.Fatalf("%s by %s: %s (%v), want %s", what, who, got, err, said)
	}
	m.done[what+": "+said]++
	m.done["steps"]++
	return said == ok
}

func (m *machine) pick(label string, from []string) string {
	return rapid.SampledFrom(from).Draw(m.r, label)
}

func (m *machine) some(label string, atMost int) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(nameables), 0, atMost, rapid.ID[string]).Draw(m.r, label)
}

// order draws a work order, mostly one that fits.
func (m *machine) order(fits func(*orderModel) bool) *orderModel {
	those := slices.DeleteFunc(slices.Clone(m.orders), func(o *orderModel) bool { return !fits(o) })
	if m.rarely("any") {
		those = m.orders
	}
	if len(those) == 0 {
		m.r.Skip("none fits")
	}
	return rapid.SampledFrom(those).Draw(m.r, "which")
}

// actor draws an actor, mostly one that may.
func (m *machine) actor(may func(who string) bool) string {
	those := slices.DeleteFunc(slices.Clone(cast), func(who string) bool { return !may(who) })
	if m.rarely("anyone") {
		those = cast
	}
	if len(those) == 0 {
		m.r.Skip("no actor may")
	}
	return m.pick("who", those)
}

func (m *machine) rarely(what string) bool { return rapid.IntRange(0, 3).Draw(m.r, what) == 3 }

func (m *machine) create(who string) {
	in := records.NewWorkOrder{InventoryID: m.ID("ahu1"), Title: "Replace filter"}
	workers, consultants := m.some("workers", 3), m.some("consultants", 2)
	form := m.rarely("form")
	in.Assignees, in.Consultants = m.IDs(workers...), m.IDs(consultants...)
	if form {
		id := m.ID("inspection")
		in.FormID = &id
	}
	named := slices.Concat(workers, consultants)
	foreign := who == "pia" // in her own organization: acme's restriction does not concern her
	said := first(
		when(foreign, "plan_restricted"),
		when(m.restriction == "suspended", denied), when(m.restriction == "read_only", "read_only"),
		when(slices.Contains([]string{"zed"}, who) || slices.Contains(named, "pia"), "validation_failed"),
		when(!may(who, "create"), denied),
		when(slices.ContainsFunc(workers, func(w string) bool { return slices.Contains(consultants, w) }), "rule_violation both_roles"),
		when(slices.Contains(named, "zed"), "rule_violation assignee_not_connected"),
		when(len(workers) == 0 && slices.Contains(consultants, "ann"), "rule_violation no_worker"),
	)
	answer, err := m.Records.CreateWorkOrder(m.T.Context(), m.As(who), store.NoKey, in)
	if !m.matches("create", who, err, said) {
		return
	}
	if len(workers) == 0 {
		workers = []string{"ann"} // the only inventory manager
	}
	o := &orderModel{
		id: answer.RecordID, status: "open", workers: workers, consultants: consultants, creator: who,
		form: form, title: in.Title, events: []string{"created"},
	}
	m.orders = append(m.orders, o)
	m.check(o)
}

func (m *machine) patch(o *orderModel, who string) {
	title := m.pick("title", []string{"Replace filter", "Replace belt"})
	said := first(m.common(o, who, true), when(!may(who, "update"), denied), when(!o.workable(), wrongStatus))
	_, err := m.Records.UpdateWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id, records.WorkOrderPatch{Title: records.Sent[string]{Value: title, Set: true}})
	if m.matches("patch", who, err, said) && title != o.title {
		o.title = title
		o.events = append(o.events, "updated")
	}
}

// own are the identities of polar, which pia may name.
func own(identity string) bool { return identity == "pia" || identity == "polar" }

// forwards predicts why an actor may not assign. A service company that works on it may.
func (o *orderModel) forwards(who string) string {
	company := who == "pia" && slices.Contains(o.workers, "polar")
	return when(!company && !may(who, "forward"), denied)
}

func (m *machine) assign(o *orderModel, who string) {
	workers, consultants := m.some("workers", 2), m.some("consultants", 1)
	known := func(identity string) bool {
		return slices.Contains(o.everyone(), identity) || (who == "pia") == own(identity) || identity == "polar"
	}
	both := func(id string) bool {
		return slices.Contains(workers, id) && slices.Contains(slices.Concat(consultants, o.consultants), id) ||
			slices.Contains(consultants, id) && slices.Contains(o.workers, id)
	}
	named := slices.Concat(workers, consultants)
	allConsultants := slices.Clone(o.consultants)
	for _, c := range consultants {
		if !slices.Contains(o.consultants, c) {
			allConsultants = append(allConsultants, c)
		}
	}
	said := first(m.common(o, who, true), o.forwards(who), when(who == "pia" && len(consultants) > 0, denied),
		when(slices.ContainsFunc(named, func(id string) bool { return !known(id) }), "validation_failed"),
		when(slices.ContainsFunc(named, both), "rule_violation both_roles"),
		when(slices.Contains(named, "zed"), "rule_violation assignee_not_connected"),
		when(len(allConsultants) > len(o.consultants), o.ownWork(allConsultants)))
	_, err := m.Records.AssignWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id, m.IDs(workers...), m.IDs(consultants...))
	if !m.matches("assign", who, err, said) {
		return
	}
	before := len(o.everyone())
	for _, w := range workers {
		if !slices.Contains(o.workers, w) {
			o.workers = append(slices.Clone(o.workers), w)
		}
	}
	o.consultants = allConsultants
	if len(o.everyone()) > before {
		o.events = append(o.events, "assignees_changed")
	}
}

func (m *machine) unassign(o *orderModel, who string) {
	whom := m.pick("whom", slices.Concat(o.everyone(), o.everyone(), []string{"bob", "zed"}))
	gone := func(id string) bool { return id == whom }
	consultants := slices.DeleteFunc(slices.Clone(o.consultants), gone)
	said := first(m.common(o, who, true), o.forwards(who),
		when(!slices.Contains(o.everyone(), whom), "not_found"),
		when(who == "pia" && (!own(whom) || whom == "polar"), denied), // the company itself is returned
		when(len(o.workers) == 1 && o.workers[0] == whom, "rule_violation last_worker"),
		when(len(o.consultants) == 1 && o.consultants[0] == whom && o.is("sent_to_inspection"), wrongStatus),
		when(len(consultants) < len(o.consultants), o.ownWork(consultants)))
	_, err := m.Records.UnassignWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id, m.ID(whom))
	if !m.matches("unassign", who, err, said) {
		return
	}
	o.workers, o.consultants = slices.DeleteFunc(slices.Clone(o.workers), gone), consultants
	o.events = append(o.events, "assignees_changed")
}

func (m *machine) answer(o *orderModel, who string, complete bool) {
	var answers []records.GivenAnswer
	if all := rapid.Bool().Draw(m.r, "answers"); all && o.form {
		answers = []records.GivenAnswer{{QuestionID: m.ID("q_state"), Value: m.ID("o_ok")}, {QuestionID: m.ID("q_hours"), Value: json.Number("7")}}
	}
	answered := o.answered || len(answers) > 0
	said := first(m.common(o, who, false),
		when(!slices.Contains(o.workers, who) && !(isPerson(who) && acts(who, o.workers)), "rule_violation not_assigned_as_worker"),
		when(complete && o.workable() && ownReview(who, o.consultants), ownWork),
		when(!o.workable(), wrongStatus),
		when(complete && o.form && !answered, "rule_violation required_questions"))
	_, err := m.Records.AnswerWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id, answers, records.Completion(complete))
	what := map[bool]string{false: "answer", true: "complete"}[complete]
	if !m.matches(what, who, err, said) {
		return
	}
	o.answered = answered
	switch {
	case !complete:
		o.setStatus("in_progress", "")
	case len(o.consultants) > 0:
		o.setStatus("sent_to_inspection", "sent_to_inspection")
		o.completedBy = who
	default:
		o.setStatus("complete", "completed")
	}
}

func (m *machine) cancel(o *orderModel, who string) {
	said := first(m.common(o, who, true), when(!may(who, "delete"), denied), when(o.is("complete", "cancelled"), wrongStatus))
	_, err := m.Records.CancelWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id, nil)
	if m.matches("cancel", who, err, said) {
		o.setStatus("cancelled", "cancelled")
	}
}

func (m *machine) reviewed(o *orderModel, who string, approve bool) {
	long := rapid.IntRange(0, 9).Draw(m.r, "comment") == 9
	review := records.Review{Approve: approve, Comment: "Loose."}
	if long {
		review.Comment = strings.Repeat("x", 1001)
	}
	said := first(m.common(o, who, false), when(!isPerson(who) || !acts(who, o.consultants), denied),
		when(o.is("sent_to_inspection") && o.completedBy == who, ownWork),
		when(long, "validation_failed"), when(!o.is("sent_to_inspection"), wrongStatus))
	_, err := m.Records.ReviewWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id, review)
	what := map[bool]string{false: "send back", true: "approve"}[approve]
	switch {
	case !m.matches(what, who, err, said):
	case approve:
		o.setStatus("complete", "completed")
	default:
		o.setStatus("back_from_inspection", "")
	}
}

func (m *machine) hold(o *orderModel, who string) {
	said := first(m.common(o, who, true), when(!isPerson(who) || !may(who, "update") && !acts(who, o.everyone()), denied), when(!o.workable(), wrongStatus))
	_, err := m.Records.HoldWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id)
	if m.matches("hold", who, err, said) {
		o.setStatus("on_hold", "")
	}
}

func (m *machine) resume(o *orderModel, who string) {
	said := first(m.common(o, who, false), when(!isPerson(who) || !may(who, "update") && !acts(who, o.everyone()), denied), when(!o.is("on_hold"), wrongStatus))
	_, err := m.Records.ResumeWorkOrder(m.T.Context(), m.As(who), store.NoKey, o.id)
	if m.matches("resume", who, err, said) {
		o.setStatus(o.heldFrom, "")
	}
}

// restrict makes the organization "read_only" or "suspended", or lifts both for "".
func (m *machine) restrict(restriction string) {
	if restriction == m.restriction {
		return
	}
	m.restriction = restriction
	m.Exec(`UPDATE organizations SET read_only = $2, suspended = $3 WHERE id = $1`, m.Acme.OrganizationID, restriction == "read_only", restriction == "suspended")
}

const standingQuery = `
	SELECT status, coalesce(held_from, '') AS held_from,
		ARRAY(SELECT identity_id::text FROM work_order_assignees WHERE work_order_id = w.id AND role = 'worker' ORDER BY position) AS workers,
		ARRAY(SELECT identity_id::text FROM work_order_assignees WHERE work_order_id = w.id AND role = 'consultant' ORDER BY position) AS consultants,
		({events}) AS events
	FROM work_orders w WHERE id = $1`

// check compares a work order with its sketch.
func (m *machine) check(o *orderModel) {
	m.r.Helper()
	type standing struct {
		Status, HeldFrom     string
		Workers, Consultants []string
		Events               string
	}
	rows, err := m.Pool.Query(m.T.Context(), strings.Replace(standingQuery, "{events}", servicetest.EventsQuery, 1), o.id, m.ID("erp_hook"))
	if err != nil {
		m.r.Fatal(err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[standing])
	if err != nil {
		m.r.Fatal(err)
	}
	got := m.WithKeys(fmt.Sprintf("%s %s %v %v", found.Status, found.HeldFrom, found.Workers, found.Consultants))
	if want := fmt.Sprintf("%s %s %v %v", o.status, o.heldFrom, o.workers, o.consultants); got != want {
		m.r.Fatalf("it is %s, want %s", got, want)
	}
	if want := strings.Join(o.events, ", "); found.Events != want {
		m.r.Fatalf("the events are\n%s\nwant\n%s", found.Events, want)
	}
}

// on is a step in which an actor, mostly one that may, runs an operation on a work
// order, mostly one that fits.
func (m *machine) on(fits func(*orderModel) bool, may func(o *orderModel, who string) bool, do func(o *orderModel, who string)) func() {
	return func() {
		o := m.order(fits)
		who := m.actor(func(who string) bool { return may(o, who) })
		m.Clock.Advance(time.Duration(rapid.IntRange(0, 2).Draw(m.r, "ms")) * time.Millisecond)
		do(o, who)
		m.check(o)
	}
}

// inStatus matches work orders of one status; notEnded those that have not ended.
func inStatus(of string) func(*orderModel) bool { return func(o *orderModel) bool { return o.is(of) } }

func notEnded(o *orderModel) bool { return !o.is("complete", "cancelled") }

// step is one operation of the machine. Earlier ones are drawn more often, so those
// with the most preconditions come first.
func (m *machine) step(r *rapid.T) {
	m.r = r
	everywhere := func(what string) func(*orderModel, string) bool {
		return func(_ *orderModel, who string) bool { return may(who, what) }
	}
	answers := func(o *orderModel, who string) bool { return slices.Contains(o.workers, who) }
	reviews := func(o *orderModel, who string) bool { return isPerson(who) && acts(who, o.consultants) }
	holds := func(o *orderModel, who string) bool {
		return isPerson(who) && (may(who, "update") || acts(who, o.everyone()))
	}
	forwards := func(o *orderModel, who string) bool { return o.forwards(who) == "" }
	complete := func(o *orderModel, who string) { m.answer(o, who, true) }
	type step struct {
		name string
		do   func()
	}
	rapid.SampledFrom([]step{
		{"send back", m.on(inStatus("sent_to_inspection"), reviews, func(o *orderModel, who string) { m.reviewed(o, who, false) })},
		{"approve", m.on(inStatus("sent_to_inspection"), reviews, func(o *orderModel, who string) { m.reviewed(o, who, true) })},
		{"resume", m.on(inStatus("on_hold"), holds, m.resume)},
		{"complete towards a review", m.on(func(o *orderModel) bool { return o.workable() && len(o.consultants) > 0 }, answers, complete)},
		{"hold", m.on((*orderModel).workable, holds, m.hold)},
		{"assign", m.on(notEnded, forwards, m.assign)},
		{"answer", m.on((*orderModel).workable, answers, func(o *orderModel, who string) { m.answer(o, who, false) })},
		{"patch", m.on((*orderModel).workable, everywhere("update"), m.patch)},
		{"unassign", m.on(notEnded, forwards, m.unassign)},
		{"complete", m.on((*orderModel).workable, answers, complete)},
		{"create", func() { m.create(m.actor(func(who string) bool { return may(who, "create") })) }},
		{"cancel", m.on(notEnded, everywhere("read"), m.cancel)},
		{"become read-only", func() { m.restrict("read_only") }},
		{"become suspended", func() { m.restrict("suspended") }},
	}).Draw(r, "step").do()
	if m.restriction != "" && !m.rarely("and stays so") {
		m.restrict("")
	}
}

// longRuns makes rapid's runs long enough for lifecycles with reviews and holds.
func longRuns(t *testing.T) {
	steps := flag.Lookup("rapid.steps")
	if before := steps.Value.String(); before == steps.DefValue {
		servicetest.Must(t, steps.Value.Set("100"))
		t.Cleanup(func() { _ = steps.Value.Set(before) })
	}
}

// For any sequence of operations by any actors, permissions, results and events follow
// the rules of api.md 3.2, 4.1 to 4.8 and 5.8.
func TestWorkOrderMachine(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	longRuns(t)
	done := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{Harness: s, r: r, done: done}
		s.Exec(`UPDATE organizations SET read_only = false, suspended = false`) // what the run before left
		for len(m.orders) == 0 {
			m.create("erp")
		}
		r.Repeat(map[string]func(*rapid.T){"step": m.step})
	})
	t.Logf("done: %v", done)
	if done["steps"] < 1000 {
		return // a run that was cut short, by a flag or a failure
	}
	for _, what := range []string{"create", "patch", "assign", "unassign", "answer", "complete", "cancel", "approve", "send back", "hold", "resume"} {
		if done[what+": "+ok] == 0 {
			t.Errorf("in %d steps no actor was allowed to %s", done["steps"], what)
		}
	}
}
