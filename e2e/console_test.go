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
	// scripts is whether pages run scripts.
	scripts bool
	// second is the URL of the other API server.
	second string
	// number is of the location “Wing NUMBER”, which no other journey uses, with the system
	// “Air NUMBER” and the equipment “Fan NUMBER”.
	number int
}

// Journeys through the console of the real processes, by people with scripts, without
// scripts, and without a mouse. Two API servers serve it.
func TestConsoleJourneys(t *testing.T) { journeys(t, true) }

// A second service, because a person sends at most 60 forms a minute.
func TestConsoleJourneysWithoutScripts(t *testing.T) { journeys(t, false) }

func journeys(t *testing.T, scripts bool) {
	t.Helper()
	t.Parallel()
	h := newHarness(t, settings{"WEBHOOK_RETRY_SCHEDULE": "100ms"}) // two attempts
	h.startWorker()
	h.startAPI(nil)
	second, _ := freePort(t)
	h.startAPI(settings{"MILLWRIGHT_ADDR": second})
	h.importWorkforce()
	h.importPlaces(20)
	h.firstSignIn(managerEmail, managerName)
	h.firstSignIn(advisorEmail, advisorName)
	h.firstSignIn(colleagueEmail, colleagueName)
	number := 0
	run := func(name string, does func(*journey)) {
		number++
		j := &journey{scripts: scripts, second: "http://" + second, number: number}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *h
			own.t, j.t, j.harness = t, t, &own
			j.Browser = j.open()
			does(j)
		})
	}
	for name, does := range map[string]func(*journey){
		"an integration": (*journey).integration,
		"a person":       (*journey).person,
		"an inventory":   (*journey).inventory,
		"a work order":   (*journey).workOrder,
		"a list":         (*journey).list,
		"two at once":    (*journey).twoAtOnce,
		"a double click": (*journey).doubleClick,
	} {
		run(name, does)
	}
	if scripts {
		run("an integration, by keyboard only", (*journey).integrationByKeyboard)
		run("a work order, by keyboard only", (*journey).workOrderByKeyboard)
	}
}

// open opens another browser of the same kind.
func (j *journey) open() *consoletest.Browser {
	return consoletest.Open(j.t, j.settings["MILLWRIGHT_PUBLIC_URL"], j.scripts)
}

// openAs opens another browser, in which a person signs in, at the second api from then on.
func (j *journey) openAs(email string) *consoletest.Browser {
	j.t.Helper()
	b := j.open()
	b.SignInAs(email)
	b.URL = j.second
	return b
}

// importPlaces adds the wings of n journeys, a form with questions, and the colleague.
func (h *harness) importPlaces(n int) {
	h.t.Helper()
	var wings, assigned strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&wings, `
  - {key: wing%[1]d, kind: location, name: Wing %[1]d, children: [{key: air%[1]d, kind: system, name: Air %[1]d, children: [{key: fan%[1]d, kind: equipment, name: Fan %[1]d}]}]}`, i)
		fmt.Fprintf(&assigned, "\n  - {node: wing%d, identity: manager, definition: full}", i)
	}
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
inventory:%s
assignments:
  - {node: hq, identity: colleague, definition: full}%s
`, colleagueName, colleagueEmail, wings.String(), assigned.String())).IDs)
}

// order has the ERP create a work order that the manager works on, with the key of a form or
// "", and returns the path of its page.
func (j *journey) order(title, form string) (path string) {
	j.t.Helper()
	erp := j.integrator()
	body := map[string]any{"inventory_id": erp.node, "title": title, "assignees": []string{j.org.imported.IDs["manager"]}}
	if form != "" {
		body["form_id"] = j.org.imported.IDs[form]
	}
	response, err := erp.call(http.MethodPost, "/work-orders", "", body)
	if err != nil || response.status != http.StatusCreated {
		j.t.Fatalf("create %q: status %d, error %v, body %s", title, response.status, err, response.body)
	}
	return "/console/work-orders/" + idOf(j.t, response.body)
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
