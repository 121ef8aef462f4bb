package main

import (
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
)

// The demo has a week of work: work orders in every status, overdue and due, one that a service
// company has not given to anyone, and open feedback. Nothing is done later than now.
func TestDemoHasAWeekOfWork(t *testing.T) {
	h := newHarness(t)
	t.Setenv("WEBHOOK_ALLOW_HTTP", "true")
	t.Setenv("WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8")
	out, err := h.run("demo", "../../demo/week.yaml", "../../demo/service-company.yaml", "../../demo/campus.yaml")
	if err != nil || !strings.HasSuffix(out, " steps\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	const northfield = `organization_id = (SELECT organization_id FROM work_orders WHERE title = 'Check the fan belt')`
	got := servicetest.Value[[]string](h.Fixture, `SELECT array_agg(DISTINCT status) FROM work_orders WHERE `+northfield)
	for _, status := range models.WorkOrderStatuses {
		if !slices.Contains(got, string(status)) {
			t.Errorf("no work order is %s", status)
		}
	}
	for what, sql := range map[string]string{
		"overdue":             `SELECT count(*) FROM work_orders WHERE status NOT IN ('complete', 'cancelled') AND target_date < now() AND ` + northfield,
		"due within two days": `SELECT count(*) FROM work_orders WHERE status = 'open' AND target_date BETWEEN now() AND now() + interval '2 days' AND ` + northfield,
		"incoming": `SELECT count(*) FROM work_orders w WHERE status = 'open' AND ` + northfield + `
			AND NOT EXISTS (SELECT FROM work_order_assignees x JOIN identities i ON i.id = x.identity_id WHERE x.work_order_id = w.id AND i.kind <> 'organization')`,
		"open feedback": `SELECT count(*) FROM feedback WHERE resolved_at IS NULL`,
	} {
		if n := servicetest.Value[int](h.Fixture, sql); n == 0 {
			t.Errorf("nothing is %s", what)
		}
	}
	if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM work_orders WHERE changed_at > now()`); n > 0 {
		t.Errorf("%d work orders changed later than now", n)
	}
}
