package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
)

// A work order page shows those who manage integrations which of them see it, why, and what each
// was sent last, which they can send again.
func TestIntegrationsOfAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.BrowserWithoutScripts(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusServiceUnavailable, ""))
	b.SignIn("ann", "/console/work-orders/"+record)
	b.Press("Integrations that see it")
	b.WantText("ERP", "work_order.created", "503 Service Unavailable", "It has no webhook address.", "Does not see it.")
	b.Press("Redeliver to ERP")
	b.WantPath("/console/work-orders/" + record)
	b.WantText("Redelivered", "Replace filter")
	if n := dispatch(t, s, "erp_hook", responding(http.StatusOK, "")); n != 1 {
		t.Errorf("%d deliveries are sent", n)
	}
}

func TestWhoSeesTheIntegrationsOfAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	page := "/console/work-orders/" + record
	ann := s.SignedIn("ann")
	ann.Get(page+"/integrations").Want(http.StatusOK,
		"It has the scope work_orders:read.", "It has no permission on the place or above", `name="back" value="`+page+`"`)
	s.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'Gone' WHERE id = $1`, s.ID("erp_hook"))
	wantNot(t, ann.Get(page+"/integrations").Want(http.StatusOK, "200 OK"), "/deliveries/"+servicetest.Value[string](s.Fixture, `SELECT id FROM deliveries WHERE webhook_id = $1`, s.ID("erp_hook"))+"/redeliver")

	// It takes the permission, which is not enough to learn of a record.
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'worker', 9)`, record, s.ID("bob"))
	wantNot(t, s.SignedIn("bob").Get(page).Want(http.StatusOK), page+"/integrations")
	s.SignedIn("bob").Get(page + "/integrations").Want(http.StatusForbidden)
	grant(s, "zed", string(models.GrantIntegrations))
	s.SignedIn("zed").Get(page + "/integrations").Want(http.StatusNotFound)
}
