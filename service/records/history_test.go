package records_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// snapshot is a work order as returned after a change, with its answers.
type snapshot struct{ record, answers string }

// recorder runs random operations on one work order, keeps a snapshot after each, and looks at the positions.
type recorder struct {
	*servicetest.Harness
	r      *rapid.T
	id     string
	states []snapshot
	last   models.Time
	// rebuilt counts the states by what led to them.
	rebuilt map[string]int
}

// keep takes a snapshot of a write's result unless it failed or changed nothing.
func (m *recorder) keep(result store.WriteResult, err error) {
	m.r.Helper()
	if rejection, rejected := errors.AsType[*models.Error](err); rejected {
		m.r.Log(rejection.Code, rejection.Rule)
		return
	}
	if err != nil {
		m.r.Fatal(err)
	}
	record := servicetest.Read[models.WorkOrderRecord](m.T, result.Body)
	if record.ChangedAt == m.last {
		return
	}
	m.id, m.last = record.ID, record.ChangedAt
	if n := servicetest.WrongPositions(m.Fixture); n != 0 {
		m.r.Fatalf("%d positions are missing, wrong or too many", n)
	}
	record.Inventory, record.People = models.NodeReference{}, nil
	shown, err := m.Records.Answers(m.T.Context(), m.As("erp"), m.id)
	if err != nil {
		m.r.Fatal(err)
	}
	m.states = append(m.states, snapshot{m.encoded(record), m.answersIn(shown)})
}

func (m *recorder) encoded(record models.WorkOrderRecord) string {
	body, err := store.Encode(record)
	if err != nil {
		m.r.Fatal(err)
	}
	return string(body)
}

// answersIn lists the answers that GET shows, one line for each.
func (m *recorder) answersIn(shown []byte) string {
	var form struct {
		Questions []struct {
			ID         string
			Value      json.RawMessage
			AnsweredAt *models.Time `json:"answered_at"`
			AnsweredBy *string      `json:"answered_by"`
		}
	}
	if err := json.Unmarshal(shown, &form); err != nil {
		m.r.Fatal(err)
	}
	answers := map[string]models.StoredAnswer{}
	for _, q := range form.Questions {
		if string(q.Value) != "null" {
			answers[q.ID] = models.StoredAnswer{Value: q.Value, At: *q.AnsweredAt, By: *q.AnsweredBy}
		}
	}
	return m.answersOf(answers)
}

// answersOf writes the answers with normalized spacing and all digits of numbers.
func (m *recorder) answersOf(answers map[string]models.StoredAnswer) string {
	var lines []string
	for _, question := range slices.Sorted(maps.Keys(answers)) {
		a := answers[question]
		var value any
		decoder := json.NewDecoder(strings.NewReader(string(a.Value)))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			m.r.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %#v %s %s", question, value, a.At, a.By))
	}
	return strings.Join(lines, "\n")
}

// now returns the record as last returned.
func (m *recorder) now() models.WorkOrderRecord {
	return servicetest.Read[models.WorkOrderRecord](m.T, []byte(m.states[len(m.states)-1].record))
}

// one draws an actor that is one of the identities or belongs to one.
func (m *recorder) one(identities []string) string {
	those := []string{"cat"}
	for _, id := range identities {
		key := m.WithKeys(id)
		if member, group := map[string]string{"crew": "dan", "polar": "pia"}[key]; group {
			key = member
		}
		those = append([]string{key}, those...)
	}
	return rapid.SampledFrom(those).Draw(m.r, "who")
}

func (m *recorder) text(label string, least int) string {
	letters := rapid.RuneFrom([]rune("abc ÄöЖ漢🛠<>&\"'\\/%{}\u2028\n\t"))
	drawn := rapid.StringOfN(letters, least, 12, -1)
	if least > 0 {
		drawn = drawn.Filter(func(text string) bool { return !models.IsBlank(text) })
	}
	return drawn.Draw(m.r, label)
}

func (m *recorder) textOrNot(label string) *string {
	if rapid.Bool().Draw(m.r, label+" is null") {
		return nil
	}
	text := m.text(label, 1)
	return &text
}

func (m *recorder) date() *models.Time {
	years := rapid.SampledFrom([]int{1, 1969, 2026, 9999}).Draw(m.r, "year")
	at := models.TimeOf(time.Date(years, 12, 31, 23, 59, 59, rapid.IntRange(0, 999).Draw(m.r, "ms")*1_000_000, time.UTC))
	return &at
}

func (m *recorder) create() {
	in := records.NewWorkOrder{
		InventoryID: m.ID("ahu1"), Title: m.text("title", 1), Description: m.textOrNot("description"), ExternalID: m.textOrNot("external_id"),
		Priority: rapid.SampledFrom([]models.Priority{"", "low", "high"}).Draw(m.r, "priority"),
	}
	if rapid.Bool().Draw(m.r, "dated") {
		in.TargetDate = m.date()
	}
	if !rapid.Bool().Draw(m.r, "without a form") {
		form := m.ID("inspection")
		in.FormID = &form
	}
	roles := rapid.Permutation(m.IDs("erp", "bob", "cat", "crew", "robot", "polar")).Draw(m.r, "roles")
	in.Assignees, in.Consultants = roles[:rapid.IntRange(0, 3).Draw(m.r, "workers")], roles[4:rapid.IntRange(4, 6).Draw(m.r, "consultants")]
	m.keep(m.Records.CreateWorkOrder(m.T.Context(), m.As(rapid.SampledFrom([]string{"erp", "ann"}).Draw(m.r, "creator")), store.NoKey, in))
}

func (m *recorder) patch() {
	with := func(name string) bool { return rapid.Bool().Draw(m.r, "with "+name) }
	patch := records.WorkOrderPatch{}
	if with("title") {
		patch.Title = sent(m.text("title", 1))
	}
	if with("description") {
		patch.Description = sent(m.textOrNot("description"))
	}
	if with("priority") {
		patch.Priority = sent(rapid.SampledFrom(models.Priorities).Draw(m.r, "priority"))
	}
	if with("target_date") {
		patch.TargetDate.Set = true
		if rapid.Bool().Draw(m.r, "dated") {
			patch.TargetDate.Value = m.date()
		}
	}
	if with("external_id") {
		patch.ExternalID = sent(m.textOrNot("external_id"))
	}
	m.keep(m.Records.UpdateWorkOrder(m.T.Context(), m.As("erp"), store.NoKey, m.id, patch))
}

func (m *recorder) answer() {
	value := func(question string) any {
		switch question {
		case "q_state":
			return m.ID(rapid.SampledFrom([]string{"o_ok", "o_dirty"}).Draw(m.r, "option"))
		case "q_parts":
			return rapid.SampledFrom([][]any{{}, {m.ID("o_belt")}, {m.ID("o_filter"), m.ID("o_belt")}}).Draw(m.r, "options")
		case "q_hours":
			return json.Number(rapid.SampledFrom([]string{"0", "-7", "999999999999999999"}).Draw(m.r, "integer"))
		case "q_pressure":
			return json.Number(rapid.SampledFrom([]string{"0", "-0.0", "1.5", "1.50", "0.1000000000000000055", "123456789012345678901234567890.123"}).Draw(m.r, "decimal"))
		}
		return m.text("note", 0)
	}
	var answers []records.GivenAnswer
	for _, question := range []string{"q_state", "q_parts", "q_hours", "q_pressure", "q_note"} {
		switch rapid.SampledFrom([]string{"sent", "sent", "sent", "left out", "cleared"}).Draw(m.r, question) {
		case "sent":
			answers = append(answers, records.GivenAnswer{QuestionID: m.ID(question), Value: value(question)})
		case "cleared":
			answers = append(answers, records.GivenAnswer{QuestionID: m.ID(question)})
		}
	}
	if m.now().FormID == nil {
		answers = nil
	}
	complete := rapid.Bool().Draw(m.r, "complete")
	m.keep(m.Records.AnswerWorkOrder(m.T.Context(), m.As(m.one(m.now().Assignees)), store.NoKey, m.id, answers, records.Completion(complete)))
}

// step runs one operation. Earlier ones are drawn more often, so those with the most preconditions come first.
func (m *recorder) step(r *rapid.T) {
	m.r = r
	ctx := m.T.Context()
	m.Clock.Advance(time.Duration(rapid.IntRange(0, 2).Draw(r, "ms")) * time.Millisecond)
	named := rapid.Permutation(m.IDs("erp", "bob", "cat", "crew", "robot", "polar")).Draw(r, "named")
	switch rapid.SampledFrom([]string{"review", "answer", "patch", "answer", "return", "hold", "resume", "assign", "unassign", "replace", "cancel"}).Draw(r, "step") {
	case "answer":
		m.answer()
	case "patch":
		m.patch()
	case "assign":
		m.keep(m.Records.AssignWorkOrder(ctx, m.As("erp"), store.NoKey, m.id, named[:rapid.IntRange(0, 2).Draw(r, "workers")], named[5:]))
	case "unassign":
		m.keep(m.Records.UnassignWorkOrder(ctx, m.As("erp"), store.NoKey, m.id, named[0]))
	case "replace":
		m.keep(m.Records.ReplaceWorkers(ctx, m.As("ann"), store.NoKey, m.id, named[:rapid.IntRange(1, 2).Draw(r, "workers")]))
	case "return":
		m.keep(m.Records.ReturnWorkOrder(ctx, m.As("pia"), store.NoKey, m.id, "x"+m.text("reason", 0)))
	case "review":
		m.keep(m.Records.ReviewWorkOrder(ctx, m.As(m.one(m.now().Consultants)), store.NoKey, m.id, records.Review{Approve: rapid.Bool().Draw(r, "approve"), Comment: "x" + m.text("comment", 0)}))
	case "hold":
		m.keep(m.Records.HoldWorkOrder(ctx, m.As("ann"), store.NoKey, m.id))
	case "resume":
		m.keep(m.Records.ResumeWorkOrder(ctx, m.As("ann"), store.NoKey, m.id))
	case "cancel":
		if rapid.IntRange(0, 9).Draw(r, "really") == 9 {
			m.keep(m.Records.CancelWorkOrder(ctx, m.As("erp"), store.NoKey, m.id, m.textOrNot("reason")))
		}
	}
}

// Every state of a work order can be rebuilt from its history, and no change is
// missing: each has the previous value. Whatever is written, the positions are those that the rows have.
func TestHistoryRebuildsEveryState(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	if steps := flag.Lookup("rapid.steps"); steps.Value.String() == steps.DefValue { // lifecycles with reviews are long
		servicetest.Must(t, steps.Value.Set("40"))
	}
	rebuilt := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		m := &recorder{Harness: s, r: r, rebuilt: rebuilt}
		for m.id == "" {
			m.create()
		}
		r.Repeat(map[string]func(*rapid.T){"step": m.step})
		m.compare()
	})
	t.Logf("rebuilt: %v", rebuilt)
	if rebuilt["work_order.created"] < 100 {
		return // a run that was cut short, by a flag or a failure
	}
	for _, action := range []string{
		"created", "updated", "assignees_changed", "answered", "completed", "sent_to_inspection", "sent_back", "approved", "held", "resumed", "cancelled", "returned",
	} {
		if rebuilt["work_order."+action] == 0 {
			t.Errorf("no work order was %s", action)
		}
	}
}

// compare compares the rebuilt states with the snapshots.
func (m *recorder) compare() {
	entries, err := m.Records.History(m.T.Context(), m.As("ann"), m.id)
	if err != nil {
		m.r.Fatal(err)
	}
	states, err := models.Rebuild(entries)
	if err != nil {
		m.r.Fatal(err)
	}
	if len(states) != len(m.states) {
		m.r.Fatalf("the history has %d states, want %d", len(states), len(m.states))
	}
	heldFrom := servicetest.Value[string](m.Fixture, `SELECT coalesce(held_from, '') FROM work_orders WHERE id = $1`, m.id)
	servicetest.Expect(m.T, "the status before the hold", string(states[len(states)-1].HeldFrom), heldFrom)
	before := map[string]string{}
	for i, state := range states {
		m.rebuilt[entries[i].Action]++
		if got := m.encoded(state.Record); got != m.states[i].record {
			m.r.Fatalf("state %d is rebuilt as\n%s\nwant\n%s", i, got, m.states[i].record)
		}
		if got := m.answersOf(state.Answers); got != m.states[i].answers {
			m.r.Fatalf("the answers of state %d are rebuilt as\n%s\nwant\n%s", i, got, m.states[i].answers)
		}
		for name, change := range entries[i].Changes {
			was, known := before[name]
			if name == "comment" {
				was, known = "null", true // each has its own
				servicetest.Expect(m.T, "the comment", *state.Comment, servicetest.Read[string](m.T, change.To))
			}
			if from := string(change.From); from != was && (known || from != "null") {
				m.r.Fatalf("entry %d has %s from %s, it was %s", i, name, from, was)
			}
			before[name] = string(change.To)
		}
	}
}

// A history is for those who read the record.
func TestHistoryIsForReaders(t *testing.T) {
	s := servicetest.NewHarness(t)
	order, feedback := s.NewWorkOrder([]string{"bob"}, nil), issue(s, "erp")
	expect := func(who, id, want string) {
		t.Helper()
		servicetest.Expect(t, who+" of "+id, servicetest.Outcome(servicetest.ErrorOf(s.Records.History(t.Context(), s.As(who), id))), want)
		_, err := s.Records.HistoryPage(t.Context(), s.As(who), id, 0, 0)
		servicetest.Expect(t, who+" reads a page about "+id, servicetest.Outcome(err), want)
	}
	for _, test := range []struct{ who, order, feedback string }{
		{"erp", "ok", "ok"}, {"ann", "ok", "ok"}, {"rita", "ok", "not_found"}, {"bob", "ok", "not_found"},
		{"cat", "not_found", "not_found"}, {"pia", "not_found", "not_found"}, {"outsider", "not_found", "not_found"},
	} {
		expect(test.who, order, test.order)
		expect(test.who, feedback, test.feedback)
	}
	for _, id := range []string{"", "nonsense", "wo_00000000000000000000000000", s.ID("hq")} {
		expect("ann", id, "not_found")
	}
	entries, err := s.Records.History(t.Context(), s.As("ann"), feedback)
	if err != nil || len(entries) != 1 || entries[0].Action != "issue.created" || string(entries[0].Changes["subject"].To) != `"It rattles"` {
		t.Errorf("the history of feedback is %+v, %v", entries, err)
	}
	if _, numbered := entries[0].Changes["number"]; numbered {
		t.Error("feedback has a number")
	}
}

// A history is read in pages, the newest change first, with the names of the people in it.
func TestRecordHistoryInPages(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx, ann := t.Context(), s.As("ann")
	id := s.NewWorkOrder([]string{"erp"}, nil)
	long := "A long text."
	servicetest.Must(t, updates(s, "erp", id, records.WorkOrderPatch{Description: sent(&long)}))
	seen := s.MustWrite(s.Records.AssignWorkOrder(ctx, ann, store.NoKey, id, s.IDs("bob"), nil)).ChangedAt
	servicetest.Must(t, removes(s, "ann", id, "erp"), does(s, "bob", models.OperationHold, id))

	var actions, actors []string
	for before := int64(0); ; {
		page, err := s.Records.HistoryPage(ctx, ann, id, before, 2)
		servicetest.Must(t, err)
		for _, change := range page.Changes {
			actions, actors = append(actions, change.Action), append(actors, *change.ActorName)
			if change.Action == "work_order.assignees_changed" && page.Names[s.ID("erp")] != "ERP" {
				t.Errorf("the names are %v", page.Names)
			}
			if text := string(change.Changes["description"].To); change.Action == "work_order.updated" && text != "null" {
				t.Errorf("the description is %s", text)
			}
		}
		if before == 0 {
			since := page.Since(seen)
			if len(since) != 2 {
				t.Errorf("%d changes since the first assignment", len(since))
			}
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	servicetest.Expect(t, "the changes", strings.Join(actions, " "), "work_order.held work_order.assignees_changed work_order.assignees_changed work_order.updated work_order.created")
	servicetest.Expect(t, "who made them", strings.Join(actors, ", "), "Bob Stone, Ann Field, Ann Field, erp (API), erp (API)")

	// Without people:read no person is named.
	page, err := s.Records.HistoryPage(ctx, s.As("erp"), id, 0, 1)
	if err != nil || page.Changes[0].ActorName != nil || len(page.Names) != 0 {
		t.Errorf("for an integration: %+v, %v", page, err)
	}
	names := ""
	entries, err := s.Records.History(ctx, s.As("erp"), id)
	servicetest.Must(t, err)
	for _, e := range entries {
		names += string(e.ActorKind) + " "
		if e.ActorName != nil {
			names += *e.ActorName + ", "
		}
	}
	servicetest.Expect(t, "the names for an integration", names, "integration ERP, integration ERP, person person person ")
	if entries, err = s.Records.History(ctx, ann, id); err != nil || *entries[4].ActorName != "Bob Stone" {
		t.Errorf("for a person: %+v, %v", entries, err)
	}
}
