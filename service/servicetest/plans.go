package servicetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// BoundedRead is a read with the rows of tables and the entries of their indexes that it may look at, and the pages of
// these indexes, if it is not 0. A name of a table may be a pattern of LIKE.
type BoundedRead struct {
	Do          func() error
	Tables      []string
	Most, Pages int
}

// WantBounded has the reads planned while the tables are empty, and fails the test if a read looks at more than it may
// after one of the fillings.
func WantBounded(t *testing.T, f *Fixture, reads map[string]BoundedRead, fillings ...func()) {
	t.Helper()
	for name, read := range reads {
		if err := read.Do(); err != nil && models.CodeOf(err) != models.CodeNotFound {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for nth, fill := range fillings {
		fill()
		f.WaitForOpenTransactions()
		for name, read := range reads {
			rowsBefore, pagesBefore := f.looked(read.Tables)
			if err := read.Do(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rows, pages := f.looked(read.Tables)
			rows, pages = rows-rowsBefore, pages-pagesBefore
			t.Logf("%s, filling %d: %d rows or entries of indexes and %d pages of indexes were read", name, nth, rows, pages)
			if rows > read.Most {
				t.Errorf("%s, filling %d: %d rows or entries of indexes, want at most %d", name, nth, rows, read.Most)
			}
			if read.Pages > 0 && pages > read.Pages {
				t.Errorf("%s, filling %d: %d pages of indexes, want at most %d", name, nth, pages, read.Pages)
			}
		}
	}
}

// Explain executes a prepared statement with the arguments. It returns its plan, a line per
// node, and how many pages its scans touched: what changing rows touches depends on how full
// the pages of indexes are.
func Explain(t *testing.T, conn *pgx.Conn, name, arguments string) (plan string, blocks int) {
	t.Helper()
	var plans []struct{ Plan PlanNode }
	var raw []byte
	if err := conn.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE `+name+`(`+arguments+`)`, pgx.QueryExecModeSimpleProtocol).Scan(&raw); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	Must(t, json.Unmarshal(raw, &plans))
	var lines strings.Builder
	plans[0].Plan.describe(&lines, "")
	plans[0].Plan.Walk(func(n PlanNode) {
		if n.Relation != "" && n.Type != "ModifyTable" || n.Type == "Bitmap Index Scan" {
			blocks += n.pages()
			for _, below := range n.Plans {
				blocks -= below.pages()
			}
		}
	})
	return lines.String(), blocks
}

// PlanNode is a node of EXPLAIN (FORMAT JSON). Its pages include the pages of the nodes below it.
type PlanNode struct {
	Type      string     `json:"Node Type"`
	Relation  string     `json:"Relation Name"`
	Index     string     `json:"Index Name"`
	Condition string     `json:"Index Cond"`
	Filter    string     `json:"Filter"`
	Rows      float64    `json:"Actual Rows"`
	Loops     float64    `json:"Actual Loops"`
	Hit       int        `json:"Shared Hit Blocks"`
	Read      int        `json:"Shared Read Blocks"`
	Plans     []PlanNode `json:"Plans"`
}

// Walk visits the node and those below it.
func (n PlanNode) Walk(visit func(PlanNode)) {
	visit(n)
	for _, p := range n.Plans {
		p.Walk(visit)
	}
}

func (n PlanNode) pages() int { return n.Hit + n.Read }

// describe writes the node and those below it, a line each.
func (n PlanNode) describe(to *strings.Builder, indent string) {
	fmt.Fprintf(to, "%s%s %s %s %s: %g rows, %g times, %d pages, filter %q\n", indent, n.Type, n.Relation, n.Index, n.Condition, n.Rows, n.Loops, n.pages(), n.Filter)
	for _, p := range n.Plans {
		p.describe(to, indent+"  ")
	}
}
