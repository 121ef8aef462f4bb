package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
)

// notOnPage are routes, operations and commands without a row in docs/writes.md, by the reason.
var notOnPage = map[string][]string{
	"signs in or out, or asks for it": {
		"POST /console/sign-in", "POST /console/sign-in/organization", "POST /console/sign-in/again", "POST /console/sign-out",
		"POST /console/forgotten", "POST /console/invite/:id", "POST /console/reset/:id", "POST /oauth/token", "POST /oauth/introspect", "POST /oauth/revoke",
	},
	"marks notices as read": {
		"POST /console/notices/read", "POST /console/notices/:id/open", "POST /console/work-orders/:id/seen", "POST /console/feedback/:id/seen",
	},
	"needs a provider of OpenID Connect, which other tests have": {
		"POST /console/people/openid", "POST /console/account/openid/unlink", "millwright organizations require-openid", "millwright organizations lift-openid",
	},
	"ends one's own sessions, which no log has": {"POST /console/account/sessions/:id/end", "POST /console/account/sessions/end-others"},
	"changes an installation, not an organization's records": {
		"millwright demo", "millwright migrate", "millwright namespace", "millwright reseal", "millwright restored postgres", "millwright restored temporal",
	},
	"writes nothing": {
		"millwright config", "millwright health", "millwright health api", "millwright health worker", "millwright health workflows", "millwright listen", "millwright openapi", "millwright replay", "millwright version",
	},
	"is a server": {"millwright api", "millwright worker"},
}

var (
	idInPath = regexp.MustCompile(`/([a-z]+_[0-9a-z]{26}|:\w+|\{\w+\})`)
	// TestEveryRouteIsListed has these routes complete.
	consoleRoute    = regexp.MustCompile(`method: "POST", path: "(.+?)"`)
	documentCommand = regexp.MustCompile(`(?m)^## (millwright .+)$`)
)

// record notes a request or a command of a row, without ids and query.
func (w *writes) record(name string) {
	if name, _, _ = strings.Cut(name, "?"); w.observed {
		w.made[idInPath.ReplaceAllString(name, "/:id")] = true
	}
}

// allWrites are the console's routes and the API's operations that write, and all commands but
// those that list and show.
func (w *writes) allWrites() (names []string) {
	w.t.Helper()
	for _, found := range consoleRoute.FindAllStringSubmatch(readText(w.t, "../console/routes_test.go"), -1) {
		names = append(names, "POST "+idInPath.ReplaceAllString(found[1], "/:id"))
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(readText(w.t, "../api/openapi.json")), &document); err != nil {
		w.t.Fatal(err)
	}
	for path, operations := range document.Paths {
		for method := range operations {
			if method = strings.ToUpper(method); method == "POST" || method == "PATCH" || method == "PUT" || method == "DELETE" {
				names = append(names, method+" "+idInPath.ReplaceAllString(path, "/:id"))
			}
		}
	}
	for _, found := range documentCommand.FindAllStringSubmatch(readText(w.t, "../docs/commands.md"), -1) {
		if !strings.HasSuffix(found[1], " list") && !strings.HasSuffix(found[1], " show") {
			names = append(names, found[1])
		}
	}
	return names
}

// wantAllMade fails the test if a write was neither made nor left out for a reason, or if one that
// is left out does not exist or was made.
func (w *writes) wantAllMade() {
	w.t.Helper()
	without := map[string]string{}
	for why, names := range notOnPage {
		for _, name := range names {
			without[name] = why
		}
	}
	for _, name := range w.allWrites() {
		switch why, left := without[name]; {
		case left && w.made[name]:
			w.t.Errorf("%s is left out because it %s, and was made", name, why)
		case !left && !w.made[name]:
			w.t.Errorf("%s was not made: add it to the ways to write, or to notOnPage with a reason", name)
		}
		delete(without, name)
	}
	for name := range without {
		w.t.Errorf("%s is left out and does not exist", name)
	}
}
