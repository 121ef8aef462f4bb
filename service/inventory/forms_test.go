package inventory_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
)

// A form shows what an import changed: labels, the order, questions that are retired or new, and options.
func TestAFormShowsItsChanges(t *testing.T) {
	f := servicetest.New(t)
	result, err := f.Imports.Run(t.Context(), []byte(`
organization: {key: acme}
forms:
  - key: inspection
    questions:
      - {key: q_parts, type: multiple_choice, options: [{key: o_filter}, {key: o_belt, label: "Belt \"B\" & <more>"}, {key: o_fan, label: Fan}]}
      - {key: q_state, type: single_choice, options: [{key: o_ok}, {key: o_dirty}]}
      - {key: q_hours, type: integer, retired: true}
      - {key: q_pressure, type: decimal, label: "Drop, in Pa\n½", required: true}
      - {key: q_note, type: text}
      - {key: q_color, label: Color, type: text}
  - {key: blank, name: Blank}
`))
	servicetest.Must(t, err)
	id := func(key string) string { return result.IDs[key] }
	option := func(key, label string) models.QuestionOptionRecord {
		return models.QuestionOptionRecord{ID: id(key), Label: label}
	}
	want := map[string][]models.QuestionRecord{"blank": {}, "inspection": {
		{ID: id("q_parts"), Label: "Parts used", Type: "multiple_choice", Options: []models.QuestionOptionRecord{
			option("o_filter", "Filter"), option("o_belt", `Belt "B" & <more>`), option("o_fan", "Fan")}},
		{ID: id("q_state"), Label: "Filter state", Type: "single_choice", Required: true, Options: []models.QuestionOptionRecord{
			option("o_ok", "OK"), option("o_dirty", "Dirty")}},
		{ID: id("q_pressure"), Label: "Drop, in Pa\n½", Type: "decimal", Required: true, Options: []models.QuestionOptionRecord{}},
		{ID: id("q_note"), Label: "Note", Type: "text", Options: []models.QuestionOptionRecord{}},
		{ID: id("q_color"), Label: "Color", Type: "text", Options: []models.QuestionOptionRecord{}},
	}}
	for key, questions := range want {
		body, err := f.Inventory.Form(t.Context(), f.Actor("erp"), id(key))
		servicetest.Must(t, err)
		var record models.FormRecord
		servicetest.Must(t, json.Unmarshal(body, &record))
		if !reflect.DeepEqual(record.Questions, questions) {
			t.Errorf("the form %s has the questions\n%+v\nwant\n%+v", key, record.Questions, questions)
		}
	}
}
