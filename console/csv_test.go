package console

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"
)

// Programs that open a CSV treat no cell as a formula, and show its characters in order.
func TestCellsAreText(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "Ann Field": "Ann Field", "a=b": "a=b", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "'=1": "'=1",
		"\t=1": "'\t=1", "\r=1": "'=1", "\n=1": "'\n=1", "  =1": "'  =1", "\u00a0=1": "'\u00a0=1", "\ufeff=1": "'\ufeff=1",
		"\uff1d1": "'\uff1d1", "\uff0b1": "'\uff0b1", "\uff0d1": "'\uff0d1", "\uff20x": "'\uff20x",
		"\u202egnp.exe": "‹U+202E›gnp.exe", "\u2066=1": "‹U+2066›=1", "\u200b=1": "'\u200b=1", "\u3164=1": "'\u3164=1",
	} {
		f := newCSV(time.UTC, "name")
		f.add(cell, "next")
		f.writer.Flush()
		reader := csv.NewReader(strings.NewReader(f.content.String()))
		reader.FieldsPerRecord = -1
		if rows, err := reader.ReadAll(); err != nil || len(rows) != 2 || rows[1][0] != want {
			t.Errorf("%q becomes %q, want %q (%v)", cell, rows, want, err)
		}
	}
}
