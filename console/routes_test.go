package console_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// routeCase is a request to a route of the console that succeeds. Texts in braces are the
// things of newGuardedSite.
type routeCase struct {
	method, path string
	// anyone is true if the route needs no sign-in; else grant is what it requires, if anything.
	anyone bool
	grant  models.OrganizationGrant
	// unoffered is true if no page links to it even with every permission: it is for
	// administrators, or for sign-ins that are not recent, or a button opens it.
	unoffered bool
	// signIn is recent if the route takes a recent sign-in. Routes that write say anySignIn if they do not: one of a week
	// suffices for work, and what stops something must not wait.
	signIn string
	// id is the path's :id or :token.
	id    string
	query string
	form  string
	// ids are the parameters of the query or the form that take an id.
	ids []string
}

const (
	integrationsGrant = models.GrantIntegrations
	peopleGrant       = models.GrantPeople
	logRecords        = models.GrantLogRecords

	recent    = "recent"
	anySignIn = "any"
)

// routeCases are all routes of the console, with every parameter that takes an id. Those that
// take something away follow the others about it.
var routeCases = []routeCase{
	{method: "GET", path: "/", anyone: true},
	{method: "GET", path: "/console"},
	{method: "GET", path: "/console/sign-in", anyone: true},
	{method: "POST", path: "/console/sign-in", anyone: true, form: "email=ann@acme.example.com&password=wrong"},
	{method: "POST", path: "/console/sign-in/organization", anyone: true, form: "choice=x&person={bob}", ids: []string{"choice", "person"}},
	{method: "POST", path: "/console/sign-out", anyone: true, form: "x=1"},
	{method: "GET", path: "/console/invite/:token", anyone: true, id: "x"},
	{method: "POST", path: "/console/invite/:token", anyone: true, id: "x", form: "password=a+good+long+password"},
	{method: "GET", path: "/console/reset/:token", anyone: true, id: "x"},
	{method: "POST", path: "/console/reset/:token", anyone: true, id: "x", form: "password=a+good+long+password"},
	{method: "GET", path: "/console/forgotten", anyone: true},
	{method: "POST", path: "/console/forgotten", anyone: true, form: "email=no.one@acme.example.com"},
	{method: "GET", path: "/console/openid/start", anyone: true, ids: []string{"invite"}},
	{method: "GET", path: "/console/openid/callback", anyone: true, query: "code=x&state=y"},

	{method: "GET", path: "/console/openid/again", unoffered: true},
	{method: "GET", path: "/console/sign-in/again", unoffered: true},
	{method: "POST", path: "/console/sign-in/again", form: "next=/console", unoffered: true, signIn: recent},

	{method: "GET", path: "/console/account"},
	{method: "POST", path: "/console/account", form: "name=Bob+Stone&time_zone=UTC&theme=dark", signIn: anySignIn},
	{method: "POST", path: "/console/account/password", form: "old_password=wrong&password=another+good+password", signIn: anySignIn},
	{method: "POST", path: "/console/account/sessions/:id/end", id: "{session}", form: "x=1", signIn: recent},
	{method: "POST", path: "/console/account/sessions/end-others", form: "x=1", signIn: recent},

	{method: "POST", path: "/console/account/openid/unlink", form: "issuer=http://127.0.0.1:9&subject=bob", signIn: recent},

	{method: "GET", path: "/console/work-orders", query: "node={hq}&assignee={bob}&by={erp}", ids: []string{"node", "assignee", "by"}},
	{method: "GET", path: "/console/work-orders/load"},
	{method: "GET", path: "/console/work-orders/count", unoffered: true, query: "node={hq}&assignee={bob}&by={erp}", ids: []string{"node", "assignee", "by"}},
	{method: "GET", path: "/console/work-orders.csv", query: "node={hq}&assignee={bob}&by={erp}", ids: []string{"node", "assignee", "by"}},
	{method: "GET", path: "/console/work-orders/assign", query: "id={work_order}&back=/console/work-orders", ids: []string{"id"}, unoffered: true},
	{method: "POST", path: "/console/work-orders/assign", query: "id={work_order}", form: "identity={dan}&role=worker", ids: []string{"id", "identity"}, signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/due", query: "id={work_order}&back=/console/work-orders", ids: []string{"id"}, unoffered: true},
	{method: "POST", path: "/console/work-orders/due", query: "id={work_order}", form: "target_date=2026-08-03T10:00", ids: []string{"id"}, signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/priority", query: "id={work_order}&back=/console/work-orders", ids: []string{"id"}, unoffered: true},
	{method: "POST", path: "/console/work-orders/priority", query: "id={work_order}", form: "priority=high", ids: []string{"id"}, signIn: anySignIn},
	{method: "GET", path: "/console/people", query: "after_name=M&after={bob}&definition={org_nothing}", ids: []string{"after", "definition"}},
	{method: "GET", path: "/console/people/openid", unoffered: true, signIn: recent},
	{method: "POST", path: "/console/people/openid", query: "required=no", form: "x=1", unoffered: true, signIn: recent},
	{method: "GET", path: "/console/people/:id", id: "{eve}"},
	{method: "GET", path: "/console/people/new", grant: peopleGrant, signIn: recent},
	{method: "POST", path: "/console/people", grant: peopleGrant, form: "email=nia@acme.example.com&definition=&team={crew}", ids: []string{"definition", "team", "node", "definition_id"}, signIn: recent},
	{method: "POST", path: "/console/people/:id", grant: peopleGrant, id: "{eve}", form: "definition={org_nothing}", ids: []string{"definition"}, signIn: recent},
	{method: "POST", path: "/console/people/:id/link", grant: peopleGrant, id: "{eve}", form: "x=1", signIn: recent},
	{method: "POST", path: "/console/people/:id/email", id: "{eve}", form: "email=eve.two@acme.example.com", unoffered: true, signIn: recent},
	{method: "GET", path: "/console/people/:id/ways-in", id: "{eve}", unoffered: true, signIn: recent},
	{method: "POST", path: "/console/people/:id/ways-in", id: "{eve}", form: "x=1", unoffered: true, signIn: recent},
	{method: "GET", path: "/console/people/:id/deactivate", grant: peopleGrant, id: "{eve}", query: "after_name=A&after={bob}", ids: []string{"after"}, signIn: recent},
	{method: "POST", path: "/console/people/:id/deactivate", grant: peopleGrant, id: "{eve}", form: "replacement={bob}", ids: []string{"replacement"}, signIn: recent},
	{method: "POST", path: "/console/people/:id/activate", grant: peopleGrant, id: "{eve}", form: "x=1", signIn: recent},

	{method: "GET", path: "/console/people/definitions"},
	{method: "GET", path: "/console/people/definitions/edit", query: "role={org_nothing}", ids: []string{"role"}, unoffered: true, signIn: recent},
	{method: "POST", path: "/console/people/definitions/edit", query: "role={org_nothing}", form: "name=Nothing", ids: []string{"role"}, unoffered: true, signIn: recent},
	{method: "GET", path: "/console/teams", query: "after_name=A&after={crew}", ids: []string{"after"}},
	{method: "GET", path: "/console/teams/new", grant: peopleGrant},
	{method: "POST", path: "/console/teams", grant: peopleGrant, form: "name=Roofers", signIn: anySignIn},
	{method: "GET", path: "/console/teams/:id", id: "{crew}", query: "after_name=A&after={bob}", ids: []string{"after"}},
	{method: "POST", path: "/console/teams/:id", grant: peopleGrant, id: "{crew}", form: "name=Day+shift", signIn: anySignIn},
	{method: "GET", path: "/console/teams/:id/members", grant: peopleGrant, id: "{crew}", query: "after_name=A&after={bob}", ids: []string{"after"}, signIn: recent},
	{method: "POST", path: "/console/teams/:id/members", grant: peopleGrant, id: "{crew}", form: "person={eve}", ids: []string{"person"}, signIn: recent},
	{method: "GET", path: "/console/teams/:id/remove", grant: peopleGrant, id: "{crew}", query: "member={dan}", ids: []string{"member"}, signIn: recent},
	{method: "POST", path: "/console/teams/:id/remove", grant: peopleGrant, id: "{crew}", query: "member={dan}", form: "x=1", ids: []string{"member"}, signIn: recent},
	{method: "GET", path: "/console/teams/:id/delete", grant: peopleGrant, id: "{crew}", signIn: recent},
	{method: "POST", path: "/console/teams/:id/delete", grant: peopleGrant, id: "{crew}", form: "x=1", signIn: recent},
	{method: "GET", path: "/console/service-companies/:id/end", id: "{polar}", unoffered: true, signIn: recent},
	{method: "POST", path: "/console/service-companies/:id/end", id: "{polar}", form: "x=1", unoffered: true, signIn: recent},
	{method: "GET", path: "/console/search", unoffered: true, query: "q=a", ids: []string{"q"}},
	{method: "GET", path: "/console/forms", query: "after_name=A&after={inspection}", ids: []string{"after"}},
	{method: "GET", path: "/console/forms/new", unoffered: true},
	{method: "POST", path: "/console/forms", form: "name=Fire+door", unoffered: true, signIn: anySignIn},
	{method: "GET", path: "/console/forms/:id", id: "{inspection}"},
	{method: "GET", path: "/console/forms/:id/edit", id: "{inspection}", unoffered: true},
	{method: "POST", path: "/console/forms/:id/edit", id: "{inspection}", form: "name=Inspection", unoffered: true, signIn: anySignIn},
	{method: "GET", path: "/console/forms/:id/question", id: "{inspection}", query: "question={q_note}", ids: []string{"question"}, unoffered: true},
	{method: "POST", path: "/console/forms/:id/question", id: "{inspection}", form: "label=Remarks&type=text", query: "question={q_note}", ids: []string{"question"}, unoffered: true, signIn: anySignIn},

	{method: "GET", path: "/console/log", grant: logRecords, query: "who={bob}&record={bob}", ids: []string{"who", "record"}},
	{method: "GET", path: "/console/log.csv", grant: logRecords, query: "who={bob}&record={bob}", ids: []string{"who", "record"}},

	{method: "GET", path: "/console/notices", query: "unread_before=1&read_before=1", ids: []string{"unread_before", "read_before"}},
	{method: "GET", path: "/console/notices/count", unoffered: true},
	{method: "POST", path: "/console/notices/read", form: "last=0", ids: []string{"last"}, signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/seen", id: "{work_order}", form: "x=1", unoffered: true, signIn: anySignIn},
	{method: "POST", path: "/console/feedback/:id/seen", id: "{feedback}", form: "x=1", unoffered: true, signIn: anySignIn},
	{method: "POST", path: "/console/notices/:id/open", id: "{notice}", form: "x=1", signIn: anySignIn},

	{method: "GET", path: "/console/work-orders/new", query: "node={ahu1}&below={hq}&after={hq}&feedback={feedback}", ids: []string{"node", "below", "after", "feedback"}},
	{method: "GET", path: "/console/work-orders/:id/edit", id: "{work_order}"},
	{method: "POST", path: "/console/work-orders/:id/edit", id: "{work_order}", form: "title=Other", signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/:id/answers", id: "{work_order}"},
	{method: "POST", path: "/console/work-orders/:id/answers", id: "{work_order}", form: "asked={q_note}&{q_note}=Done", signIn: anySignIn},
	{method: "POST", path: "/console/work-orders", form: "node={roof}&title=Replace&form_id={inspection}&assignees={bob}&consultants={cat}", ids: []string{"node", "feedback", "form_id", "assignees", "consultants"}, signIn: anySignIn},
	{method: "GET", path: "/console/feedback", query: "node={hq}&by={erp}", ids: []string{"node", "by"}},
	{method: "GET", path: "/console/feedback/new", query: "node={ahu1}", ids: []string{"node"}},
	{method: "POST", path: "/console/feedback", form: "node={ahu1}&subject=It+rattles", ids: []string{"node"}, signIn: anySignIn},
	{method: "GET", path: "/console/feedback/:id", id: "{feedback}"},
	{method: "POST", path: "/console/feedback/:id/resolve", id: "{feedback}", form: "x=1", signIn: anySignIn},
	{method: "POST", path: "/console/feedback/:id/comments", id: "{feedback}", form: "text=Since+when", signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/comments", id: "{work_order}", form: "text=Since+when", signIn: anySignIn},
	{method: "GET", path: "/console/feedback/:id/remove-comment", id: "{feedback}", query: "comment={feedback_comment}", ids: []string{"comment"}, unoffered: true},
	{method: "POST", path: "/console/feedback/:id/remove-comment", id: "{feedback}", query: "comment={feedback_comment}", form: "x=1", ids: []string{"comment"}, unoffered: true, signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/:id/remove-comment", id: "{work_order}", query: "comment={work_order_comment}", ids: []string{"comment"}, unoffered: true},
	{method: "POST", path: "/console/work-orders/:id/remove-comment", id: "{work_order}", query: "comment={work_order_comment}", form: "x=1", ids: []string{"comment"}, unoffered: true, signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/:id", id: "{work_order}"},
	{method: "GET", path: "/console/work-orders/:id/integrations", grant: integrationsGrant, id: "{work_order}"},
	{method: "GET", path: "/console/work-orders/:id/assign", id: "{work_order}"},
	{method: "POST", path: "/console/work-orders/:id/assign", id: "{work_order}", form: "identity={dan}&role=worker", ids: []string{"identity"}, signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/unassign", id: "{work_order}", form: "identity={dan}", ids: []string{"identity"}, signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/start", id: "{work_order}", form: "x=1", signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/hold", id: "{work_order}", form: "x=1", signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/resume", id: "{work_order}", form: "x=1", signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/:id/complete", id: "{work_order}"},
	{method: "POST", path: "/console/work-orders/:id/complete", id: "{work_order}", form: "x=1", signIn: anySignIn},
	{method: "POST", path: "/console/work-orders/:id/review", id: "{work_order}", form: "decision=approve", signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/:id/cancel", id: "{work_order}"},
	{method: "POST", path: "/console/work-orders/:id/cancel", id: "{work_order}", form: "reason=Twice", signIn: anySignIn},
	{method: "GET", path: "/console/work-orders/:id/return", id: "{work_order}"},
	{method: "POST", path: "/console/work-orders/:id/return", id: "{work_order}", form: "reason=Twice", signIn: anySignIn},
	{method: "GET", path: "/console/inventory", query: "open={hq}&after_name=A&after={hvac}", ids: []string{"open", "after"}},
	{method: "GET", path: "/console/inventory/:id", id: "{hq}", query: "tab=assignees&after_depth=0&after_name=A&after={bob}", ids: []string{"after"}},
	{method: "GET", path: "/console/inventory/new", query: "node={roof}", ids: []string{"node"}},
	{method: "POST", path: "/console/inventory", form: "node={roof}&kind=system&name=Pump", ids: []string{"node"}, signIn: anySignIn},
	{method: "GET", path: "/console/inventory/:id/several", id: "{roof}"},
	{method: "POST", path: "/console/inventory/:id/several", id: "{roof}", form: "kind=system&lines=Pump+1", signIn: anySignIn},
	{method: "GET", path: "/console/inventory/:id/edit", id: "{roof}"},
	{method: "POST", path: "/console/inventory/:id/edit", id: "{roof}", form: "name=Top", signIn: anySignIn},
	{method: "GET", path: "/console/inventory/:id/move", id: "{mast}", unoffered: true, signIn: recent},
	{method: "POST", path: "/console/inventory/:id/move", id: "{mast}", form: "node={annex}", ids: []string{"node"}, unoffered: true, signIn: recent},
	{method: "GET", path: "/console/inventory/:id/retire", id: "{mast}"},
	{method: "POST", path: "/console/inventory/:id/retire", id: "{mast}", form: "x=1", signIn: anySignIn},
	{method: "POST", path: "/console/inventory/:id/bring-back", id: "{mast}", form: "x=1", signIn: anySignIn},
	{method: "GET", path: "/console/inventory/:id/label", id: "{ahu1}"},
	{method: "GET", path: "/console/inventory/:id/assign", id: "{hq}", query: "identity={erp}", ids: []string{"identity"}, signIn: recent},
	{method: "POST", path: "/console/inventory/:id/assign", id: "{roof}", form: "identity_id={bob}&definition_id={reading}", ids: []string{"identity_id", "definition_id"}, signIn: recent},
	{method: "GET", path: "/console/inventory/:id/unassign", id: "{hq}", query: "identity={cat}", ids: []string{"identity"}, signIn: recent},
	{method: "POST", path: "/console/inventory/:id/unassign", id: "{hq}", query: "identity={cat}", form: "x=1", ids: []string{"identity"}, signIn: recent},

	{method: "GET", path: "/console/integrations", grant: integrationsGrant},
	{method: "GET", path: "/console/integrations/new", grant: integrationsGrant, signIn: recent},
	{method: "POST", path: "/console/integrations", grant: integrationsGrant, form: "name=New&scopes=work_orders:read&organization_definition_id=", ids: []string{"organization_definition_id"}, signIn: recent},
	{method: "GET", path: "/console/integrations/:id", grant: integrationsGrant, id: "{erp}", query: "see={hq}", ids: []string{"see"}},
	{method: "POST", path: "/console/integrations/:id", grant: integrationsGrant, id: "{erp}", form: "name=Other&scopes=work_orders:read&organization_definition_id=", ids: []string{"organization_definition_id"}, signIn: recent},
	{method: "GET", path: "/console/integrations/:id/secret", grant: integrationsGrant, id: "{erp}", signIn: recent},
	{method: "POST", path: "/console/integrations/:id/end-old-secret", grant: integrationsGrant, id: "{erp}", form: "x=1", signIn: recent},
	{method: "POST", path: "/console/integrations/:id/secret", grant: integrationsGrant, id: "{erp}", form: "x=1", signIn: recent},
	{method: "POST", path: "/console/integrations/:id/owners", unoffered: true, id: "{erp}", form: "owners=", ids: []string{"owners"}, signIn: recent},
	{method: "GET", path: "/console/integrations/:id/off", grant: integrationsGrant, id: "{erp}"},
	{method: "POST", path: "/console/integrations/:id/off", grant: integrationsGrant, id: "{erp}", form: "x=1", signIn: anySignIn},
	{method: "POST", path: "/console/integrations/:id/on", grant: integrationsGrant, id: "{erp}", form: "x=1", signIn: recent},
	{method: "GET", path: "/console/integrations/:id/delete", grant: integrationsGrant, id: "{outsider}"},
	{method: "POST", path: "/console/integrations/:id/delete", grant: integrationsGrant, id: "{outsider}", form: "x=1", signIn: anySignIn},

	{method: "GET", path: "/console/integrations/:id/assign", grant: integrationsGrant, id: "{erp}", signIn: recent},
	{method: "POST", path: "/console/integrations/:id/assign", grant: integrationsGrant, id: "{erp}", form: "node={roof}&definition_id={reading}", ids: []string{"node", "definition_id"}, signIn: recent},
	{method: "GET", path: "/console/integrations/:id/unassign", grant: integrationsGrant, id: "{reader}", query: "node={hvac}", ids: []string{"node"}, signIn: recent},
	{method: "POST", path: "/console/integrations/:id/unassign", grant: integrationsGrant, id: "{reader}", query: "node={hvac}", form: "x=1", ids: []string{"node"}, signIn: recent},
	{method: "GET", path: "/console/integrations/:id/webhooks/new", grant: integrationsGrant, id: "{erp}", signIn: recent},
	{method: "POST", path: "/console/integrations/:id/webhooks", grant: integrationsGrant, id: "{erp}", form: "url=http://127.0.0.1:9/new&events=work_order.created", signIn: recent},
	{method: "GET", path: "/console/webhooks/:id", grant: integrationsGrant, id: "{erp_hook}"},
	{method: "POST", path: "/console/webhooks/:id", grant: integrationsGrant, id: "{erp_hook}", form: "url=http://127.0.0.1:9/other&events=work_order.created", signIn: recent},
	{method: "GET", path: "/console/webhooks/:id/secret", grant: integrationsGrant, id: "{erp_hook}", signIn: recent},
	{method: "POST", path: "/console/webhooks/:id/secret", grant: integrationsGrant, id: "{erp_hook}", form: "x=1", signIn: recent},
	{method: "POST", path: "/console/webhooks/:id/test", grant: integrationsGrant, id: "{erp_hook}", form: "type=ping", signIn: anySignIn},
	{method: "GET", path: "/console/webhooks/:id/missed", grant: integrationsGrant, id: "{erp_hook}"},
	{method: "POST", path: "/console/webhooks/:id/missed", grant: integrationsGrant, id: "{erp_hook}", form: "since=2026-03-01T00:00", signIn: anySignIn},
	{method: "GET", path: "/console/webhooks/:id/deliveries", grant: integrationsGrant, id: "{erp_hook}", query: "record={work_order}&before={delivery}", ids: []string{"record", "before"}},
	{method: "GET", path: "/console/webhooks/:id/charts", grant: integrationsGrant, id: "{erp_hook}"},
	{method: "GET", path: "/console/charts/deliveries", grant: integrationsGrant},
	{method: "GET", path: "/console/stuck", grant: integrationsGrant},
	{method: "GET", path: "/console/deliveries", grant: integrationsGrant, query: "record={work_order}&before={delivery}&integration={erp}&webhook={erp_hook}", ids: []string{"record", "before", "integration", "webhook"}},
	{method: "GET", path: "/console/deliveries/:id", grant: integrationsGrant, id: "{delivery}"},
	{method: "POST", path: "/console/deliveries/:id/redeliver", grant: integrationsGrant, id: "{delivery}", form: "back=/console/deliveries", signIn: anySignIn},
	{method: "POST", path: "/console/deliveries/redeliver", grant: integrationsGrant, form: "delivery={delivery}&back=/console/deliveries", ids: []string{"delivery"}, signIn: anySignIn},
	{method: "GET", path: "/console/deliveries/redeliver-matching", grant: integrationsGrant, query: "webhook={erp_hook}&integration={erp}&record={work_order}", ids: []string{"webhook", "integration", "record"}},
	{method: "POST", path: "/console/deliveries/redeliver-matching", grant: integrationsGrant, query: "webhook={erp_hook}&integration={erp}&record={work_order}", form: "x=1", ids: []string{"webhook", "integration", "record"}, signIn: anySignIn},
	{method: "GET", path: "/console/webhooks/:id/off", grant: integrationsGrant, id: "{erp_hook}"},
	{method: "POST", path: "/console/webhooks/:id/off", grant: integrationsGrant, id: "{erp_hook}", form: "reason=Moving", signIn: anySignIn},
	{method: "POST", path: "/console/webhooks/:id/on", grant: integrationsGrant, id: "{erp_hook}", form: "since=2026-03-01T00:00&send=yes", signIn: recent},
	{method: "GET", path: "/console/webhooks/:id/delete", grant: integrationsGrant, id: "{reader_hook}"},
	{method: "POST", path: "/console/webhooks/:id/delete", grant: integrationsGrant, id: "{reader_hook}", form: "x=1", signIn: anySignIn},
}

func (c routeCase) String() string { return c.method + " " + c.path }

// A new route is listed in routeCases, so that the tests of this package try it.
func TestEveryRouteIsListed(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	listed := map[string]bool{}
	for _, c := range routeCases {
		listed[c.String()] = true
	}
	for _, route := range s.Console.Routes() {
		if name := route.Method + " " + route.Path; !listed[name] {
			t.Errorf("%s is not in routeCases", name)
		} else {
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("%s is in routeCases and not a route", name)
	}
}

// guardedSite is a site with something for each route.
type guardedSite struct {
	*consoletest.Site
	// things are ids by their names in routeCases; theirs are ids of the other organization.
	things map[string]string
	theirs []string
}

// sentTests is a tester that sends nothing.
type sentTests struct{}

func (sentTests) Send(context.Context, webhooks.BegunTest, models.EventType) error { return nil }

// signedInWith gives a person the permissions and returns a visitor who is signed in since, as
// gaining one ends sessions. {session} is another session of the person.
func (s *guardedSite) signedInWith(key string, grants ...string) *consoletest.Visitor {
	grant(s.Site, key, grants...)
	s.Exec(`DELETE FROM sessions WHERE person_id = $1`, s.ID(key))
	s.SignedIn(key)
	s.things["session"] = servicetest.Value[string](s.Fixture, `SELECT id FROM sessions WHERE person_id = $1`, s.ID(key))
	return s.SignedIn(key)
}

// newGuardedSite serves a console with all routes. Records of both organizations have
// deliveries, and a person of each has a notice and sessions.
func newGuardedSite(t *testing.T, adjust ...func(*console.Options)) *guardedSite {
	t.Helper()
	s := &guardedSite{Site: consoletest.NewSite(t, append([]func(*console.Options){func(o *console.Options) {
		o.Tester = sentTests{}
		o.OpenID = &console.OpenIDOptions{Issuer: "http://127.0.0.1:9", ClientID: "console", Name: "Login"}
	}}, adjust...)...)}
	s.Exec(`UPDATE plans SET manual_work_orders = true`)
	allowFeedback(s.Site)
	ours := newRecord(t, s.Site, "ann", "bob")
	theirs := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("dispatch"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("depot"), Title: "Their work order"}))
	s.PlantDeliveries("erp_hook", ours, models.EventWorkOrderCreated, models.DeliveryFailed, 500, 2, s.Clock.Now().Add(-time.Hour))
	s.PlantDeliveries("dispatch_hook", theirs, models.EventWorkOrderCreated, models.DeliveryFailed, 500, 2, s.Clock.Now().Add(-time.Hour))
	s.Exec(`UPDATE integrations SET previous_secret_hash = secret_hash, previous_secret_until = $1`, s.Clock.Now().Add(time.Hour))
	notify(s.Site, "bob", "webhook.failing")
	s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail) VALUES ($1, $2, 'webhook.failing', $3, now(), 'inbox')`,
		s.Polar.OrganizationID, s.ID("pia"), s.ID("dispatch_hook"))
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at, private) VALUES ('http://127.0.0.1:9', 'bob', $1, now(), true)`, s.ID("bob"))
	s.SignedIn("pia")
	s.SignedIn("bob")
	one := func(sql string, args ...any) string { return servicetest.Value[string](s.Fixture, sql, args...) }
	s.things = map[string]string{
		"work_order": ours, "feedback": newFeedback(t, s.Site), "polar": s.Polar.OrganizationID,
		"delivery": one(`SELECT id FROM deliveries WHERE webhook_id = $1 ORDER BY id LIMIT 1`, s.ID("erp_hook")),
		"notice":   one(`SELECT id::text FROM notices WHERE person_id = $1`, s.ID("bob")),
		"session":  one(`SELECT id FROM sessions WHERE person_id = $1 LIMIT 1`, s.ID("bob")),
	}
	for key, id := range s.Acme.IDs {
		s.things[key] = id
	}
	for _, record := range []string{"work_order", "feedback"} {
		s.things[record+"_comment"] = commentOn(t, s.Site, "ann", s.things[record], "Look at the belt.")
	}
	const theirFeedback = "iss_01kjq7k69re00b2a00av14smbj"
	s.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at) VALUES ($1, $2, $3, 'Their feedback', 'open', $4, now(), now())`,
		theirFeedback, s.Polar.OrganizationID, s.ID("depot"), s.ID("pia"))
	s.theirs = []string{
		theirs, theirFeedback, commentOn(t, s.Site, "pia", theirs, "Their comment"),
		one(`SELECT id FROM deliveries WHERE webhook_id = $1 ORDER BY id LIMIT 1`, s.ID("dispatch_hook")),
		one(`SELECT event_id FROM deliveries WHERE webhook_id = $1 ORDER BY id LIMIT 1`, s.ID("dispatch_hook")),
		one(`SELECT id::text FROM notices WHERE person_id = $1`, s.ID("pia")),
		one(`SELECT id FROM sessions WHERE person_id = $1 LIMIT 1`, s.ID("pia")),
	}
	for _, id := range s.Polar.IDs {
		s.theirs = append(s.theirs, id)
	}
	slices.Sort(s.theirs)
	return s
}

// fill replaces placeholders in braces.
func (s *guardedSite) fill(text string) string {
	for name, id := range s.things {
		text = strings.ReplaceAll(text, "{"+name+"}", id)
	}
	return text
}

// try makes the request of a case; change changes its id and parameters first.
func (s *guardedSite) try(v *consoletest.Visitor, c routeCase, key string, change func(id *string, query, form url.Values)) consoletest.Page {
	path, form := s.request(c, change)
	if c.method == http.MethodGet {
		return v.Get(path)
	}
	if key != "" {
		form.Set("form_key", key)
	}
	return v.Post(path, form)
}

func (s *guardedSite) pathOf(c routeCase, change func(id *string, query, form url.Values)) string {
	path, _ := s.request(c, change)
	return path
}

// request returns the path and the form of a case.
func (s *guardedSite) request(c routeCase, change func(id *string, query, form url.Values)) (path string, form url.Values) {
	id := s.fill(c.id)
	query, err := url.ParseQuery(s.fill(c.query))
	if err != nil {
		panic(err)
	}
	if form, err = url.ParseQuery(s.fill(c.form)); err != nil {
		panic(err)
	}
	if change != nil {
		change(&id, query, form)
	}
	path = strings.NewReplacer(":id", url.PathEscape(id), ":token", url.PathEscape(id)).Replace(c.path)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, form
}

// contents are digests of all tables, except those that say when someone was there.
func (s *guardedSite) contents() map[string]string {
	tables := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(relname::text ORDER BY relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE nspname = 'public' AND relkind = 'r' AND relname NOT IN ('sessions', 'rate_counters')`)
	var queries []string
	for _, table := range tables {
		queries = append(queries, `SELECT '`+table+` ' || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS line FROM "`+table+`" t`)
	}
	lines := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(line) FROM (`+strings.Join(queries, " UNION ALL ")+`) x`)
	found := map[string]string{}
	for _, line := range lines {
		table, sum, _ := strings.Cut(line, " ")
		found[table] = sum
	}
	return found
}

// wantUnchanged fails the test if a table has changed.
func (s *guardedSite) wantUnchanged(t *testing.T, before map[string]string, what string) {
	t.Helper()
	for table, sum := range s.contents() {
		if before[table] != sum {
			t.Errorf("%s changes the table %s", what, table)
		}
	}
}

// caseOf returns the case of the route that serves the path.
func caseOf(t *testing.T, method, path string) routeCase {
	t.Helper()
	var best routeCase
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	want := strings.Split(path, "/")
	for _, c := range routeCases {
		got := strings.Split(c.path, "/")
		matches := c.method == method && len(got) == len(want)
		for i := range got {
			matches = matches && (strings.HasPrefix(got[i], ":") || got[i] == want[i])
		}
		if matches && (best.path == "" || !strings.Contains(c.path, ":")) {
			best = c
		}
	}
	if best.path == "" {
		t.Errorf("a page links to %s %s, which is no route", method, path)
	}
	return best
}

// unescaped is html.UnescapeString of the first group of each match.
func unescaped(found [][]string) []string {
	all := make([]string, len(found))
	for i, f := range found {
		all[i] = html.UnescapeString(f[1])
	}
	return all
}
