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

// That states are rebuilt as they were is proven by TestHistoryRebuildsEveryState of service/records.
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
