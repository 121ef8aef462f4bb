package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// HistoryEntry is one change of a work order or feedback: who made it, when, and
// what it changed.
type HistoryEntry struct {
	RecordID       string       `json:"record_id"`
	OrganizationID string       `json:"organization_id"`
	ActorID        string       `json:"actor_id"`
	ActorKind      IdentityKind `json:"actor_kind"`
	// ActorName is nil where the reader is not shown people.
	ActorName *string `json:"actor_name"`
	// Action says what was done: work_order.created, work_order.answered, …
	Action string `json:"action"`
	At     Time   `json:"at"`
	// Changes are the record's fields, with dotted names for answers
	// (answers.qst_…), and what was said to a review (comment).
	Changes map[string]FieldChange `json:"changes"`
}

// FieldChange is what became of a field: JSON, null where there was, or is, nothing.
type FieldChange struct {
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// WorkOrderState is a work order as it was after one of its changes.
type WorkOrderState struct {
	// Record is what was answered then, without the names of people.
	Record WorkOrderRecord
	// HeldFrom is the status it would go back to, "" unless it was on hold.
	HeldFrom WorkOrderStatus
	// Answers are those to the questions that had one.
	Answers map[string]StoredAnswer
	// Comment is what the change itself said, to a review; nil for none.
	Comment *string
}

// StoredAnswer is an answer with who gave it and when.
type StoredAnswer struct {
	Value json.RawMessage
	At    Time
	By    string
}

// answerField begins the name of a change of an answer; the question's id follows.
const answerField = "answers."

// Rebuild returns the work order as it was after each entry of its history,
// which is whole and oldest first. It fails when the history does not begin with
// the creation, or names a field that it does not know: a state that cannot be
// relied on is none.
func Rebuild(entries []HistoryEntry) ([]WorkOrderState, error) {
	states := make([]WorkOrderState, 0, len(entries))
	var state WorkOrderState
	for i, e := range entries {
		if created := e.Action == string(EventWorkOrderCreated); created != (i == 0) {
			return nil, fmt.Errorf("entry %d of the history of %s is %q: a history begins with the creation, which happens once", i+1, e.RecordID, e.Action)
		}
		if i == 0 {
			state = createdState(e)
		}
		if err := state.apply(e); err != nil {
			return nil, fmt.Errorf("entry %d of the history of %s: %w", i+1, e.RecordID, err)
		}
		states = append(states, state)
	}
	return states, nil
}

// createdState is what the creation says beside its fields.
func createdState(e HistoryEntry) WorkOrderState {
	return WorkOrderState{
		Record:  WorkOrderRecord{ID: e.RecordID, OrganizationID: e.OrganizationID, CreatedBy: e.ActorID, CreatedAt: e.At},
		Answers: map[string]StoredAnswer{},
	}
}

// apply makes the entry's changes. What earlier copies of the state hold stays theirs.
func (s *WorkOrderState) apply(e HistoryEntry) error {
	s.Answers = maps.Clone(s.Answers)
	s.Comment = nil
	s.Record.ChangedAt = e.At
	for name, c := range e.Changes {
		var err error
		switch question, answer := strings.CutPrefix(name, answerField); {
		case answer:
			s.setAnswer(question, c.To, e)
		case name == "status":
			err = s.setStatus(c.To, e.At)
		default:
			err = s.setField(name, c.To)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s *WorkOrderState) setAnswer(question string, value json.RawMessage, e HistoryEntry) {
	if isNull(value) {
		delete(s.Answers, question)
		return
	}
	s.Answers[question] = StoredAnswer{Value: value, At: e.At, By: e.ActorID}
}

// setStatus sets the status and what goes with it: the times of the two that
// end a work order, and where a held one was.
func (s *WorkOrderState) setStatus(value json.RawMessage, at Time) error {
	var to WorkOrderStatus
	if err := json.Unmarshal(value, &to); err != nil {
		return err
	}
	if to.Name() == "" {
		return fmt.Errorf("there is no status %q", to)
	}
	from := WorkOrderStatus(s.Record.Status.Code)
	s.Record.Status = Status{Code: string(to), Name: to.Name()}
	s.HeldFrom, s.Record.CompletedAt, s.Record.CancelledAt = "", nil, nil
	switch to {
	case StatusOnHold:
		s.HeldFrom = from
	case StatusComplete:
		s.Record.CompletedAt = &at
	case StatusCancelled:
		s.Record.CancelledAt = &at
	default: // no other has anything of its own
	}
	return nil
}

func (s *WorkOrderState) setField(name string, value json.RawMessage) error {
	r := &s.Record
	switch name {
	case "number":
		return json.Unmarshal(value, &r.Number)
	case "inventory_id":
		return json.Unmarshal(value, &r.InventoryID)
	case "title":
		return json.Unmarshal(value, &r.Title)
	case "description":
		return setAnew(&r.Description, value)
	case "priority":
		return json.Unmarshal(value, &r.Priority)
	case "target_date":
		return setAnew(&r.TargetDate, value)
	case "form_id":
		return setAnew(&r.FormID, value)
	case "external_id":
		return setAnew(&r.ExternalID, value)
	case "cancel_reason":
		return setAnew(&r.CancelReason, value)
	case "assignees":
		return setList(&r.Assignees, value)
	case "consultants":
		return setList(&r.Consultants, value)
	case "comment":
		return setAnew(&s.Comment, value)
	}
	return fmt.Errorf("a work order has no such field")
}

// setAnew sets a field that may be null to a value of its own: earlier states
// keep theirs.
func setAnew[T any](field **T, value json.RawMessage) error {
	var anew *T
	err := json.Unmarshal(value, &anew)
	*field = anew
	return err
}

// setList sets a list, which is empty for null.
func setList(field *[]string, value json.RawMessage) error {
	anew := []string{}
	if isNull(value) {
		*field = anew
		return nil
	}
	err := json.Unmarshal(value, &anew)
	*field = anew
	return err
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }
