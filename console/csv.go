package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strings"
	"time"

	"millwright/models"
)

// csvFile is a table that people download: UTF-8 with a byte order mark, without which
// spreadsheets take it for another encoding.
type csvFile struct {
	content bytes.Buffer
	writer  *csv.Writer
	zone    *time.Location
	rows    int
}

const byteOrderMark = "\ufeff"

// newCSV returns a table with the names of its columns. Its times are in the zone.
func newCSV(zone *time.Location, columns ...string) *csvFile {
	f := &csvFile{zone: zone}
	f.content.WriteString(byteOrderMark)
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

// time is the cell of a time: in the zone of the file, with the offset, since rows on both sides
// of a change of the clocks differ in it.
func (f *csvFile) time(at models.Time) string {
	return at.In(f.zone).Format("2006-01-02T15:04:05-07:00")
}

// optionalTime is time, or an empty cell.
func (f *csvFile) optionalTime(at *models.Time) string {
	if at == nil {
		return ""
	}
	return f.time(*at)
}

func (f *csvFile) send(r *request, name string) error {
	f.writer.Flush()
	r.Header("Content-Disposition", `attachment; filename="`+name+`"`)
	r.Data(http.StatusOK, "text/csv; charset=utf-8", f.content.Bytes())
	return nil
}
