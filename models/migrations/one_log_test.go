package migrations_test

import (
	"fmt"
	"testing"
)

// What programs of the earlier version insert for a change.
const (
	insertHistory = `
		INSERT INTO history (organization_id, record_id, actor_id, action, changes, created_at)
		SELECT u.organization_id, u.record_id, u.actor_id, u.action, u.changes::jsonb, now()
		FROM unnest(ARRAY['%[1]s'], ARRAY['%[3]s'], ARRAY['%[2]s'], ARRAY['%[4]s'], ARRAY['{"title": {"to": "%[4]s"}}'])
		WITH ORDINALITY u (organization_id, record_id, actor_id, action, changes, nth) ORDER BY u.nth`
	insertLogRecord = `
		INSERT INTO log_records (organization_id, actor_id, actor_name, action, record_id, created_at)
		VALUES ('%[1]s', %[2]s, 'Ann', '%[4]s', '%[3]s', now()) RETURNING id`
)

func (h *harness) changeAsEarlier(record, action string) {
	h.t.Helper()
	h.exec(`BEGIN`,
		fmt.Sprintf(insertHistory, organization, person, record, action),
		fmt.Sprintf(insertLogRecord, organization, "'"+person+"'", record, action), `COMMIT`)
}

// logAsEarlier logs what an operator did, which changes no record.
func (h *harness) logAsEarlier(record, action string) {
	h.t.Helper()
	h.exec(fmt.Sprintf(insertLogRecord, organization, "NULL", record, action))
}

// read returns the histories of the two records and the organization's Log Records,
// each in its order.
func (h *harness) read() (first, second, records string) {
	h.t.Helper()
	const history = `SELECT coalesce(string_agg(concat_ws(' ', organization_id, actor_id, action, changes, created_at), E'\n' ORDER BY id), '')
		FROM history WHERE record_id = $1`
	return value[string](h, history, "wo_1"), value[string](h, history, "wo_2"), value[string](h, `
		SELECT coalesce(string_agg(concat_ws(' ', record_id, actor_id, actor_name, action, created_at), E'\n' ORDER BY id), '')
		FROM log_records WHERE organization_id = $1`, organization)
}

func TestHistoryAndLogRecordsMoveIntoOneTable(t *testing.T) {
	for _, test := range []struct {
		name string
		// more are Log Records besides those of the changes.
		changes, more int
	}{
		{"without rows", 0, 0},
		{"without history", 0, 3},
		{"with more Log Records than a batch", 50, 12_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t, 23)
			wrote := 0
			change := func(times int) {
				for range times {
					wrote++
					h.changeAsEarlier(fmt.Sprintf("wo_%d", 1+wrote%2), fmt.Sprintf("action %d", wrote))
					h.logAsEarlier("whk_1", fmt.Sprintf("action %d of an operator", wrote))
				}
			}
			unchanged := func(when string, before [3]string) {
				t.Helper()
				first, second, records := h.read()
				if [3]string{first, second, records} != before {
					t.Errorf("%s the history or the Log Records differ", when)
				}
			}
			now := func() [3]string {
				first, second, records := h.read()
				return [3]string{first, second, records}
			}
			change(test.changes)
			h.exec(fmt.Sprintf(`INSERT INTO log_records (organization_id, actor_name, action, record_id, created_at)
				SELECT '%s', 'Millwright', 'more ' || n, 'whk_2', now() FROM generate_series(1, %d) n`, organization, test.more))
			change(test.changes)
			before := now()
			h.upTo(24)
			h.upTo(25)
			unchanged("after the migration", before)
			change(3)
			before = now()
			if before[0] == "" || before[1] == "" {
				t.Error("changes by the earlier program are not in the history")
			}
			h.again(25)
			unchanged("after another run", before)
			if tables := value[int](h, `SELECT count(*) FROM pg_class WHERE relname = 'old_log_records'`); tables != 0 {
				t.Error("the former table is still there")
			}
			if indexes := value[string](h, `SELECT string_agg(regexp_replace(indexdef, '.*btree ', ''), ', ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'log'`); indexes != "(record_id, id), (organization_id, id)" {
				t.Errorf("the log has the indexes %s", indexes)
			}
		})
	}
}

// Between the two migrations, and if the second one is interrupted, programs write on.
func TestTheEarlierProgramWritesWhileTheLogIsMoved(t *testing.T) {
	h := newHarness(t, 23)
	h.changeAsEarlier("wo_1", "first")
	h.logAsEarlier("whk_1", "second")
	h.upTo(24)
	h.changeAsEarlier("wo_1", "third")
	h.logAsEarlier("whk_1", "fourth")
	h.upTo(25)
	h.changeAsEarlier("wo_1", "fifth")
	if actions := value[string](h, `SELECT string_agg(action, ' ' ORDER BY id) FROM history`); actions != "first third fifth" {
		t.Errorf("the history is %s", actions)
	}
	if actions := value[string](h, `SELECT string_agg(action, ' ' ORDER BY id) FROM log_records`); actions != "first second third fourth fifth" {
		t.Errorf("the Log Records are %s", actions)
	}
}
