package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// HistoryEntry is one change of a work order or feedback.
type HistoryEntry struct {
	RecordID       string       `json:"record_id"`
	OrganizationID string       `json:"organization_id"`
	ActorID        string       `json:"actor_id"`
	ActorKind      IdentityKind `json:"actor_kind"`
	// ActorName is nil for callers without people:read.
	ActorName *string `json:"actor_name"`
	// Action is what was done: work_order.created, work_order.answered, …
	Action string `json:"action"`
	At     Time   `json:"at"`
	// Changes holds the changed fields by name, the form answers as answers.QUESTION_ID
	// and a review's comment as comment. An entry about a comment has CommentField only.
	Changes map[string]FieldChange `json:"changes"`
}

// CommentField is the only field of an entry that is a comment.
const CommentField = "comment_id"

// CommentID returns the id of the comment that the entry is, "" for a change of the record.
func (e HistoryEntry) CommentID() string {
	var id string
	if json.Unmarshal(e.Changes[CommentField].To, &id) != nil {
		return ""
	}
	return id
}

// FieldChange is the JSON value of a field before and after a change, null if absent.
type FieldChange struct {
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// WorkOrderState is a work order as it was after one of its changes.
type WorkOrderState struct {
	// Record is the work order as the API showed it, without its inventory node and people.
	Record WorkOrderRecord
	// HeldFrom is the status it would resume to, "" unless it was on hold.
	HeldFrom WorkOrderStatus
	// Answers holds the answered questions by id.
	Answers map[string]StoredAnswer
	// Comment is the comment of the review that made this change, nil if absent.
	Comment *string
}

// StoredAnswer is an answer, when it was given and by whom.
type StoredAnswer struct {
	Value json.RawMessage
	At    Time
	By    string
}

// answerField is followed by a question's id.
const answerField = "answers."

// Rebuild returns the work order as it was after each entry of its history, which must
// be complete and oldest first. It fails if the history lacks its creation or names an
// unknown field.
func Rebuild(entries []HistoryEntry) ([]WorkOrderState, error) {
	states := make([]WorkOrderState, 0, len(entries))
	var state WorkOrderState
	for i, e := range entries {
		if created := e.Action == string(EventWorkOrderCreated); created != (i == 0) {
			return nil, fmt.Errorf("entry %d of the history of %s is %q: a history starts with the only creation", i+1, e.RecordID, e.Action)
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

// createdState returns the state before the creation's fields are applied.
func createdState(e HistoryEntry) WorkOrderState {
	return WorkOrderState{
		Record:  WorkOrderRecord{ID: e.RecordID, OrganizationID: e.OrganizationID, CreatedBy: e.ActorID, CreatedAt: e.At},
		Answers: map[string]StoredAnswer{},
	}
}

// apply applies the entry's changes. Earlier copies of the state do not change.
func (s *WorkOrderState) apply(e HistoryEntry) error {
	s.Answers = maps.Clone(s.Answers)
	s.Comment = nil
	if e.CommentID() != "" {
		return nil
	}
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

// setStatus sets the status and the fields that depend on it.
func (s *WorkOrderState) setStatus(value json.RawMessage, at Time) error {
	var to WorkOrderStatus
	if err := json.Unmarshal(value, &to); err != nil {
		return err
	}
	if to.Name() == "" {
		return fmt.Errorf("there is no status %q", to)
	}
	from := WorkOrderStatus(s.Record.Status.Code)
	s.Record.Status = StatusOf(to)
	s.HeldFrom, s.Record.CompletedAt, s.Record.CancelledAt = "", nil, nil
	switch to {
	case StatusOnHold:
		s.HeldFrom = from
	case StatusComplete:
		s.Record.CompletedAt = &at
	case StatusCancelled:
		s.Record.CancelledAt = &at
	default: // no other status sets a field
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
		return setOptional(&r.Description, value)
	case "priority":
		return json.Unmarshal(value, &r.Priority)
	case "target_date":
		return setOptional(&r.TargetDate, value)
	case "form_id":
		return setOptional(&r.FormID, value)
	case "external_id":
		return setOptional(&r.ExternalID, value)
	case "cancel_reason":
		return setOptional(&r.CancelReason, value)
	case "assignees":
		return setList(&r.Assignees, value)
	case "consultants":
		return setList(&r.Consultants, value)
	case "comment":
		return setOptional(&s.Comment, value)
	}
	return fmt.Errorf("a work order has no such field")
}

// setOptional sets a field that may be null. It allocates the value, because earlier
// states share the old one.
func setOptional[T any](field **T, value json.RawMessage) error {
	*field = nil
	return json.Unmarshal(value, field)
}

// setList sets a list, to an empty one for null.
func setList(field *[]string, value json.RawMessage) error {
	*field = []string{}
	if isNull(value) {
		return nil
	}
	return json.Unmarshal(value, field)
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }
