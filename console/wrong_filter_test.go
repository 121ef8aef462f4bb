package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
)

// A filter that is not understood stays in its list, with what was entered and the message at its field.
func TestAWrongFilterStaysOnItsPage(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann := s.SignedIn("ann")
	s.Exec(`UPDATE inventory_nodes SET external_id = 'AHU-1' WHERE id = $1`, s.ID("roof"))
	s.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'idn_' || lpad(n::text, 26, '0'), $1, 'team', 'Shift ' || n, now(), now() FROM generate_series(1, 30) n`, s.Acme.OrganizationID)
	hook := "/console/webhooks/" + s.ID("erp_hook") + "/deliveries"
	for _, c := range []struct{ page, query, field, message string }{
		{"/console/deliveries", "from=x", `value="x"><p class="problem" role="alert">A time is written`, "<h1>Deliveries"},
		{"/console/deliveries", "record=nothing", `<p class="problem" role="alert">Nothing that you may read has`, `value="nothing"`},
		{hook, "to=x", `value="x"><p class="problem" role="alert">A time is written`, "<h1>Deliveries"},
		{"/console/log", "from=x&who=Ann", `value="x"><p class="problem" role="alert">A time is written`, `value="Ann"`},
		{"/console/work-orders", "node=AHU-1", `value="AHU-1"><p class="problem" role="alert">Several places have this code.`, "Work orders"},
		{"/console/work-orders", "assignee=Shift", `<p class="problem" role="alert">More than 20 people`, `value="Shift"`},
		{"/console/work-orders", "by=Shift", `<p class="problem" role="alert">More than 20 people`, `value="Shift"`},
	} {
		ann.Get(c.page+"?"+c.query).Want(http.StatusBadRequest, c.field, c.message, "details open")
	}
}
