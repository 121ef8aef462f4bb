package inventory_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Postgres encodes the questions of a form, as its record does.
func TestAFormIsItsRecord(t *testing.T) {
	f := servicetest.New(t)
	body, err := f.Inventory.Form(t.Context(), f.Actor("erp"), f.ID("inspection"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var record models.FormRecord
	if err := decoder.Decode(&record); err != nil {
		t.Fatal(err)
	}
	encoded, err := store.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	if len(record.Questions) == 0 || !bytes.Equal(encoded, body) {
		t.Errorf("the form is\n%s\nits record\n%s", body, encoded)
	}
}
