package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// run runs the program with the arguments and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runWith(t.Context(), args...)
}

// printed reports whether a command printed more than its usage.
func printed(out string) bool { return out != "" && !strings.HasPrefix(out, "Usage:\n") }

func runWith(ctx context.Context, args ...string) (string, error) {
	root := rootCommand()
	var printed bytes.Buffer
	root.SetOut(&printed)
	root.SetErr(&printed)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return printed.String(), err
}

// harness runs the program on the fixture's database.
type harness struct {
	*servicetest.Fixture
	t *testing.T
}

func newHarness(t *testing.T) harness {
	t.Helper()
	f := servicetest.New(t)
	t.Setenv("DATABASE_URL", f.Pool.Config().ConnString())
	t.Setenv("TOKEN_SIGNING_KEYS", servicetest.TokenKeys)
	t.Setenv("SECRET_SEALING_KEYS", servicetest.SealingKeys)
	return harness{f, t}
}

// run runs the program with the arguments and returns what it prints.
func (h harness) run(args ...string) (string, error) {
	h.t.Helper()
	return run(h.t, args...)
}

// reject runs commands that fail. Each error contains the text that it is listed with, and nothing but
// usage is printed.
func (h harness) reject(saying map[string]string) {
	h.t.Helper()
	for line, want := range saying {
		out, err := h.run(words(line)...)
		if err == nil || !strings.Contains(err.Error(), want) || printed(out) {
			h.t.Errorf("millwright %s prints %q and says %v, want %s", line, out, err, want)
		}
	}
}

// json runs a command with --json; the command must succeed.
func (h harness) json(args ...string) any {
	h.t.Helper()
	out, err := h.run(append(args, "--json")...)
	if err != nil {
		h.t.Fatalf("%v: %v", args, err)
	}
	var value any
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		h.t.Fatalf("%v: %v in %s", args, err, out)
	}
	return value
}

// lastLog returns the newest Log Record of the record: who did what.
func (h harness) lastLog(id string) string {
	return servicetest.Value[string](h.Fixture, `SELECT actor_name || ' ' || action FROM log_records WHERE record_id = $1 ORDER BY id DESC LIMIT 1`, id)
}

// status returns the status of a row of work_orders or feedback.
func (h harness) status(table, id string) string {
	return servicetest.Value[string](h.Fixture, `SELECT status FROM `+table+` WHERE id = $1`, id)
}

// inReview creates a work order that waits for cat's review.
func (h harness) inReview() string {
	h.t.Helper()
	erp := h.Actor("erp")
	created, err := h.Records.CreateWorkOrder(h.t.Context(), erp, store.NoKey, records.NewWorkOrder{
		InventoryID: h.ID("ahu1"), Title: "Replace\tfilter", Assignees: []string{h.ID("erp")}, Consultants: []string{h.ID("cat")},
	})
	if err == nil {
		_, err = h.Records.AnswerWorkOrder(h.t.Context(), erp, store.NoKey, created.RecordID, nil, records.CompleteWork)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return created.RecordID
}

// setRequired sets the settings that every command needs.
func setRequired(t *testing.T) {
	t.Helper()
	t.Setenv("DATABASE_URL", "postgres://mill@db/mill")
	t.Setenv("TOKEN_SIGNING_KEYS", "t1:one")
	t.Setenv("SECRET_SEALING_KEYS", "s1:two")
}

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
