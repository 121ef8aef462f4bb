package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Nodes, people and teams link to their pages for those who see them; others read the names.
func TestRecordsLeadToThoseThatTheViewerSees(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	order := newRecord(t, s, "bob", "crew", "polar")
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'worker', 3), ($1, $3, 'worker', 4)`, order, s.ID("zed"), s.ID("pia"))
	feedback := newFeedback(t, s)
	workOrder, node := "/console/work-orders/"+order, `href="/console/inventory/`+s.ID("ahu1")+`"`
	bob, crew, erp := `href="/console/people/`+s.ID("bob")+`"`, `href="/console/teams/`+s.ID("crew")+`"`, `href="/console/integrations/`+s.ID("erp")+`"`
	ann, pia, zed := s.SignedIn("ann"), s.SignedIn("pia"), s.SignedIn("zed")
	for path, links := range map[string][]string{
		"/console/work-orders":                                        {node, workOrder},
		workOrder:                                                     {node, bob, crew},
		"/console/feedback/" + feedback:                               {`href="/console/inventory/`},
		"/console/people/" + s.ID("bob"):                              {`href="/console/inventory/`, crew},
		"/console/teams/" + s.ID("crew"):                              {bob},
		"/console/integrations/" + s.ID("erp"):                        {`href="/console/inventory/` + s.ID("hq") + `"`},
		"/console/inventory/" + s.ID("hq") + "?tab=assignees":         {erp},
		"/console/inventory/" + s.ID("hq") + "?tab=work-orders":       {node, workOrder},
		"/console/log?what=work_order":                                {workOrder},
		"/console/inventory/" + s.ID("ahu1") + "?tab=work-orders":     {workOrder},
		"/console/work-orders?node=" + s.ID("ahu1") + "&assignee=Bob": {node},
	} {
		ann.Get(path).Want(http.StatusOK, links...)
	}
	// zed has no permission on the node, pia is of another organization.
	for _, v := range []*consoletest.Visitor{pia, zed} {
		for _, path := range []string{"/console", "/console/work-orders", workOrder} {
			wantNot(t, v.Get(path).Want(http.StatusOK, "AHU 1"), "/console/inventory/")
		}
	}
	if page := pia.Get(workOrder); strings.Contains(page.Body, bob) || strings.Contains(page.Body, crew) {
		t.Error("a customer's people have pages")
	}
	// Without Integrations an integration has no page.
	grant(s, "bob")
	wantNot(t, s.SignedIn("bob").Get("/console/inventory/"+s.ID("hq")+"?tab=assignees").Want(http.StatusOK, "ERP"), erp)
}

// workOrderWith creates a work order with the external id, and returns its id and number.
func workOrderWith(t *testing.T, s *consoletest.Site, externalID string) (id string, number int64) {
	t.Helper()
	order := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Replace the filter", ExternalID: &externalID}))
	return order, servicetest.Value[int64](s.Fixture, `SELECT number FROM work_orders WHERE id = $1`, order)
}

// Deliveries are filtered by a record, and integrations asked about it, by whatever names it.
func TestRecordsAreNamedInSeveralWays(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	code := "TICKET-7/3"
	id, number := workOrderWith(t, s, code)
	dispatch(t, s, "erp_hook", responding(http.StatusInternalServerError, ""))
	ann := s.SignedIn("ann")
	see := "/console/integrations/" + s.ID("erp") + "?see="
	for _, text := range []string{id, "https://x.example/console/work-orders/" + id, fmt.Sprint(number), fmt.Sprint("#", number), code} {
		ann.Get("/console/deliveries?record="+url.QueryEscape(text)).Want(http.StatusOK, id, "Redeliver selected")
		ann.Get("/console/deliveries/redeliver-matching?record="+url.QueryEscape(text)).Want(http.StatusOK, "1 delivery")
		ann.Get(see+url.QueryEscape(text)).Want(http.StatusOK, "Yes, it can see this work order")
	}
	ann.Get(see+"AHU-1").Want(http.StatusOK, "Yes, it can see this place or asset")
	ann.Get(see+"nothing").Want(http.StatusOK, "Nothing that you may read has")
	ann.Get("/console/deliveries?record=nothing").Want(http.StatusBadRequest, "Nothing that you may read has")
	ann.Get("/console/deliveries?record=AHU-1").Want(http.StatusBadRequest, "Nothing that you may read has") // a node has no deliveries
	s.Exec(`UPDATE inventory_nodes SET external_id = 'HQ' WHERE id = $1`, s.ID("roof"))
	ann.Get(see+"HQ").Want(http.StatusOK, "Several records have", s.ID("hq"), s.ID("roof"))
}
