package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
)

// Administrators and managers of a node above create, edit, move, retire and bring back nodes.
func TestNodesAreCreatedAndChanged(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann := s.SignedIn("ann")
	ann.Get("/console/inventory").Want(http.StatusOK, "/console/inventory/new", "New location")
	ann.Post("/console/inventory", ann.Get("/console/inventory/new").Form("kind", "system", "name", "Loop")).
		Want(http.StatusUnprocessableEntity, "Only a location can be at the top", `value="Loop"`)
	site := ann.Post("/console/inventory", ann.Get("/console/inventory/new").Form("kind", "location", "name", "Depot")).Want(http.StatusSeeOther).Location()
	site, _, _ = strings.Cut(site, "?")
	siteID := site[strings.LastIndex(site, "/")+1:]
	ann.Post("/console/inventory", ann.Get("/console/inventory/new?node="+siteID).Want(http.StatusOK, "New place or asset in", "System", "Equipment").
		Form("kind", "system", "name", "Heating", "external_id", "HT-1")).Want(http.StatusSeeOther)
	ann.Get(site).Want(http.StatusOK, "Heating", "HT-1")

	edit := ann.Get(site+"/edit").Want(http.StatusOK, `value="Depot"`).Form("name", "North depot", "description", "Behind the wall")
	stale := ann.Get(site+"/edit").Form("name", "South depot")
	ann.Post(site+"/edit", edit).Want(http.StatusSeeOther)
	ann.Get(site).Want(http.StatusOK, "North depot", "Behind the wall")
	ann.Post(site+"/edit", stale).Want(http.StatusConflict, "Ann Field", "changed the place", `value="South depot"`)

	mast := "/console/inventory/" + s.ID("mast")
	ann.Post(mast+"/move", ann.Get(mast+"/move").Want(http.StatusOK, "Everything inside Mast moves with it").Form("node", "AHU-1")).
		Want(http.StatusUnprocessableEntity, "cannot be in one of the kind equipment")
	ann.Post(mast+"/move", ann.Get(mast+"/move").Form("node", siteID)).Want(http.StatusSeeOther)
	ann.Get(site).Want(http.StatusOK, "Mast")
	ann.Get(site+"/retire").Want(http.StatusOK, "2 places inside are in use")
}

// A retired node is hidden unless someone asks for it, and cannot be chosen.
func TestRetiredNodesAreHidden(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s) // on ahu1
	ann := s.SignedIn("ann")
	ahu, roof, mast := "/console/inventory/"+s.ID("ahu1"), "/console/inventory/"+s.ID("roof"), "/console/inventory/"+s.ID("mast")
	refused := ann.Get(ahu+"/retire").Want(http.StatusOK, "1 work order is open here and inside", "1 place inside is in use")
	ann.Post(ahu+"/retire", refused.Form()).Want(http.StatusUnprocessableEntity, "everything inside is retired")
	ann.Post(mast+"/retire", ann.Get(mast+"/retire").Form()).Want(http.StatusSeeOther)
	ann.Get(mast).Want(http.StatusOK, "Retired at", "Bring back")
	for path, shown := range map[string]bool{
		roof: false, roof + "?retired=yes": true, "/console/inventory?open=" + s.ID("roof"): false, "/console/inventory?retired=yes&open=" + s.ID("roof"): true,
		"/console/inventory?q=mast": false, "/console/inventory?retired=yes&q=mast": true,
		"/console/work-orders/new?q=mast": false, "/console/work-orders/new?below=" + s.ID("roof"): false,
	} {
		if got := strings.Contains(ann.Get(path).Want(http.StatusOK).Body, s.ID("mast")); got != shown {
			t.Errorf("%s shows the retired node: %v", path, got)
		}
	}
	for _, page := range []consoletest.Page{ann.Get(mast), ann.Get(mast + "?tab=assignees")} {
		wantNot(t, page, "/work-orders/new?node", "/feedback/new?node", mast+"/assign", mast+"/retire", "/inventory/new?node="+s.ID("mast"))
	}
	ann.Get("/console/work-orders/new?node="+s.ID("mast")).Want(http.StatusOK, "is retired")
	ann.Post(mast+"/bring-back", ann.Get(mast).Form()).Want(http.StatusSeeOther)
	ann.Get(roof).Want(http.StatusOK, s.ID("mast"))
}
