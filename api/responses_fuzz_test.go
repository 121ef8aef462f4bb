package api

import (
	"encoding/json"
	"flag"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/service"
)

// No body of whatever form makes the validation respond with more than 64 KiB, or take a
// second. A body is a unit, repeated between a head and a tail.
func FuzzResponses(f *testing.F) {
	a := New(&service.Service{}, Options{PublicURL: "http://millwright.test", Log: slog.New(slog.DiscardHandler)})
	var operations []*huma.Operation
	for _, op := range a.operations() {
		item := a.huma.OpenAPI().Paths[op.path]
		if found := map[string]*huma.Operation{"POST": item.Post, "PATCH": item.Patch}[op.method]; found != nil && op.maxBody > 0 {
			operations = append(operations, found)
		}
	}
	for n := range operations {
		for _, seed := range [][3]string{
			{`{"answers":[`, `{},`, `{}]}`}, {`{"assignees":[`, `1,`, `1]}`}, {`{`, `"u":1,`, `"title":1}`}, {`{"`, "n", `":1}`},
			{`{"title":"`, `\u00e4`, `"}`}, {``, `[`, ``}, {`{"answers":[`, `[[[]]],`, `1]}`}, {`{"answers":[{"question_id":"q","value":[`, `"o",`, `1]}]}`},
			{`{"target_date":"`, "0", `"}`}, {`{"priority":"`, "low", `","description":null}`}, {`{"title":`, "9", `}`}, {` `, "\n", `{}`},
		} {
			for _, times := range []uint{1, 100, 900, 500_000} {
				f.Add(uint(n), times, seed[0], seed[1], seed[2])
			}
		}
	}
	isFuzzing := flag.Lookup("test.fuzz").Value.String() != "" // other runs share a busy machine
	f.Fuzz(func(t *testing.T, n, times uint, head, unit, tail string) {
		op := operations[n%uint(len(operations))]
		limits := op.Metadata[limitsKey].(bodyLimits)
		room := max(0, int(limits.bytes)-len(head)-len(tail))
		body := []byte(head + strings.Repeat(unit, min(int(times%(1<<20)), room/max(1, len(unit)))) + tail)
		began := time.Now()
		problem := a.problemOf(t, op, body, limits)
		if took := time.Since(began); isFuzzing && took > time.Second {
			t.Errorf("%s: a body of %d bytes takes %s", op.OperationID, len(body), took)
		}
		response, err := json.Marshal(problem)
		if err != nil || len(response) > 64<<10 {
			t.Errorf("%s: a body of %d bytes gets %d: %v", op.OperationID, len(body), len(response), err)
		}
	})
}

// problemOf returns the problem of a body, nil if it is valid.
func (a *API) problemOf(t *testing.T, op *huma.Operation, body []byte, limits bodyLimits) *Problem {
	t.Helper()
	ctx := withCall(t.Context(), &call{api: a})
	invalid, err := validateJSON(ctx, body, limits)
	if err == nil {
		err = a.checkSchema(ctx, op, body, invalid)
	}
	if err == nil {
		return nil
	}
	return a.problem(ctx, err)
}
