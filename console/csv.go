package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strings"

	"millwright/models"
)

// csvFile is a table that people download.
type csvFile struct {
	content bytes.Buffer
	writer  *csv.Writer
	rows    int
}

// newCSV returns a table with the names of its columns.
func newCSV(columns ...string) *csvFile {
	f := &csvFile{}
	f.writer = csv.NewWriter(&f.content)
	f.writer.UseCRLF = true
	_ = f.writer.Write(columns) // a buffer takes everything
	return f
}

// add adds a row. Programs that open the file must not treat a cell as a formula, nor show
// it in another direction.
func (f *csvFile) add(cells ...string) {
	for i, cell := range cells {
		cell = spellDirections(cell)
		if startsFormula(cell) {
			cell = "'" + cell
		}
		cells[i] = cell
	}
	_ = f.writer.Write(cells)
	f.rows++
}

// startsFormula reports whether a spreadsheet may take the text for a formula: some ignore
// white space and invisible characters before it, and accept the wide forms of signs.
func startsFormula(text string) bool {
	return strings.IndexAny(strings.TrimLeftFunc(text, models.IsInvisible), "=+-@\uff1d\uff0b\uff0d\uff20") == 0
}

func (f *csvFile) send(r *request, name string) error {
	f.writer.Flush()
	r.Header("Content-Disposition", `attachment; filename="`+name+`"`)
	r.Data(http.StatusOK, "text/csv; charset=utf-8", f.content.Bytes())
	return nil
}
