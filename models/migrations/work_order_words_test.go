package migrations_test

import (
	"fmt"
	"testing"
)

// wantWords checks that each work order has its words, and nothing else has any.
func wantWords(h *harness, want int) {
	h.t.Helper()
	wantDerived(h, "work_order_words", `id, words`,
		`SELECT id, array_to_tsvector(search_words(organization_id, number || ' ' || title || ' ' || coalesce(external_id, ''))) AS words FROM work_orders`, want)
}

// However work orders are written, their words follow.
func TestWordsOfWorkOrdersAreKept(t *testing.T) {
	h := newHarness(t)
	h.exec(fmt.Sprintf(insertWorkOrders, 1, 2500))
	write := func(first int) {
		h.exec(
			fmt.Sprintf(insertWorkOrders, first, first),
			fmt.Sprintf(`UPDATE work_orders SET title = 'Replace both filters' WHERE number %% 100 = %d`, first%100),
			fmt.Sprintf(`UPDATE work_orders SET external_id = 'ERP-%d' WHERE number %% 500 = %d`, first, first%500),
			fmt.Sprintf(`UPDATE work_orders SET status = 'in_progress' WHERE number %% 1000 = %d`, first%1000),
			`BEGIN`, // twice in one transaction
			fmt.Sprintf(`UPDATE work_orders SET title = 'x' WHERE number %% 1000 = %d`, first%1000),
			fmt.Sprintf(`UPDATE work_orders SET title = 'y', external_id = NULL WHERE number %% 1000 = %d`, first%1000),
			`COMMIT`, `BEGIN`,
			fmt.Sprintf(`UPDATE work_orders SET title = 'never' WHERE number %% 1000 = %d`, first%1000),
			`ROLLBACK`,
			fmt.Sprintf(`DELETE FROM work_orders WHERE id = 'wo_' || lpad('%d', 26, '0')`, first-2500),
		)
	}
	for n := 2501; n <= 2600; n++ {
		write(n)
	}
	wantWords(h, 2500)
	h.exec(`DELETE FROM work_orders WHERE number > 2400`)
	wantWords(h, value[int](h, `SELECT count(*) FROM work_orders`))
}

// Only spaces and ASCII punctuation divide words, and each begins with the end of its organization's id.
func TestSearchWords(t *testing.T) {
	h := newHarness(t)
	for text, want := range map[string]string{
		"Replace (AHU-12)":            "{xreplace,xahu,x12}",
		"#17 ERP_7/3 o'clock a\\b":    "{x17,xerp,x7,x3,xo,xclock,xa,xb}",
		"Ölwechsel Łódź 水 x\u00a0y\t": "{xÖlwechsel,xŁódź,x水,xx,xy}",
		" ?! ":                        "{}",
		"":                            "{}",
	} {
		got := value[string](h, `SELECT replace(search_words($1, $2)::text, '0000000001', 'x')`, organization, text)
		if lower := value[string](h, `SELECT lower($1::text)`, want); got != want && got != lower {
			t.Errorf("the words of %q are %s, want %s", text, got, want)
		}
	}
}

// A change of a work order's status or people leaves its words alone.
func TestOtherChangesLeaveWordsAlone(t *testing.T) {
	h := newHarness(t)
	h.exec(fmt.Sprintf(insertWorkOrders, 1, 1))
	before := value[string](h, `SELECT xmin::text || ctid::text FROM work_order_words`)
	h.exec(`UPDATE work_orders SET status = 'in_progress', title = title, external_id = external_id, changed_at = now()`)
	if after := value[string](h, `SELECT xmin::text || ctid::text FROM work_order_words`); after != before {
		t.Errorf("a change of the status wrote the words again: %s, before %s", after, before)
	}
	h.exec(`UPDATE work_orders SET title = 'Check the pump'`)
	wantWords(h, 1)
}
