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

func TestFillPipeline(t *testing.T) {
	statements := map[string]*Statement{
		"lock":   {Stage: 1, SQL: "lock", SharedSQL: "try lock"},
		"rules":  {Stage: 2, SQL: "rules"},
		"insert": {Stage: 3, SQL: "insert"},
		"log":    {Stage: 4, SQL: "log"},
	}
	for name, test := range map[string]struct {
		// Each write queues its words in order; one that is no Statement is standalone SQL.
		writes []string
		shared bool
		// want is what is sent: a statement with the writes its rows come from.
		want string
	}{
		"nothing queued":                    {writes: []string{"", ""}, want: ""},
		"one write":                         {writes: []string{"rules insert"}, want: "rules(0) insert(0)"},
		"same statements are merged":        {writes: []string{"rules insert", "rules insert"}, want: "rules(0 1) insert(0 1)"},
		"a write that skips a statement":    {writes: []string{"insert log", "rules insert log"}, want: "rules(1) insert(0 1) log(0 1)"},
		"a statement that is queued twice":  {writes: []string{"insert insert", "insert"}, want: "insert(0 1) insert(0)"},
		"standalone SQL is sent on its own": {writes: []string{"SELECT insert", "SELECT insert"}, want: "SELECT SELECT insert(0 1)"},
		"standalone SQL keeps its place":    {writes: []string{"rules SELECT insert", "insert"}, want: "rules(0) SELECT insert(0 1)"},
		"stages queued in another order":    {writes: []string{"log rules", "rules log"}, want: "rules(1) log(0 1) rules(0)"},
		"locks wait if the write is alone":  {writes: []string{"lock rules"}, want: "lock(0) rules(0)"},
		"no lock waits if it is shared":     {writes: []string{"lock rules", "lock"}, shared: true, want: "try lock(0 1) rules(0)"},
	} {
		t.Run(name, func(t *testing.T) {
			var queues []*queue
			for n, words := range test.writes {
				q := &queue{}
				for word := range strings.FieldsSeq(words) {
					statement := &queuedStatement{sql: word}
					if s := statements[word]; s != nil {
						statement = &queuedStatement{bulk: s, rows: [][]any{{n}}}
					}
					q.statements = append(q.statements, statement)
				}
				queues = append(queues, q)
			}
			pipeline := &pgx.Batch{}
			fillPipeline(pipeline, slog.New(slog.DiscardHandler), queues, test.shared)
			var sent []string
			for _, q := range pipeline.QueuedQueries {
				text := q.SQL
				if len(q.Arguments) > 0 {
					text += strings.NewReplacer("[", "(", "]", ")").Replace(fmt.Sprint(q.Arguments[0]))
				}
				sent = append(sent, text)
			}
			if got := strings.Join(sent, " "); got != test.want {
				t.Errorf("sent: %s\nwant: %s", got, test.want)
			}
		})
	}
}

// Rows become columns: one array per parameter.
func TestRowsAreSentAsArrays(t *testing.T) {
	insert := &Statement{SQL: "insert"}
	queues := []*queue{
		{statements: []*queuedStatement{{bulk: insert, rows: [][]any{{1, "a"}, {2, "b"}}}}},
		{statements: []*queuedStatement{{bulk: insert, rows: [][]any{{3, nil}}}}},
	}
	pipeline := &pgx.Batch{}
	fillPipeline(pipeline, slog.New(slog.DiscardHandler), queues, true)
	if len(pipeline.QueuedQueries) != 1 {
		t.Fatalf("%d statements were sent, want 1", len(pipeline.QueuedQueries))
	}
	want := []pgtype.FlatArray[any]{{1, 2, 3}, {"a", "b", nil}}
	got := pipeline.QueuedQueries[0].Arguments
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
