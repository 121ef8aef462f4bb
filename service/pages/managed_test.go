package pages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/pages"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// managedReads are the reads of integrations and addresses by their managers.
func managedReads(f *servicetest.Fixture) map[string]func(ctx context.Context, actor store.Actor, integration, address string) error {
	return map[string]func(ctx context.Context, actor store.Actor, integration, address string) error{
		"integration": func(ctx context.Context, a store.Actor, i, _ string) error {
			return servicetest.ErrorOf(f.Pages.ManagedIntegration(ctx, a, i))
		},
		"effects": func(ctx context.Context, a store.Actor, i, _ string) error {
			_, _, err := f.Pages.ManagedIntegrationEffects(ctx, a, i)
			return err
		},
		"access": func(ctx context.Context, a store.Actor, i, _ string) error {
			return servicetest.ErrorOf(f.Pages.CanSee(ctx, a, i, f.ID("ahu1")))
		},
		"webhook": func(ctx context.Context, a store.Actor, _, h string) error {
			return servicetest.ErrorOf(f.Webhooks.ManagedWebhook(ctx, a, h))
		},
		"missed": func(ctx context.Context, a store.Actor, _, h string) error {
			return servicetest.ErrorOf(f.Webhooks.CountMissed(ctx, a, h, models.Time{}))
		},
		"test": func(ctx context.Context, a store.Actor, _, h string) error {
			return servicetest.ErrorOf(f.Webhooks.BeginWebhookTest(ctx, a, store.NoKey, h))
		},
	}
}

func TestReadsOfManagersTakeThePermission(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	ctx := t.Context()
	ivy, ray, pia, erp := servicetest.Person(t, f, "ivy"), servicetest.Person(t, f, "ray"), servicetest.Person(t, f, "pia"), f.Actor("erp")
	for name, read := range managedReads(f) {
		for _, c := range []struct {
			who  string
			as   store.Actor
			want models.Code
		}{{"ivy", ivy, ""}, {"ray", ray, models.CodePermissionDenied}, {"erp", erp, models.CodePermissionDenied}, {"pia", pia, models.CodeNotFound}} {
			if err := read(ctx, c.as, f.ID("erp"), f.ID("erp_hook")); err == nil != (c.want == "") || err != nil && models.CodeOf(err) != c.want {
				t.Errorf("%s of %s: %v, want %s", name, c.who, err, c.want)
			}
		}
		for _, id := range []string{"", "x", "idn_01kjq7k69re00b2a00av14smbj", "whk_01kjq7k69re00b2a00av14smbj", f.ID("ann")} {
			if err := read(ctx, ivy, id, id); models.CodeOf(err) != models.CodeNotFound {
				t.Errorf("%s of %q: %v", name, id, err)
			}
		}
	}
	if list, err := f.Integrations.Managed(ctx, ivy); err != nil || len(list.Integrations) != 5 || list.Allowed != 10 {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := f.Integrations.Managed(ctx, ray); models.CodeOf(err) != models.CodePermissionDenied {
		t.Errorf("ray: %v", err)
	}
}

// The list shows the last call, the calls of this minute, and the addresses that fail.
func TestTheStateOfIntegrations(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	window := f.Clock.Now().Truncate(time.Minute)
	f.Exec(`INSERT INTO call_counts (subject, process, window_start, calls) VALUES ($1, 'one', $3, 5), ($1, 'two', $3, 2), ($1, 'three', $4, 1), ($2, 'one', $4, 9)`, f.ID("erp"), f.ID("reader"), window, window.Add(-2*time.Hour))
	f.Exec(`INSERT INTO webhook_health (webhook_id, failing_since) VALUES ($1, $2)`, f.ID("reader_hook"), window)
	servicetest.Must(t, servicetest.ErrorOf(f.Webhooks.DisableWebhook(ctx, ann, store.NoKey, f.ID("reader_updates"), "Moving house")))
	servicetest.Must(t, servicetest.ErrorOf(f.Upkeep.RemoveExpired(ctx, upkeep.RemovalBatch, func() bool { return true })))
	list, err := f.Integrations.Managed(ctx, ann)
	servicetest.Must(t, err)
	got := map[string]string{}
	for _, i := range list.Integrations {
		at := "never"
		if i.LastCallAt != nil {
			at = i.LastCallAt.Format(time.TimeOnly)
		}
		got[i.Name] = fmt.Sprintf("%s %d/%d, %d addresses, %d failing, %d off", at, i.Calls, i.Allowed, i.Addresses, i.Failing, i.Off)
	}
	for name, want := range map[string]string{
		"ERP":     "12:15:00 7/1000, 1 addresses, 0 failing, 0 off",
		"Reader":  "10:15:00 0/1000, 2 addresses, 1 failing, 1 off",
		"Creator": "never 0/1000, 0 addresses, 0 failing, 0 off",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	detail, err := f.Pages.ManagedIntegration(ctx, ann, f.ID("roofer"))
	if nodes := detail.Assigned.Nodes; err != nil || len(nodes) != 1 || nodes[0].Name != "Roof" || nodes[0].AppliesBelow || len(nodes[0].Path) != 1 || nodes[0].Path[0].Name != "Headquarters" {
		t.Errorf("%+v %v", nodes, err)
	}
	health, err := f.Webhooks.ManagedWebhook(ctx, ann, f.ID("reader_hook"))
	if err != nil || health.ShutOffAt == nil || health.Integration != "Reader" {
		t.Errorf("%+v %v", health, err)
	}
}

// The definition, name and scopes change in one write, each with its Log Record.
func TestAnIntegrationIsChangedInOneWrite(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	definition, name := f.ID("org_incoming"), "Renamed"
	changed, err := f.Integrations.ChangeIntegration(ctx, ann, store.NoKey, f.ID("reader"), integrations.Change{Name: &name, Scopes: []string{"people:read"}, DefinitionID: &definition})
	if err != nil || changed.Name != name || changed.OrganizationDefinitionID == nil || *changed.OrganizationDefinitionID != definition {
		t.Errorf("%+v %v", changed, err)
	}
	log := servicetest.LogOf(f, f.ID("reader"))
	for _, action := range []string{"integration.renamed", "integration.scopes_changed", "integration.definition_changed"} {
		if !strings.Contains(log, action) {
			t.Errorf("the log lacks %s: %s", action, log)
		}
	}
	none := ""
	if changed, err = f.Integrations.ChangeIntegration(ctx, ann, store.NoKey, f.ID("reader"), integrations.Change{DefinitionID: &none}); err != nil || changed.OrganizationDefinitionID != nil {
		t.Errorf("%+v %v", changed, err)
	}
	for _, unknown := range []string{"x", f.ID("full"), servicetest.Value[string](f, `SELECT id FROM organization_permission_definitions WHERE organization_id = $1`, f.Polar.OrganizationID)} {
		if _, err := f.Integrations.ChangeIntegration(ctx, ann, store.NoKey, f.ID("reader"), integrations.Change{DefinitionID: &unknown}); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("%s: %v", unknown, err)
		}
	}
}

// A test is logged, and the last one is shown with its address.
func TestTheLastTestOfAnAddressIsShown(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, id := t.Context(), servicetest.Person(t, f, "ann"), f.ID("erp_hook")
	for i, a := range []webhooks.Attempt{
		{StartedAt: models.TimeOf(f.Clock.Now()), Latency: 35 * time.Millisecond, Status: 204},
		{StartedAt: models.TimeOf(f.Clock.Now()), Latency: time.Second, Error: "No response came within 1 second."},
	} {
		want := store.WakeTarget{Kind: store.TargetWebhook, ID: id, OrganizationID: f.Acme.OrganizationID}
		for _, actor := range []store.Actor{store.Operator(), ann} {
			f.Clock.Advance(time.Second) // the last test is the latest
			test, err := f.Webhooks.BeginWebhookTest(ctx, actor, store.NoKey, id)
			if err != nil || test.Address != want {
				t.Fatalf("the test of %s is %+v, %v", actor.Name, test, err)
			}
			a.EventID = test.EventID
		}
		servicetest.Must(t, f.Webhooks.RecordTest(ctx, id, a))
		h, err := f.Webhooks.ManagedWebhook(ctx, ann, id)
		if err != nil || h.Test == nil || h.Test.EventID != a.EventID || h.Test.Failure != a.Error || h.Test.LatencyMS != a.Latency.Milliseconds() {
			t.Errorf("test %d is %+v %v", i, h.Test, err)
		}
	}
	if log := servicetest.LogOf(f, id); strings.Count(log, "Ann Field "+f.ID("ann")+" webhook.tested") != 2 || strings.Count(log, "Millwright webhook.tested") != 2 {
		t.Errorf("the log is %s", log)
	}
}

// The reads of managers follow indexes, with plans that were made for any values.
func TestReadsOfManagersUseIndexes(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	conn, exec := servicetest.Connection(t, f.Pool.Config().ConnString())
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series(1, 5000) n`,
		f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"))
	f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("erp"))
	f.Exec(`INSERT INTO call_counts SELECT 'address ' || n, 'one', now(), 1 FROM generate_series(1, 5000) n`)
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'loc_' || lpad(n::text, 26, '0'), $1, 'location', 'x', now(), now() FROM generate_series(1, 5000) n`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO assignments SELECT id, $1, $2, $3 FROM inventory_nodes WHERE name = 'x'`, f.ID("reader"), f.ID("reading"), f.Acme.OrganizationID)
	exec(`SET plan_cache_mode = 'force_generic_plan'; SET enable_seqscan = off`) // as store.IndexPlans does
	for name, sql := range pages.ManagerStatements {
		if _, err := conn.Prepare(t.Context(), strings.ReplaceAll(name, " ", "_"), sql); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var lines []string
		rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE `+strings.ReplaceAll(name, " ", "_")+`(`+pages.ManagerArguments[name]+`)`, pgx.QueryExecModeSimpleProtocol)
		if err == nil {
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if plan := strings.Join(lines, "\n"); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s reads a table from end to end:\n%s", name, plan)
		}
	}
}
