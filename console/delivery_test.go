package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/webhook"
)

var (
	curlHeader = regexp.MustCompile(`-H '([^:']+): ([^']*)'`)
	curlBody   = regexp.MustCompile(`--data-binary '([^']*)'`)
)

// Anyone with a signed request can send it: the delivery page and its curl command have valid
// signatures for owners of the integration and administrators, and none for anyone else.
func TestOnlyOwnersSeeADeliverySigned(t *testing.T) { //nolint:tparallel // each case takes something away from the cases before
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusServiceUnavailable, ""))
	path := "/console/deliveries/" + servicetest.Value[string](s.Fixture, `SELECT id FROM all_deliveries WHERE webhook_id = $1`, s.ID("erp_hook"))
	for _, key := range []string{"bob", "cat", "zed"} {
		grant(s, key, string(models.GrantIntegrations))
	}
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{work_orders.read}' WHERE id = $1`, s.ID("working"))
	s.Exec(`UPDATE integrations SET owners = ARRAY[$2] WHERE id = $1`, s.ID("erp"), s.ID("bob"))
	s.Exec(`UPDATE integrations SET owners = ARRAY[$2] WHERE id = $1`, s.ID("reader"), s.ID("cat"))
	const secret = "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	for _, test := range []struct {
		name, person string
		before       string
		signed       bool
	}{
		{"an administrator", "ann", "", true},
		{"an owner", "bob", "", true},
		{"an owner of another integration", "cat", "", false},
		{"someone who was an owner", "bob", `UPDATE integrations SET owners = '{}'`, false},
		{"someone who was an administrator", "ann", `UPDATE people SET admin = false`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.before != "" {
				s.Exec(test.before)
				grant(s, "ann", string(models.GrantIntegrations))
			}
			page := s.SignedIn(test.person).Get(path).Want(http.StatusOK, "Replace filter", "<dt class=\"id\">Service-Signature</dt>")
			text := html.UnescapeString(page.Body)
			header := http.Header{}
			for _, found := range curlHeader.FindAllStringSubmatch(text, -1) {
				header.Add(found[1], found[2])
			}
			body := curlBody.FindStringSubmatch(text)
			if body == nil || len(header) == 0 {
				t.Fatalf("the page has no command:\n%s", text)
			}
			if err := webhook.Verify(header, []byte(body[1]), secret, s.Clock.Now()); (err == nil) != test.signed {
				t.Errorf("the command is signed: %v, want %v", err == nil, test.signed)
			}
			// Both families of headers.
			if has := strings.Contains(text, "v1=") && strings.Contains(text, "v1,"); has != test.signed || !test.signed && (strings.Contains(text, "v1=") || strings.Contains(text, "v1,")) {
				t.Errorf("the page has signatures: %v, want %v", has, test.signed)
			}
		})
	}
}

// An integration's page names the nodes that its viewer sees and counts the others.
func TestIntegrationPagesNameOnlyNodesThatOneSees(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	grant(s, "eve", string(models.GrantIntegrations)) // she sees the annex
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $3, $4, $5), ($2, $3, $4, $5)`,
		s.ID("annex"), s.ID("roof"), s.ID("reader"), s.ID("reading"), s.Acme.OrganizationID)
	eve, page := s.SignedIn("eve"), "/console/integrations/"+s.ID("reader")
	wantNot(t, eve.Get(page).Want(http.StatusOK, ">Annex<", "on 2 places that you do not see"), "HVAC", "Roof", s.ID("hvac"), s.ID("roof"))
	s.Exec(`DELETE FROM assignments WHERE identity_id = $1 AND node_id = $2`, s.ID("reader"), s.ID("annex"))
	wantNot(t, eve.Get(page).Want(http.StatusOK, "on 2 places that you do not see"), "sees nothing yet", "HVAC", "Roof", "Annex")
	for _, node := range []string{"hvac", "annex"} {
		eve.Get(page + "/unassign?node=" + s.ID(node)).Want(http.StatusNotFound)
	}
	s.SignedIn("ann").Get(page).Want(http.StatusOK, ">HVAC<", ">Roof<")
}
