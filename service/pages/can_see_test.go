package pages_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/pages"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// seen writes an answer in a line, with everything that is met or missing.
func seen(v pages.Visibility) string {
	parts := []string{fmt.Sprint("visible ", v.Visible)}
	if !v.ScopeHeld {
		parts = append(parts, "lacks "+string(v.Scope))
	}
	if !v.Usable {
		parts = append(parts, "not usable")
	}
	for _, w := range v.Ways {
		if w.Met {
			parts = append(parts, "by "+string(w.Kind))
		} else if !v.Permitted {
			parts = append(parts, string(w.Kind)+" lacks "+string(w.Missing))
		}
	}
	return strings.Join(parts, ", ")
}

// What an integration can see is answered as its reads would, with the missing part named.
func TestWhatAnIntegrationCanSee(t *testing.T) {
	f := servicetest.New(t)
	ctx := t.Context()
	workOrder := func(by, node string, assignees ...string) string {
		t.Helper()
		in := records.NewWorkOrder{InventoryID: f.ID(node), Title: "Replace filter"}
		for _, key := range assignees {
			in.Assignees = append(in.Assignees, f.ID(key))
		}
		return createdBy(t, f, by, in)
	}
	atUnit := workOrder("erp", "ahu1", "erp")
	own := workOrder("creator", "ahu1", "creator")
	forPolar := workOrder("erp", "ahu1", "polar")
	atRoof := workOrder("erp", "mast", "erp")
	feedback := servicetest.Value[string](f, `INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at)
		VALUES ('iss_01kjq7k69re00b2a00av14smbj', $1, $2, 'It rattles', 'open', $3, now(), now()) RETURNING id`, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"))
	event := servicetest.Value[string](f, `SELECT id FROM events WHERE record_id = $1 AND type = 'work_order.created'`, atUnit)
	delivery := servicetest.Value[string](f, `SELECT id FROM open_deliveries WHERE event_id = $1 AND webhook_id = $2`, event, f.ID("erp_hook"))

	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("zed")) // who reads no work orders
	ann, bob, pia, zed := servicetest.Person(t, f, "ann"), servicetest.Person(t, f, "bob"), servicetest.Person(t, f, "pia"), servicetest.Person(t, f, "zed")
	for _, c := range []struct {
		who, record, want string
		actor             store.Actor
	}{
		{"erp", atUnit, "visible true, by node, by created, by assigned", ann},
		{"reader", atUnit, "visible true, by node", ann},
		{"reader", atRoof, "visible false, node lacks assignment, created lacks creator, assigned lacks worker", ann},
		{"roofer", atRoof, "visible false, node lacks below, created lacks creator, assigned lacks worker", ann},
		{"creator", atUnit, "visible false, node lacks grant, created lacks creator, assigned lacks worker", ann},
		{"creator", own, "visible true, by created, by assigned", ann},
		{"outsider", atUnit, "visible false, node lacks assignment, created lacks creator, assigned lacks worker", ann},
		{"reader", event, "visible true, by node", ann},
		{"outsider", delivery, "visible false, node lacks assignment, created lacks creator, assigned lacks worker", ann},
		{"erp", feedback, "visible true, by node", ann},
		{"reader", feedback, "visible false, lacks issues:read, node lacks grant", ann},
		{"reader", f.ID("ahu1"), "visible false, lacks inventory:read, by node", ann},
		{"outsider", f.ID("hq"), "visible false, node lacks assignment", ann},
		{"erp", f.ID("inspection"), "visible true", ann},
		{"reader", f.ID("inspection"), "visible false, lacks forms:read", ann},
		{"reader", f.ID("crew"), "visible false, lacks people:read", ann},
		{"erp", f.ID("bob"), "visible true", ann},
		{"dispatch", forPolar, "visible true, by assigned", pia},
		{"back_office", forPolar, "visible false, node lacks other_owner, created lacks creator, assigned lacks incoming", pia},
	} {
		got, err := f.Pages.CanSee(ctx, c.actor, f.ID(c.who), c.record)
		if err != nil {
			t.Errorf("%s and %s: %v", c.who, c.record, err)
			continue
		}
		if seen(got) != c.want {
			t.Errorf("%s and %s: %s, want %s", c.who, c.record, seen(got), c.want)
		}
		if models.IsID(c.record, models.PrefixWorkOrder) {
			_, err := f.Records.WorkOrder(ctx, f.Actor(c.who), c.record)
			if readable := err == nil; readable != got.Permitted {
				t.Errorf("%s and %s: permitted %v, read %v", c.who, c.record, got.Permitted, err)
			}
		}
	}
	t.Run("for all integrations at once", func(t *testing.T) {
		for record, by := range map[string]store.Actor{atUnit: ann, atRoof: ann, own: ann, feedback: ann, forPolar: pia} {
			sights, err := f.Pages.WhoSees(ctx, by, record)
			if err != nil || len(sights) < 2 || !slices.IsSortedFunc(sights, func(a, b pages.IntegrationSight) int { return strings.Compare(a.Integration, b.Integration) }) {
				t.Errorf("%s: %d integrations (%v)", record, len(sights), err)
			}
			for _, sight := range sights {
				one, err := f.Pages.CanSee(ctx, by, sight.IntegrationID, record)
				if err == nil && !reflect.DeepEqual(one, sight.Visibility) {
					t.Errorf("%s and %s: %+v alone, %+v with others", sight.Integration, record, one, sight.Visibility)
				}
				if latest := record == atUnit && sight.Integration == "ERP"; latest && (sight.Latest == nil || sight.Latest.ID != delivery) {
					t.Errorf("the latest delivery to ERP is %+v, want %s", sight.Latest, delivery)
				}
				if sight.Latest != nil && (sight.Latest.RecordID != record || sight.Latest.IntegrationID != sight.IntegrationID) {
					t.Errorf("%s and %s: the latest delivery is %+v", sight.Integration, record, sight.Latest)
				}
			}
		}
		for name, c := range map[string]struct {
			by     store.Actor
			record string
			want   models.Code
		}{
			"not readable": {zed, atUnit, models.CodeNotFound}, "another organization's": {pia, atUnit, models.CodeNotFound},
			"unknown": {ann, "wo_01kjq7k69re00b2a00av14smbj", models.CodeNotFound}, "a node": {ann, f.ID("ahu1"), models.CodeNotFound},
			"no permission": {bob, atUnit, models.CodePermissionDenied},
		} {
			if _, err := f.Pages.WhoSees(ctx, c.by, c.record); models.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
	})
	t.Run("records of others are unknown", func(t *testing.T) {
		for _, c := range []struct {
			who, record string
			actor       store.Actor
		}{
			{"erp", f.ID("depot"), ann}, {"erp", f.ID("pia"), ann}, {"erp", f.Polar.OrganizationID, ann}, {"erp", f.ID("erp"), ann}, {"dispatch", atUnit, pia},
			{"dispatch", event, pia}, {"dispatch", delivery, pia}, {"dispatch", f.ID("inspection"), pia}, {"dispatch", feedback, pia}, {"dispatch", f.ID("ahu1"), pia},
			{"erp", "wo_01kjq7k69re00b2a00av14smbj", ann}, {"erp", "nonsense", ann}, {"erp", "", ann},
		} {
			if _, err := f.Pages.CanSee(ctx, c.actor, f.ID(c.who), c.record); models.CodeOf(err) != models.CodeValidationFailed {
				t.Errorf("%s and %s: %v", c.who, c.record, err)
			}
		}
	})
	t.Run("an integration that is off sees nothing", func(t *testing.T) {
		servicetest.Must(t, servicetest.ErrorOf(f.Integrations.TurnIntegrationOff(ctx, ann, store.NoKey, f.ID("erp"))))
		got, err := f.Pages.CanSee(ctx, ann, f.ID("erp"), atUnit)
		if want := "visible false, not usable, by node, by created, by assigned"; err != nil || seen(got) != want {
			t.Errorf("%s, want %s: %v", seen(got), want, err)
		}
	})
}

// CreatedBy returns the id of a work order that an integration creates.
func createdBy(t *testing.T, f *servicetest.Fixture, key string, in records.NewWorkOrder) string {
	t.Helper()
	created, err := f.Records.CreateWorkOrder(t.Context(), f.Actor(key), store.NoKey, in)
	servicetest.Must(t, err)
	return created.RecordID
}
