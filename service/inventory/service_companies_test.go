package inventory_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The end of the relation ends all access at once, closed work orders included. Housekeeping then
// gives the open ones to the default workers, or without any to the administrator.
func TestEndOfAServiceCompany(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx := t.Context()
	open, closed := s.NewWorkOrder([]string{"polar"}, []string{"cat"}), s.NewWorkOrder([]string{"polar"}, nil)
	s.MustWrite(s.Records.AssignWorkOrder(ctx, s.As("pia"), store.NoKey, open, s.IDs("ola"), nil))
	s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = now() WHERE id = $1`, closed)
	reviewed := s.NewWorkOrder([]string{"erp"}, []string{"polar"})
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection', held_from = NULL WHERE id = $1`, reviewed)

	if _, err := s.Inventory.ServiceCompanies(ctx, s.As("bob")); models.CodeOf(err) != models.CodePermissionDenied {
		t.Errorf("a person who is no administrator: %v", err)
	}
	companies, err := s.Inventory.ServiceCompanies(ctx, s.As("ann"))
	if err != nil || len(companies) != 1 || companies[0].ID != s.ID("polar") || companies[0].Nodes == 0 || companies[0].WorkOrders != 2 {
		t.Fatalf("the companies are %+v: %v", companies, err)
	}
	company, err := s.Inventory.ServiceCompany(ctx, s.As("ann"), s.ID("polar"))
	if err != nil || len(company.Listed) != 2 {
		t.Errorf("the company is %+v: %v", company, err)
	}
	// An administrator sees those work orders only that she may read.
	s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("zed"))
	if company, err := s.Inventory.ServiceCompany(ctx, s.As("zed"), s.ID("polar")); err != nil || company.WorkOrders != 2 || len(company.Listed) != 0 {
		t.Errorf("the company for an administrator who reads no work orders is %+v: %v", company, err)
	}
	s.Exec(`UPDATE people SET admin = false WHERE id = $1`, s.ID("zed"))
	for by, want := range map[string]string{"bob": "permission_denied", "pia": "not_found"} {
		servicetest.Expect(t, by+" ends it", servicetest.Outcome(s.Inventory.EndServiceCompany(ctx, s.As(by), store.NoKey, s.ID("polar"))), want)
	}
	reads := func(by string) string {
		s.WaitForOpenTransactions()
		listed, err := s.Records.WorkOrders(ctx, s.As(by), records.WorkOrderFilter{}, lists.ListRequest{Limit: 50})
		servicetest.Must(t, err)
		changes, err := s.Records.WorkOrders(ctx, s.As(by), records.WorkOrderFilter{}, lists.ListRequest{Limit: 50, ChangedSince: "2020-01-01T00:00:00Z"})
		servicetest.Must(t, err)
		var found []string
		for name, id := range map[string]string{"open": open, "closed": closed, "reviewed": reviewed} {
			_, err := s.Records.WorkOrder(ctx, s.As(by), id)
			if err == nil {
				found = append(found, name)
			}
			if strings.Contains(string(listed), id) != (err == nil) || strings.Contains(string(changes), id) != (err == nil) {
				t.Errorf("%s: the lists differ from the single read of %s", by, name)
			}
		}
		if s.As(by).Kind == models.KindPerson {
			search, err := s.Records.SearchWorkOrders(ctx, s.As(by), records.WorkOrderSearch{}, "", 10)
			if err != nil || len(search.Items) != len(found) {
				t.Errorf("%s finds %d and reads %d: %v", by, len(search.Items), len(found), err)
			}
		}
		slices.Sort(found)
		return strings.Join(found, " ")
	}
	beta, err := s.Imports.Run(ctx, []byte(`
organization: {key: beta, name: Beta, plan: {name: Basic, calls_per_minute: 100, integrations: 1}}
service_companies: [{key: polar}]
permission_definitions: [{key: beta_readers, name: Readers, grants: [work_orders.read]}]
inventory: [{key: beta_hall, kind: location, name: Hall}]
assignments: [{node: beta_hall, identity: polar, definition: beta_readers}]
`))
	servicetest.Must(t, err)
	servicetest.Expect(t, "the company's program before", reads("dispatch"), "closed open reviewed")
	servicetest.Expect(t, "its dispatcher before", reads("pia"), "closed open reviewed")
	epoch := servicetest.Value[int](s.Fixture, `SELECT access_epoch FROM integrations WHERE id = $1`, s.ID("dispatch"))

	servicetest.Expect(t, "the administrator ends it", servicetest.Outcome(s.Inventory.EndServiceCompany(ctx, s.As("ann"), store.NoKey, s.ID("polar"))), "ok")
	servicetest.Expect(t, "once more", servicetest.Outcome(s.Inventory.EndServiceCompany(ctx, s.As("ann"), store.NoKey, s.ID("polar"))), "not_found")
	for _, by := range []string{"dispatch", "pia", "ola"} {
		servicetest.Expect(t, by+" after", reads(by), "")
	}
	servicetest.Expect(t, "a change of the company", servicetest.Outcome(servicetest.ErrorOf(s.Records.AssignWorkOrder(ctx, s.As("pia"), store.NoKey, open, s.IDs("stock"), nil))), "not_found")
	if now := servicetest.Value[int](s.Fixture, `SELECT access_epoch FROM integrations WHERE id = $1`, s.ID("dispatch")); now <= epoch {
		t.Errorf("the sync tokens of the company hold: epoch %d, then %d", epoch, now)
	}
	servicetest.Expect(t, "its nodes", servicetest.Value[string](s.Fixture, `SELECT count(*)::text FROM assignments WHERE identity_id = $1 AND organization_id = $2`, s.ID("polar"), s.Acme.OrganizationID), "0")

	servicetest.Expect(t, "its nodes at another customer", servicetest.Value[int](s.Fixture, `SELECT count(*) FROM assignments WHERE identity_id = $1 AND organization_id = $2`, s.ID("polar"), beta.OrganizationID), 1)

	s.ClearEffects(open)
	s.Clock.Advance(time.Minute)
	servicetest.Remove(t, s.Service, 7, 0)
	servicetest.Expect(t, "the open one", s.RolesOf(open), "ann | cat")
	servicetest.Expect(t, "the one in review", s.RolesOf(reviewed), "erp | ann")
	servicetest.Expect(t, "the closed one", s.RolesOf(closed), "polar | ")
	servicetest.Expect(t, "the notices", s.NoticesOf(open), "ola unassigned, pia unassigned")
	servicetest.Expect(t, "left to do", servicetest.Value[string](s.Fixture, `SELECT count(*)::text FROM ended_relations WHERE reached IS NOT NULL`), "0")

	servicetest.Must(t, servicetest.ErrorOf(s.Imports.Overwrite(ctx, []byte("organization: {key: acme}\nservice_companies: [{key: polar}]\n"))))
	servicetest.Expect(t, "after the relation began again", reads("dispatch"), "closed")
}
