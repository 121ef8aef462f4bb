package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/store"
	"millwright/web"
)

// request is one request for a page.
type request struct {
	*gin.Context
	console *Console
	// viewer is the person who is signed in; without one, token is "".
	viewer people.Viewer
	token  string
	zone   *time.Location
	// ended is the person whose session has ended, "" if no one was signed in.
	ended string
	// exceeded is set if a form is over a limit of its person.
	exceeded error
	// sent is the size of the form that was sent.
	sent int
	// polled is true if the page made the request by itself: it does not extend the session.
	polled bool
	// message is shown instead of the one that a write left (takeDone).
	message string
}

func (r *request) ctx() context.Context { return r.Request.Context() }

// actor is the person who is signed in, for calls of the service.
func (r *request) actor() store.Actor { return r.viewer.Actor }

func (r *request) isSignedIn() bool { return r.token != "" }

// may reports whether the person has an organization-wide permission.
func (r *request) may(grant models.OrganizationGrant) bool { return r.viewer.Has(grant) }

// require rejects people without the permission. Errors: permission_denied.
func (r *request) require(grant models.OrganizationGrant) error {
	if r.may(grant) {
		return nil
	}
	return models.Errorf(models.CodePermissionDenied, "This page requires the %s permission, which an administrator of %s can give you.",
		grantNames[grant], r.viewer.OrganizationName)
}

// requires serves a page to people with the permission.
func requires(grant models.OrganizationGrant, serve handler) handler {
	return func(r *request) error {
		if err := r.require(grant); err != nil {
			return err
		}
		return serve(r)
	}
}

// grantNames are the organization-wide permissions as the console names them.
var grantNames = map[models.OrganizationGrant]string{
	models.GrantIntegrations: "Integrations", models.GrantIncomingWorkOrders: "Incoming work orders",
	models.GrantLogRecords: "Log Records", models.GrantPeople: "People",
}

// loadViewer reads the session of the request's cookie, if there is one. Errors: unavailable.
func (r *request) loadViewer() error {
	r.zone = time.UTC
	token, err := r.Cookie(r.console.cookieName("session"))
	if err != nil || token == "" {
		return nil //nolint:nilerr // no cookie: the visitor is not signed in
	}
	session := r.console.service.People.Session
	if r.polled {
		session = r.console.service.People.PolledSession
	}
	viewer, err := session(r.ctx(), token)
	if errors.Is(err, people.ErrNoSession) {
		// The cookie stays, for the form that another tab sends: it tells whose input is kept.
		if r.ended = r.console.service.People.PersonOfSession(token); r.ended == "" {
			r.forgetSession()
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.enterAs(viewer, token)
	return nil
}

// enterAs makes the request one of the person of a session.
func (r *request) enterAs(viewer people.Viewer, token string) {
	r.viewer, r.token = viewer, token
	if zone, err := time.LoadLocation(viewer.TimeZone); err == nil {
		r.zone = zone
	}
	stateOf(r.ctx()).person = viewer.IdentityID
}

// serve serves the page: to people as a call of their organization, to others if their network
// may make more requests. A form is read first, since reading takes no place. Errors:
// rate_limited, readForm's, unavailable, invalid_request, the page's.
func (r *request) serve(page handler) error {
	if !r.isSignedIn() && r.ended != "" { // others without a session were counted
		if err := r.countVisitor(); err != nil {
			return err
		}
	}
	if err := r.countForm(); err != nil {
		return err
	}
	if err := r.readForm(); err != nil {
		return err
	}
	if r.exceeded != nil {
		return r.showExceeded()
	}
	if r.isSignedIn() && strings.HasSuffix(r.FullPath(), ".csv") {
		leave, err := r.console.service.Access.EnterExport(r.ctx(), r.actor())
		if err != nil {
			return err
		}
		defer leave()
	}
	if r.isSignedIn() {
		end, err := r.console.service.Access.EnterCall(r.ctx(), r.viewer.OrganizationID)
		if err != nil {
			return err
		}
		defer end()
	}
	leave, err := r.enterParsing()
	if err != nil {
		return err
	}
	defer leave()
	if err := r.checkQuery(); err != nil {
		return err
	}
	return page(r)
}

// checkQuery rejects a query string that is malformed or has what no record can contain.
// Errors: invalid_request.
func (r *request) checkQuery() error {
	query, err := url.ParseQuery(r.Request.URL.RawQuery)
	for name, values := range query {
		if !models.IsText(name + strings.Join(values, "")) {
			err = errMalformed
		}
	}
	if err != nil {
		return errMalformed
	}
	return nil
}

// client is the browser, for the service.
func (r *request) client() people.Client {
	known, _ := r.Cookie(r.console.cookieName("browser"))
	return people.Client{
		Network: web.ClientAddress(r.Request, r.console.options.TrustedProxies), UserAgent: r.GetHeader("User-Agent"), Known: known,
	}
}

// clientOf is the browser that sent a form with which someone signs in: its script adds the time
// zone of the device ({{template "zone"}}).
func (r *request) clientOf(f form) people.Client {
	client := r.client()
	client.TimeZone = f.Value("zone")
	return client
}

// askToSignIn sends the visitor to the sign-in page, which then redirects to this one. If the
// session ended while a form was filled in, the sign-in page keeps what was entered.
func (r *request) askToSignIn() error {
	if r.Request.Method == http.MethodPost && r.ended != "" {
		f, err := r.sentForm()
		if err != nil {
			return err
		}
		if len(withoutSecrets(f.Values)) == len(f.Values) { // a form with a password is entered again
			return r.keepInput(f)
		}
	}
	to := Root + "/sign-in"
	if r.Request.Method == http.MethodGet && r.Request.URL.Path != Root {
		to += "?next=" + url.QueryEscape(r.Request.URL.RequestURI())
	}
	r.Redirect(http.StatusSeeOther, to)
	return nil
}

// maxNext limits the length of the path that a sign-in redirects to: it is kept in a
// cookie, of which browsers keep 4,096 bytes.
const maxNext = 1000

// localPath returns the path if it belongs to a page of the console, else the start page: a
// link must not go through the sign-in to another site, nor start a sign-in at the provider.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || len(path) > maxNext || strings.ContainsAny(path, "\\\r\n") ||
		!Owns(u.Path) || u.Path == "/" || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/.") || strings.HasPrefix(u.Path, Root+"/openid/") {
		return Root
	}
	return path
}

// doneCookie has the message of the page after a write, for doneSeconds at most. A message in the
// URL would be shown again by a reload, a bookmark and everyone who gets the link.
const (
	doneCookie  = "done"
	doneSeconds = 60
)

// done redirects after a write, to a page that shows the text of what, a key of doneTexts, once.
func (r *request) done(to, what string) error {
	if what != "" {
		r.setCookie(doneCookie, what, doneSeconds)
	}
	r.Redirect(http.StatusSeeOther, to)
	return nil
}

// takeDone returns the message of the write before the page, "" if it was shown before. withExpired
// adds the number of deliveries that were left out.
func (r *request) takeDone() string {
	if r.message != "" {
		return r.message
	}
	what, err := r.Cookie(r.console.cookieName(doneCookie))
	if err != nil {
		return ""
	}
	r.setCookie(doneCookie, "", -1)
	key, expired, _ := strings.Cut(what, ".")
	text := doneTexts[key]
	if n, err := strconv.Atoi(expired); err == nil && text != "" {
		text += " " + plural(n, "delivery was", "deliveries were") + " left out: events older than 30 days are not sent again."
	}
	return text
}

// moment is a time as the templates show it: short, in the person's zone, with the exact time
// there and in UTC on hover and focus ({{template "time" .}}).
type moment struct{ Short, Exact, UTC, ISO string }

// Known reports whether there is a time.
func (m moment) Known() bool { return m.ISO != "" }

// moment returns how a time is shown to the person.
func (r *request) moment(at models.Time) moment {
	const layout = "2 Jan 2006 15:04:05"
	return moment{shortTime(at.In(r.zone), r.now().In(r.zone)), at.In(r.zone).Format(layout), at.Format(layout + " UTC"), at.String()}
}

func (r *request) now() time.Time { return r.console.options.Now() }

// shortTime names the days around now, and the weekdays of the week before and after it.
func shortTime(at, now time.Time) string {
	const clock = " 15:04"
	noon := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, time.UTC) }
	switch days := int(noon(at).Sub(noon(now)).Hours() / 24); {
	case days == 0:
		return at.Format("Today" + clock)
	case days == 1:
		return at.Format("Tomorrow" + clock)
	case days == -1:
		return at.Format("Yesterday" + clock)
	case days > -7 && days < 7:
		return at.Format("Mon" + clock)
	case at.Year() == now.Year():
		return at.Format("2 Jan" + clock)
	}
	return at.Format("2 Jan 2006")
}

// due returns how the time is shown by which something is due, of what is overdue how late it is.
func (r *request) due(at *models.Time, overdue bool) moment {
	due := r.optionalMoment(at)
	if overdue {
		due.Short = lateness(at.Time, r.now()) + " late"
	}
	return due
}

// lateness returns how long ago a time was, in the largest unit. A time.Duration is at most 292 years.
func lateness(at, now time.Time) string {
	switch minutes := int(now.Unix()-at.Unix()) / 60; {
	case minutes >= 24*60:
		return plural(minutes/(24*60), "day", "days")
	case minutes >= 60:
		return plural(minutes/60, "hour", "hours")
	default:
		return plural(max(1, minutes), "minute", "minutes")
	}
}

// optionalMoment returns a moment that is not Known for nil.
func (r *request) optionalMoment(at *models.Time) moment {
	if at == nil {
		return moment{}
	}
	return r.moment(*at)
}
