package records_test

import (
	"strings"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A crash of Postgres takes back the numbers whose creations were not committed, and gives
// them again: a process must not remember them.
func TestNoNumberIsUsedTwiceAfterACrash(t *testing.T) {
	h := servicetest.NewHarness(t)
	create := func(form *string) (store.WriteResult, error) {
		return h.Records.CreateWorkOrder(t.Context(), h.As("erp"), store.NoKey,
			records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter", FormID: form})
	}
	before := h.MustWrite(create(nil)).Number
	unknown := "frm_01kjq7k5pge00a5z4cn7dzgdpj"
	if _, err := create(&unknown); err == nil {
		t.Fatal("a work order with an unknown form is created")
	}
	h.Exec(`SELECT setval(('work_order_numbers.' || quote_ident($1))::regclass, $2)`, h.Acme.OrganizationID, before)
	for want := before + 1; want <= before+3; want++ {
		servicetest.Expect(t, "the number", h.MustWrite(create(nil)).Number, want)
	}
}

// Neither an actor that may not create a work order nor a form with invalid fields takes a number.
func TestARejectedWorkOrderTakesNoNumber(t *testing.T) {
	h := servicetest.NewHarness(t)
	create := func(key string) int64 {
		call := store.ForCall(key, "POST", "/", []byte("body"), "")
		return h.MustWrite(h.Records.CreateWorkOrder(t.Context(), h.As("erp"), call, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"})).Number
	}
	before := create("key")
	servicetest.Expect(t, "the number of a repeated call", create("key"), before)
	for _, actor := range []string{"reader", "outsider"} {
		if creates(h, actor) == nil {
			t.Errorf("%s creates a work order", actor)
		}
	}
	h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
	if creates(h, "erp") == nil {
		t.Error("a work order is created in a read-only organization")
	}
	h.Exec(`UPDATE organizations SET read_only = false WHERE id = $1`, h.Acme.OrganizationID)
	long := strings.Repeat("x", 10_001)
	for name, in := range map[string]records.NewWorkOrder{
		"no title":           {InventoryID: h.ID("ahu1"), Title: " "},
		"a long description": {InventoryID: h.ID("ahu1"), Title: "Replace filter", Description: &long},
		"no such priority":   {InventoryID: h.ID("ahu1"), Title: "Replace filter", Priority: "urgent"},
	} {
		if _, err := h.Records.CreateWorkOrder(t.Context(), h.As("erp"), store.NoKey, in); err == nil {
			t.Errorf("a work order with %s is created", name)
		}
	}
	servicetest.Expect(t, "the next number", create("another"), before+1)
}
