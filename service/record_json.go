package service

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Work orders, feedback and forms are read most, and parts of them come from Postgres as
// JSON. They append themselves to a page, which takes a third of the time of
// encoding/json: that would decode these parts, or check and copy them once more. A test
// compares the result with that of their models.

// appendStatus appends a member status.
func appendStatus(b []byte, code, name string) []byte {
	return append(appendText(appendText(b, `,"status":{"code":`, code), `,"name":`, name), '}')
}

// appendPeople appends the people in a record, if they are shown.
func appendPeople(b, people []byte) []byte {
	if len(people) == 0 {
		return b
	}
	return appendEncoded(b, `,"people":`, people)
}

// appendJSON writes a models.WorkOrderRecord.
func (r *workOrderRow) appendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, r.ID)
	b = appendText(b, `,"organization_id":`, r.OrganizationID)
	b = strconv.AppendInt(append(b, `,"number":`...), r.Number, 10)
	b = appendText(b, `,"inventory_id":`, r.InventoryID)
	b = appendEncoded(b, `,"inventory":`, r.Inventory)
	b = appendText(b, `,"title":`, r.Title)
	b = appendOptional(b, `,"description":`, r.Description)
	b = appendText(b, `,"priority":`, r.Priority)
	b = appendTime(b, `,"target_date":`, r.TargetDate)
	b = appendOptional(b, `,"form_id":`, r.FormID)
	b = appendTexts(b, `,"assignees":`, r.Assigned.Assignees)
	b = appendTexts(b, `,"consultants":`, r.Assigned.Consultants)
	b = appendOptional(b, `,"external_id":`, r.ExternalID)
	b = appendStatus(b, string(r.Status), r.Status.Name())
	b = appendOptional(b, `,"cancel_reason":`, r.CancelReason)
	b = appendText(b, `,"created_by":`, r.CreatedBy)
	b = appendTime(b, `,"created_at":`, &r.CreatedAt)
	b = appendTime(b, `,"changed_at":`, &r.ChangedAt)
	b = appendTime(b, `,"completed_at":`, r.CompletedAt)
	b = appendTime(b, `,"cancelled_at":`, r.CancelledAt)
	return append(appendPeople(b, r.People), '}')
}

// appendJSON writes a models.FeedbackRecord.
func (r *feedbackRow) appendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, r.ID)
	b = appendText(b, `,"organization_id":`, r.OrganizationID)
	b = appendText(b, `,"inventory_id":`, r.InventoryID)
	b = appendEncoded(b, `,"inventory":`, r.Inventory)
	b = appendText(b, `,"subject":`, r.Subject)
	b = appendOptional(b, `,"description":`, r.Description)
	b = appendOptional(b, `,"external_id":`, r.ExternalID)
	b = appendStatus(b, string(r.Status), r.Status.Name())
	b = appendText(b, `,"created_by":`, r.CreatedBy)
	b = appendTime(b, `,"created_at":`, &r.CreatedAt)
	b = appendTime(b, `,"changed_at":`, &r.ChangedAt)
	b = appendTime(b, `,"resolved_at":`, r.ResolvedAt)
	return append(appendPeople(b, r.People), '}')
}

// encodedIdentity is a models.NamedIdentity as Postgres encodes it.
type encodedIdentity struct {
	id   string
	json []byte
}

// UnmarshalJSON reads the id and keeps the rest.
func (i *encodedIdentity) UnmarshalJSON(b []byte) error {
	var identity struct {
		IdentityID string `json:"identity_id"`
	}
	err := json.Unmarshal(b, &identity)
	i.id, i.json = identity.IdentityID, bytes.Clone(b)
	return err
}

// encodedPeople are the identities that are named, nil without any.
func encodedPeople(identities []encodedIdentity, named []string) []byte {
	var people []byte
	for _, identity := range identities {
		if slices.Contains(named, identity.id) {
			people = append(append(people, ','), identity.json...)
		}
	}
	if people == nil {
		return nil
	}
	people[0] = '['
	return append(people, ']')
}
