package upkeep_test

import (
	"slices"
	"strings"
	"testing"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// addOrganizations adds organizations with records of all statuses.
func addOrganizations(f *servicetest.Fixture, organizations, orders, feedback int) {
	for _, table := range []string{"organizations", "work_orders", "feedback"} {
		f.Exec(`DO $$ DECLARE c name; BEGIN
			FOR c IN SELECT conname FROM pg_constraint WHERE conrelid = '` + table + `'::regclass AND contype = 'f' LOOP
				EXECUTE 'ALTER TABLE ` + table + ` DROP CONSTRAINT ' || quote_ident(c);
			END LOOP; END $$`)
	}
	f.Exec(`INSERT INTO organizations (id, key, created_at) SELECT 'idn_' || n, n, now() FROM generate_series(1, $1::int) n`, organizations)
	f.Plant(`INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at, cancelled_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), 'idn_' || n % $1::int / 2 + 1, n, 'n', 'x', 'none', s, 'p', now(), now(),
			CASE s WHEN 'complete' THEN now() END, CASE s WHEN 'cancelled' THEN now() END
		FROM generate_series(1, $2::int) n CROSS JOIN LATERAL (SELECT (ARRAY['open', 'in_progress', 'sent_to_inspection',
			'back_from_inspection', 'complete', 'cancelled', 'on_hold'])[n % 7 + 1] AS s) x`, organizations, orders)
	f.Plant(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at, resolved_at)
		SELECT 'iss_' || lpad(n::text, 26, '0'), 'idn_' || n % $1::int / 2 + 1, 'n', 'x', CASE n % 2 WHEN 0 THEN 'open' ELSE 'resolved' END, 'p', now(), now(),
			CASE n % 2 WHEN 1 THEN now() END
		FROM generate_series(1, $2::int) n`, organizations, feedback)
}

// Pages of open records have each once, in one order, whatever their organizations and
// statuses.
func TestOpenRecordsAreRead(t *testing.T) {
	f := servicetest.New(t)
	addOrganizations(f, 30, 700, 200)
	for kind, condition := range map[store.TargetKind]string{
		store.TargetWorkOrder: `work_orders WHERE status NOT IN ('complete', 'cancelled')`,
		store.TargetFeedback:  `feedback WHERE status <> 'resolved'`,
	} {
		want := strings.Fields(servicetest.Value[string](f, `SELECT string_agg(organization_id || '/' || id, ' ' ORDER BY organization_id, id) FROM `+condition))
		for _, limit := range []int{7, len(want), 1000} {
			var got []string
			for after := (store.WakeTarget{Kind: kind}); ; {
				page, err := f.Upkeep.OpenRecords(t.Context(), after, limit)
				servicetest.Must(t, err)
				for _, target := range page {
					if target.Kind != kind || !target.Swept {
						t.Fatalf("a page has %+v", target)
					}
					got = append(got, target.OrganizationID+"/"+target.ID)
				}
				if len(page) < limit {
					break
				}
				after = page[len(page)-1].WakeTarget
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d have %d of kind %s, want %d in order", limit, len(got), kind, len(want))
			}
		}
	}
}

// A page planned while the tables were empty reads little more than it returns once they
// are large, wherever it begins.
func TestOpenRecordsKeepRightPlans(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`VACUUM ANALYZE`)
	reads := map[string]servicetest.BoundedRead{}
	for _, after := range []store.WakeTarget{
		{}, {OrganizationID: "idn_500", ID: "wo_" + strings.Repeat("0", 21) + "05000"}, {OrganizationID: "idn_999", ID: "x"},
	} {
		for _, kind := range []store.TargetKind{store.TargetWorkOrder, store.TargetFeedback} {
			after.Kind = kind
			reads[string(kind)+" after "+after.OrganizationID] = servicetest.BoundedRead{Tables: []string{"work_orders", "feedback"}, Most: 200, Pages: 40, Do: func() error {
				return servicetest.ErrorOf(f.Upkeep.OpenRecords(t.Context(), after, 20))
			}}
		}
	}
	servicetest.WantBounded(t, f, reads, func() { addOrganizations(f, 2000, 10_000, 10_000) })
}
