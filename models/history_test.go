package models

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// entry returns a history entry; values are JSON.
func entry(minute int, action string, changes map[string]string) HistoryEntry {
	e := HistoryEntry{
		RecordID: "wo_1", OrganizationID: "idn_o", ActorID: "idn_a", Action: action,
		At: TimeOf(time.Date(2026, 3, 2, 12, minute, 0, 0, time.UTC)), Changes: map[string]FieldChange{},
	}
	for name, to := range changes {
		e.Changes[name] = FieldChange{From: json.RawMessage("null"), To: json.RawMessage(to)}
	}
	return e
}

func created() HistoryEntry {
	return entry(0, "work_order.created", map[string]string{
		"number": "7", "inventory_id": `"eqp_1"`, "title": `"Replace filter"`, "priority": `"none"`, "status": `"open"`,
		"assignees": `["idn_a"]`, "consultants": "null", "description": `"Soon"`,
	})
}

func TestRebuild(t *testing.T) {
	states, err := Rebuild([]HistoryEntry{
		created(),
		entry(1, "work_order.updated", map[string]string{"description": "null", "title": `"Replace belt"`}),
		entry(2, "work_order.answered", map[string]string{"status": `"in_progress"`, "answers.qst_1": "1.50"}),
		entry(3, "work_order.held", map[string]string{"status": `"on_hold"`}),
		entry(4, "work_order.resumed", map[string]string{"status": `"in_progress"`}),
		entry(5, "work_order.answered", map[string]string{"answers.qst_1": "null"}),
		entry(6, "work_order.approved", map[string]string{"status": `"complete"`, "comment": `"Fine"`}),
		entry(7, "work_order.assignees_changed", map[string]string{"assignees": `["idn_b","idn_a"]`}),
		entry(8, "work_order.commented", map[string]string{"comment_id": `"cmt_1"`}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range states {
		r := s.Record
		line := []string{r.ChangedAt.Format("04"), r.Title, *orDash(r.Description), r.Status.Name, string(s.HeldFrom), strings.Join(r.Assignees, "+"), *orDash(s.Comment)}
		if r.CompletedAt != nil {
			line = append(line, "completed "+r.CompletedAt.Format("04"))
		}
		for question, a := range s.Answers {
			line = append(line, question, string(a.Value), a.At.Format("04"), a.By)
		}
		got = append(got, strings.Join(line, "|"))
	}
	want := []string{
		"00|Replace filter|Soon|Open||idn_a|-",
		"01|Replace belt|-|Open||idn_a|-",
		"02|Replace belt|-|In progress||idn_a|-|qst_1|1.50|02|idn_a",
		"03|Replace belt|-|On hold|in_progress|idn_a|-|qst_1|1.50|02|idn_a",
		"04|Replace belt|-|In progress||idn_a|-|qst_1|1.50|02|idn_a",
		"05|Replace belt|-|In progress||idn_a|-",
		"06|Replace belt|-|Complete||idn_a|Fine|completed 06",
		"07|Replace belt|-|Complete||idn_b+idn_a|-|completed 06",
		"07|Replace belt|-|Complete||idn_b+idn_a|-|completed 06", // a comment is no change
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rebuilt as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	first := states[0].Record
	if first.ID != "wo_1" || first.OrganizationID != "idn_o" || first.CreatedBy != "idn_a" || first.Number != 7 || first.Consultants == nil {
		t.Errorf("the first state is %+v", first)
	}
}

func orDash(text *string) *string {
	if text == nil {
		dash := "-"
		return &dash
	}
	return text
}

func TestRebuildFailsOnABrokenHistory(t *testing.T) {
	for name, entries := range map[string][]HistoryEntry{
		"no creation":           {entry(1, "work_order.updated", nil)},
		"a second creation":     {created(), created()},
		"an unknown field":      {created(), entry(1, "work_order.updated", map[string]string{"colour": `"red"`})},
		"an unknown status":     {created(), entry(1, "work_order.updated", map[string]string{"status": `"painted"`})},
		"a title not a string":  {created(), entry(1, "work_order.updated", map[string]string{"title": "7"})},
		"a list not a list":     {created(), entry(1, "work_order.assignees_changed", map[string]string{"assignees": `"idn_a"`})},
		"a status not a string": {created(), entry(1, "work_order.updated", map[string]string{"status": "7"})},
	} {
		if states, err := Rebuild(entries); err == nil {
			t.Errorf("%s is rebuilt as %+v", name, states)
		} else if !strings.Contains(err.Error(), "wo_1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if states, err := Rebuild(nil); err != nil || len(states) != 0 {
		t.Errorf("no history: %v, %v", states, err)
	}
}
