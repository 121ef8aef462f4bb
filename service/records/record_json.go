package records

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"millwright/service/store"
)

// Work orders, feedback and forms are read most, and parts of them come from Postgres as
// JSON. They append themselves to a page, which takes a third of the time of
// encoding/json: that would decode these parts, or check and copy them once more. A test
// compares the result with that of their models.

// appendStatus appends a member status.
func appendStatus(b []byte, code, name string) []byte {
	return append(store.AppendText(store.AppendText(b, `,"status":{"code":`, code), `,"name":`, name), '}')
}

// appendPeople appends the people in a record, if they are shown.
func appendPeople(b, people []byte) []byte {
	if len(people) == 0 {
		return b
	}
	return store.AppendEncoded(b, `,"people":`, people)
}

// AppendJSON writes a models.WorkOrderRecord.
func (r *WorkOrderRow) AppendJSON(b []byte) []byte {
	b = store.AppendText(b, `{"id":`, r.ID)
	b = store.AppendText(b, `,"organization_id":`, r.OrganizationID)
	b = strconv.AppendInt(append(b, `,"number":`...), r.Number, 10)
	b = store.AppendText(b, `,"inventory_id":`, r.InventoryID)
	b = store.AppendEncoded(b, `,"inventory":`, r.Inventory)
	b = store.AppendText(b, `,"title":`, r.Title)
	b = store.AppendOptional(b, `,"description":`, r.Description)
	b = store.AppendText(b, `,"priority":`, r.Priority)
	b = store.AppendTime(b, `,"target_date":`, r.TargetDate)
	b = store.AppendOptional(b, `,"form_id":`, r.FormID)
	b = store.AppendTexts(b, `,"assignees":`, r.Assigned.Assignees)
	b = store.AppendTexts(b, `,"consultants":`, r.Assigned.Consultants)
	b = store.AppendOptional(b, `,"external_id":`, r.ExternalID)
	b = appendStatus(b, string(r.Status), r.Status.Name())
	b = store.AppendOptional(b, `,"cancel_reason":`, r.CancelReason)
	b = store.AppendText(b, `,"created_by":`, r.CreatedBy)
	b = store.AppendTime(b, `,"created_at":`, &r.CreatedAt)
	b = store.AppendTime(b, `,"changed_at":`, &r.ChangedAt)
	b = store.AppendTime(b, `,"completed_at":`, r.CompletedAt)
	b = store.AppendTime(b, `,"cancelled_at":`, r.CancelledAt)
	return append(appendPeople(b, r.People), '}')
}

// AppendJSON writes a models.FeedbackRecord.
func (r *FeedbackRow) AppendJSON(b []byte) []byte {
	b = store.AppendText(b, `{"id":`, r.ID)
	b = store.AppendText(b, `,"organization_id":`, r.OrganizationID)
	b = store.AppendText(b, `,"inventory_id":`, r.InventoryID)
	b = store.AppendEncoded(b, `,"inventory":`, r.Inventory)
	b = store.AppendText(b, `,"subject":`, r.Subject)
	b = store.AppendOptional(b, `,"description":`, r.Description)
	b = store.AppendOptional(b, `,"external_id":`, r.ExternalID)
	b = appendStatus(b, string(r.Status), r.Status.Name())
	b = store.AppendText(b, `,"created_by":`, r.CreatedBy)
	b = store.AppendTime(b, `,"created_at":`, &r.CreatedAt)
	b = store.AppendTime(b, `,"changed_at":`, &r.ChangedAt)
	b = store.AppendTime(b, `,"resolved_at":`, r.ResolvedAt)
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
