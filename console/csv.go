package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strings"
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

// add adds a row. Programs that open the file must not take a text for a formula.
func (f *csvFile) add(cells ...string) {
	for i, cell := range cells {
		if strings.TrimLeft(cell, "=+-@\t\r") != cell {
			cells[i] = "'" + cell
		}
	}
	_ = f.writer.Write(cells)
	f.rows++
}

// send responds with the file.
func (f *csvFile) send(r *request, name string) error {
	f.writer.Flush()
	r.Header("Content-Disposition", `attachment; filename="`+name+`"`)
	r.Data(http.StatusOK, "text/csv; charset=utf-8", f.content.Bytes())
	return nil
}
