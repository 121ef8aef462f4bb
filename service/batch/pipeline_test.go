package batch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// sent returns what is sent for lookups with these rows.
func sent(rows ...queuedRow) []*pgx.QueuedQuery {
	lookups := make([]*Lookup, len(rows))
	for n, row := range rows {
		lookups[n] = &Lookup{queued: row}
	}
	pipeline := &pgx.Batch{}
	fillPipeline(pipeline, slog.New(slog.DiscardHandler), lookups)
	return pipeline.QueuedQueries
}

// A statement that several lookups have is sent once, with the rows of all.
func TestLookupsShareTheirStatements(t *testing.T) {
	statements := map[string]*Statement{"person": {"person"}, "node": {"node"}, "order": {"order"}}
	for lookups, want := range map[string]string{
		"":                            "",
		"person":                      "person(0)",
		"person person":               "person(0 1)",
		"person node person":          "person(0 2) node(1)",
		"node order person order":     "node(0) order(1 3) person(2)",
		"order node order node order": "order(0 2 4) node(1 3)",
	} {
		var rows []queuedRow
		for n, statement := range strings.Fields(lookups) {
			rows = append(rows, queuedRow{statement: statements[statement], row: []any{n}})
		}
		var got []string
		for _, q := range sent(rows...) {
			got = append(got, q.SQL+strings.NewReplacer("[", "(", "]", ")").Replace(fmt.Sprint(q.Arguments[0])))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q: sent are %q, want %q", lookups, got, want)
		}
	}
}

// Rows become columns: one array per parameter.
func TestRowsAreSentAsArrays(t *testing.T) {
	find := &Statement{"find"}
	queries := sent(queuedRow{statement: find, row: []any{1, "a"}}, queuedRow{statement: find, row: []any{2, "b"}}, queuedRow{statement: find, row: []any{3, nil}})
	if len(queries) != 1 {
		t.Fatalf("%d statements were sent, want 1", len(queries))
	}
	want := []pgtype.FlatArray[any]{{1, 2, 3}, {"a", "b", nil}}
	got := queries[0].Arguments
	if !slices.EqualFunc(got, want, func(got any, want pgtype.FlatArray[any]) bool { return slices.Equal(got.(pgtype.FlatArray[any]), want) }) {
		t.Errorf("the parameters are %v, want %v", got, want)
	}
}

func TestUnavailable(t *testing.T) {
	for sqlstate, want := range map[string]bool{
		"08006": true, "57P01": true, "53300": true, "25006": true,
		"23505": false, "40P01": false, "57014": false, "22012": false, "25001": false, "": false,
	} {
		if got := Unavailable(sqlstate); got != want {
			t.Errorf("Unavailable(%q) is %t, want %t", sqlstate, got, want)
		}
	}
}
