package lists_test

import (
	"fmt"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/people"
	"millwright/service/records"
)

type listedWorkOrder struct {
	records.WorkOrderRow
	lists.Shared
}

// BenchmarkEncodePage encodes a page of 200 work orders that show their people, from the rows
// that were read.
//
//	go test ./service/lists -run "^$" -bench EncodePage
func BenchmarkEncodePage(b *testing.B) {
	rows := make([]listedWorkOrder, models.MaxPageSize)
	at := models.TimeOf(time.Date(2026, 3, 2, 12, 15, 30, 0, time.UTC))
	id := func(prefix models.IDPrefix, n int) string {
		return fmt.Sprintf("%s01jd8q4v6cf5e8hbbfwj0z%04d", prefix, n)
	}
	for n := range rows {
		rows[n].WorkOrder = models.WorkOrder{
			ID: id(models.PrefixWorkOrder, n), OrganizationID: id(models.PrefixIdentity, 0), Number: int64(1000 + n), InventoryID: id(models.PrefixEquipment, n%40),
			Title: "Replace the filter of the air handling unit", Description: new("The pressure drop is above the limit. The spare is in store 2."),
			Priority: models.PriorityMedium, TargetDate: &at, FormID: new(id(models.PrefixForm, n%5)), ExternalID: new(fmt.Sprintf("ERP-%d", n)),
			Status: models.StatusInProgress, CreatedBy: id(models.PrefixIdentity, n%20), CreatedAt: at, ChangedAt: at,
		}
		rows[n].Assigned = people.Roles{
			Assignees:   []string{id(models.PrefixIdentity, (n+1)%20), id(models.PrefixIdentity, (n+2)%20)},
			Consultants: []string{id(models.PrefixIdentity, (n+3)%20)},
		}
	}
	shared := &rows[0].Shared
	for n := range 20 {
		person := id(models.PrefixIdentity, n)
		shared.Named = append(shared.Named, &person, new("person"), new(fmt.Sprintf("Ann Field %d", n)), new(fmt.Sprintf("ann%d@example.com", n)), nil)
	}
	node := func(id, parent, kind, name string) {
		shared.Nodes = append(shared.Nodes, &id, &kind, &name, &name, &parent)
	}
	node(id(models.PrefixLocation, 0), "", "location", "Headquarters")
	node(id(models.PrefixLocation, 1), id(models.PrefixLocation, 0), "location", "North wing")
	node(id(models.PrefixSystem, 0), id(models.PrefixLocation, 1), "system", "Ventilation")
	for n := range 40 {
		node(id(models.PrefixEquipment, n), id(models.PrefixSystem, 0), "equipment", fmt.Sprintf("AHU %d", n))
	}
	b.ReportAllocs()
	for b.Loop() {
		body, err := lists.EncodeLastPage[listedWorkOrder](b.Context(), rows)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
