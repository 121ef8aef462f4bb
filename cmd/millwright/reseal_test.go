package main

import (
	"fmt"
	"strings"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestResealCommand(t *testing.T) {
	newHarness(t)
	const newer = "newer:YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	for _, step := range []struct{ keys, says, fails string }{
		{newer, ": 0\n", "opens some secrets"},
		{newer + "," + servicetest.SealingKeys, ": 5\n", ""},
		{newer, ": 0\n", ""},
	} {
		t.Setenv("SECRET_SEALING_KEYS", step.keys)
		out, err := run(t, "reseal")
		if (err == nil) != (step.fails == "") || err != nil && !strings.Contains(err.Error(), step.fails) || !strings.HasSuffix(out, step.says) {
			t.Errorf("it prints %q, %v; want %q, %q", out, err, step.says, step.fails)
		}
		if strings.Contains(fmt.Sprint(out, err), newer) {
			t.Error("it prints a key")
		}
	}
}

func TestRestoredCommand(t *testing.T) {
	h := newHarness(t)
	order, err := h.Records.CreateWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace the filter"})
	if err != nil {
		t.Fatal(err)
	}
	want := `open records whose workflows reload, from the next sweep on: 1
workflows of webhook addresses that were woken: 5
workflows of failing deliveries that were woken: 0
`
	for _, what := range []string{"temporal", "postgres"} {
		h.Exec(`DELETE FROM dirty_records`)
		out, err := run(t, "restored", what)
		if dirty := servicetest.Value[string](h.Fixture, `SELECT string_agg(record_id, ' ') FROM dirty_records`); err != nil || out != want || dirty != order.RecordID {
			t.Errorf("%s: %q, %v; dirty are %s", what, out, err, dirty)
		}
	}
	if _, err := run(t, "restored", "both"); err == nil {
		t.Error("an unknown subcommand succeeds")
	}
}
