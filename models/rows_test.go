package models_test

import (
	"slices"
	"testing"

	"millwright/models"
)

func TestTextArrayIsReadAsItWasWritten(t *testing.T) {
	for name, array := range map[string]models.TextArray{
		"empty":              {},
		"scopes":             {"work_orders:read", "people:read"},
		"an empty text":      {"", "a", ""},
		"special letters":    {`a,b`, `say "x"`, `back\slash`, `{}`, "é\n"},
		"a string like NULL": {"NULL"},
	} {
		written, err := array.Value()
		if err != nil {
			t.Fatal(err)
		}
		read := models.TextArray{"before"}
		if err := read.Scan(written); err != nil || !slices.Equal(read, array) {
			t.Errorf("%s: %q came back as %q (%v)", name, array, read, err)
		}
	}
	var read models.TextArray
	if err := read.Scan(`{plain,"quoted, text"}`); err != nil || !slices.Equal(read, models.TextArray{"plain", "quoted, text"}) {
		t.Errorf("Postgres's own form is read as %q (%v)", read, err)
	}
	for _, src := range []any{nil, 7, "", "plain"} {
		if err := read.Scan(src); err == nil {
			t.Errorf("%v is read as an array", src)
		}
	}
}
