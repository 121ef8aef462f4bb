package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
)

// An administrator ends the relation with a service company on the Teams page; the next page
// has its open work orders by name first. Others do not see service companies.
func TestTheRelationWithAServiceCompanyEnds(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	incoming(t, s)
	end := "/console/service-companies/" + s.Acme.OrganizationID + "/end"
	wantNot(t, s.SignedIn("bob").Get("/console/teams"), "Service companies")
	pia := s.SignedIn("pia")
	pia.Get("/console/teams").Want(http.StatusOK, "Service companies", "1 work order", end)
	asked := pia.Get(end)
	asked.Want(http.StatusOK, "Grease the lift", "1 open work order")
	pia.Post(end, asked.Form()).Want(http.StatusSeeOther)
	wantNot(t, pia.Get("/console/teams"), "Service companies")
	pia.Get(end).Want(http.StatusNotFound)
	pia.Get("/console/log").Want(http.StatusOK, "ended the relation with a service company")
}
