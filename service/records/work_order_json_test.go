package records

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/store"
)

// A work order of a page has the bytes that its GET has.
func TestWorkOrdersOfPagesAreEncodedLikeOthers(t *testing.T) {
	const odd = "Zoë's \"A\\B\" <&>\t\n\u2028€ 😀"
	n := 0
	text := func() *string { // a different one each time, as the times are
		n++
		return new(fmt.Sprint(odd, n))
	}
	at := func() *models.Time {
		n++
		return new(models.TimeOf(time.Date(2026, 3, 2, 12, 15, n, 5e6, time.UTC)))
	}
	least := WorkOrderRow{WorkOrder: models.WorkOrder{ID: "wo_1", Status: models.StatusOpen}, Inventory: &models.NodeReference{}}
	most := WorkOrderRow{
		WorkOrder: models.WorkOrder{
			ID: "wo_2", OrganizationID: "idn_1", Number: 1042, InventoryID: "eqp_1", Title: *text(), Description: text(), Priority: models.PriorityHigh,
			TargetDate: at(), FormID: text(), ExternalID: text(), Status: models.StatusOnHold, CancelReason: text(), CreatedBy: "idn_2",
			CreatedAt: *at(), ChangedAt: *at(), CompletedAt: at(), CancelledAt: at(),
		},
		Assigned: people.Roles{Assignees: []string{"idn_2", "idn_3"}, Consultants: []string{"idn_4"}},
		Inventory: &models.NodeReference{ID: "eqp_1", Kind: models.NodeEquipment, Name: *text(), ExternalID: text(), Path: []models.PathNode{
			{ID: "loc_1", Kind: models.NodeLocation, Name: *text()}, {ID: "sys_1", Kind: models.NodeSystem, Name: *text()},
		}},
		People: []models.NamedIdentity{
			{IdentityID: "idn_2", Kind: models.KindPerson, Name: *text(), Email: text(), Phone: text()}, {IdentityID: "idn_3", Kind: models.KindTeam, Name: *text()},
		},
	}
	for name, row := range map[string]*WorkOrderRow{"least": &least, "most": &most} {
		want, err := store.Encode(row.Shown())
		if got := row.AppendJSON(nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s (%v):\ngot  %s\nwant %s", name, err, got, want)
		}
	}
}
