package api_test

import (
	"net/http"
	"testing"

	"millwright/service/servicetest"
)

// BenchmarkSlowReads measures, like BenchmarkCalls, the reads whose time grows with what
// they return: pages of 200 changes on 400 nodes, and a form of 500 questions with 10
// options each.
func BenchmarkSlowReads(b *testing.B) {
	s := newBenchServer(b)
	form := s.plantSlowReads()
	for _, read := range []struct{ name, path string }{
		{"page", "/work-orders?limit=200&changed_since=2020-01-01T00:00:00Z"},
		{"newest", "/work-orders?limit=200"},
		{"form", "/forms/" + form},
	} {
		b.Run(read.name, func(b *testing.B) {
			s.measure(b, http.StatusOK, func(int) *http.Request { return s.request(http.MethodGet, read.path, "") })
		})
	}
}

// plantSlowReads moves the work orders to 400 pieces of equipment, two levels below the
// top, and inserts the form, whose id it returns.
func (s *benchServer) plantSlowReads() (form string) {
	const id = `lpad(n::text, 26, '0')`
	organization := servicetest.Value[string](s.Fixture, `SELECT organization_id FROM inventory_nodes WHERE id = $1`, s.node)
	s.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'sys_' || `+id+`, $1, 'system', $2, 'Air handling ' || n, now(), now() FROM generate_series(1, 20) n`, organization, s.node)
	s.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
		SELECT 'eqp_' || `+id+`, $1, 'equipment', 'sys_' || lpad((n % 20 + 1)::text, 26, '0'), 'Unit ' || n, 'AHU-' || n, now(), now()
		FROM generate_series(1, 400) n`, organization)
	s.Exec(`UPDATE work_orders SET inventory_id = 'eqp_' || lpad((number * 7 % 400 + 1)::text, 26, '0') WHERE organization_id = $1`, organization)
	s.Exec(`UPDATE work_order_assignees SET identity_id = $1`, s.ID("ann")) // the caller finds them by their nodes
	form = "frm_00000000000000000000000001"
	s.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at) VALUES ($1, $2, 'Yearly inspection', now(), now())`, form, organization)
	s.Exec(`INSERT INTO questions (id, form_id, position, label, type, required)
		SELECT 'qst_' || `+id+`, $1, n, 'Which state has part ' || n || '?', 'single_choice', true FROM generate_series(1, 500) n`, form)
	s.Exec(`INSERT INTO question_options (id, question_id, position, label)
		SELECT 'opt_' || lpad((n * 10 + o)::text, 26, '0'), 'qst_' || ` + id + `, o, 'State ' || o FROM generate_series(1, 500) n, generate_series(0, 9) o`)
	s.Exec(`VACUUM ANALYZE`)
	return form
}
