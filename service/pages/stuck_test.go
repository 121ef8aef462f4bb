package pages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/pages"
	"millwright/service/servicetest"
)

// An organization sees only its own stuck work, an operator sees all.
func TestStuck(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`DELETE FROM dirty_records`)
	stuck := func(found pages.Stuck, err error) string {
		t.Helper()
		if err != nil {
			return string(models.CodeOf(err))
		}
		var all []string
		for _, a := range found.Addresses {
			all = append(all, fmt.Sprintf("%s on %t failed %d retrying %d held %d pending %d", a.WebhookID, a.Enabled, a.Failed, a.Retrying, a.Held, a.Pending))
		}
		for _, r := range found.Records {
			all = append(all, r.RecordID+" of "+r.OrganizationID)
		}
		for _, m := range found.Mail {
			all = append(all, m.PersonID+" "+m.Kind)
		}
		return s.WithKeys(strings.Join(all, ", "))
	}
	expect := func(what, ann, operator string) {
		t.Helper()
		servicetest.Expect(t, what+", ann", stuck(s.Pages.StuckForPerson(t.Context(), s.As("ann"))), ann)
		servicetest.Expect(t, what+", an operator", stuck(s.Pages.Stuck(t.Context(), "")), operator)
		servicetest.Expect(t, what+", bob", stuck(s.Pages.StuckForPerson(t.Context(), s.As("bob"))), "permission_denied")
		servicetest.Expect(t, what+", another organization", stuck(s.Pages.Stuck(t.Context(), s.ID("polar"))), "")
	}
	expect("at first", "", "")
	id := s.NewWorkOrder([]string{"bob"}, nil)
	expect("deliveries and a workflow that began just now", "", "")
	s.Clock.Advance(2 * time.Minute)
	s.Exec(`DELETE FROM dirty_records WHERE record_id <> $1`, id)
	s.Exec(`DELETE FROM open_deliveries WHERE webhook_id <> $1`, s.ID("erp_hook"))
	s.Exec(`UPDATE notices SET mail = 'waiting', mail_attempts = 1, mail_error = 'refused' WHERE person_id = $1`, s.ID("bob"))
	s.PlantDeliveries("erp_hook", id, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 2, s.Clock.Now().Add(-time.Hour))
	all := "erp_hook on true failed 2 retrying 0 held 0 pending 1, " + id + " of acme, bob notices"
	expect("later", all, all)
	s.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'maintenance' WHERE id = $1`, s.ID("erp_hook"))
	off := strings.Replace(all, "on true failed 2 retrying 0 held 0 pending 1", "on false failed 2 retrying 0 held 1 pending 0", 1)
	expect("off", off, off)
}
