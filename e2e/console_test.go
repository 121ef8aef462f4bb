package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/console/consoletest"
)

// The colleague may do on the headquarters what the manager may do.
const colleagueName, colleagueEmail = "Rosalind Achterberg", "rosalind.achterberg@acme.example.com"

// journey is what one person does in one browser at an installation that journeys share.
type journey struct {
	*harness
	*consoletest.Browser
	t *testing.T
}

// Journeys through the console of the real processes: an integration from its creation to deliveries
// that are sent again, and work without a mouse. What each page does is tested in console/.
//
//nolint:tparallel // a work order of one journey would be delivered to the receiver of the other
func TestConsoleJourneys(t *testing.T) {
	t.Parallel()
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "100ms"}) // two attempts
	h.startWorker()
	h.startAPI(nil)
	h.importForm()
	h.firstSignIn(managerEmail, managerName)
	for name, does := range map[string]func(*journey){
		"an integration":                 (*journey).integration,
		"a work order, by keyboard only": (*journey).workOrderByKeyboard,
	} {
		t.Run(name, func(t *testing.T) {
			own := *h
			own.t = t
			does(&journey{&own, consoletest.Open(t, h.settings["MILLWRIGHT_PUBLIC_URL"], true), t})
		})
	}
}

// importForm adds a form with questions, and the colleague.
func (h *harness) importForm() {
	h.t.Helper()
	maps.Copy(h.org.imported.IDs, h.importFile(fmt.Sprintf(`
organization: {key: acme}
people: [{key: colleague, name: %q, email: %q}]
forms:
  - key: round
    name: Round
    questions:
      - {key: state, label: State, type: single_choice, required: true, options: [{key: good, label: Good}, {key: worn, label: Worn}]}
      - {key: parts, label: Parts used, type: multiple_choice, required: false, options: [{key: belt, label: Belt}, {key: filter, label: Filter}]}
      - {key: note, label: Note, type: text, required: false}
assignments: [{node: hq, identity: colleague, definition: full}]
`, colleagueName, colleagueEmail)).IDs)
}

// firstSignIn gives a person of the organization consoletest.Password, with a link that the
// command prints.
func (h *harness) firstSignIn(email, name string) { h.t.Helper(); h.firstSignInTo("acme", email, name) }

func (h *harness) firstSignInTo(organization, email, name string) {
	h.t.Helper()
	var link struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(h.run("people", "invite", email, "--organization", organization, "--json")), &link); err != nil {
		h.t.Fatal(err)
	}
	form := url.Values{"name": {name}, "password": {consoletest.Password}}
	response, err := directClient.Post(link.URL, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		h.t.Fatalf("the link of the command: status %d", response.StatusCode)
	}
}
