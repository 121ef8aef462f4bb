package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// visit is a request without a session.
func visit(status int, network, method, path string, form url.Values) request {
	return request{status, func(l *limited) consoletest.Page {
		return l.NewVisitor().Do(method, path, form, "X-Forwarded-For", network)
	}}
}

// byPerson is a request of a person in a session that has just begun: a GET if there is no form.
func byPerson(status int, key, path string, form url.Values, headers ...string) request {
	return request{status, func(l *limited) consoletest.Page {
		method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[form == nil]
		return l.SignedIn(key).Do(method, l.fill(path), form, append(headers, "X-Forwarded-For", "2001:db8:1:1::1")...)
	}}
}

// passwordFor is the right password for what is to succeed.
func passwordFor(status int) string {
	return map[bool]string{true: consoletest.Password, false: "wrong"}[status == http.StatusSeeOther]
}

// signIn is a sign-in of someone new to the network, with the password for the status.
func signIn(status int, network, email string) request {
	return request{status, func(l *limited) consoletest.Page {
		return l.NewVisitor().Do(http.MethodPost, "/console/sign-in", credentials(l.fill(email), passwordFor(status)), "X-Forwarded-For", network)
	}}
}

// inBrowser is a sign-in in a browser in which the person has signed in before.
func inBrowser(status int, network, email, browser string) request {
	return request{status, func(l *limited) consoletest.Page {
		v, at := l.NewVisitor(), &url.URL{Scheme: "http", Host: strings.TrimPrefix(l.URL, "http://"), Path: "/console"}
		if l.browsers[email+browser] == nil {
			v.Do(http.MethodPost, "/console/sign-in", credentials(email, consoletest.Password), "X-Forwarded-For", "203.0.113.1").Want(http.StatusSeeOther)
			v.Post("/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
			l.browsers[email+browser] = v.Jar.Cookies(at)
		}
		v.Jar.SetCookies(at, l.browsers[email+browser])
		return v.Do(http.MethodPost, "/console/sign-in", credentials(email, passwordFor(status)), "X-Forwarded-For", network)
	}}
}

// signInAgain is signing in again in a session, with the password for the status.
func signInAgain(status int, key string) request {
	return request{status, func(l *limited) consoletest.Page {
		v := l.SignedIn(key)
		l.Exec(`UPDATE sessions SET recent_until = created_at WHERE person_id = $1`, l.ID(key))
		return v.Post("/console/sign-in/again", url.Values{"password_again": {passwordFor(status)}})
	}}
}

// forgotten asks for a link of the person. The page does not tell whether one was made, the status
// does: 429 if it was not.
func forgotten(network, email, key string) request {
	status := map[bool]int{true: http.StatusTooManyRequests, false: http.StatusOK}[key == ""]
	return request{status, func(l *limited) consoletest.Page {
		links := func() int {
			l.Console.Wait()
			return servicetest.Value[int](l.Fixture, `SELECT count(*) FROM sign_in_links WHERE person_id = $1`, l.things[key])
		}
		before := links()
		page := l.NewVisitor().Do(http.MethodPost, "/console/forgotten", url.Values{"email": {l.fill(email)}, "form_key": {l.fill("{n}")}}, "X-Forwarded-For", network).Want(http.StatusOK)
		if links() == before {
			page.Status = http.StatusTooManyRequests
		}
		return page
	}}
}

// lastLink is the second link of an organization, and counts as the 500th.
func lastLink(key string) request {
	link := byPerson(http.StatusSeeOther, "ann", "/console/people/{"+key+"}/link", url.Values{})
	return request{link.status, func(l *limited) consoletest.Page {
		defer l.Exec(`UPDATE rate_counters SET calls = 500 WHERE calls = 2`)
		return link.send(l)
	}}
}

func operatorsLink(key string) request {
	return request{http.StatusOK, func(l *limited) consoletest.Page {
		if _, err := l.People.NewPersonLink(l.t.Context(), store.Operator(), store.NoKey, l.ID(key), true); err != nil {
			l.t.Fatal(err)
		}
		return consoletest.Page{Status: http.StatusOK}
	}}
}

// handleForm is a large form of the tenant whose handling goes on. One that would have to wait is
// rejected at once.
func handleForm(tenant string) request {
	return request{http.StatusOK, func(l *limited) consoletest.Page {
		ctx, cancel := context.WithTimeout(l.t.Context(), 100*time.Millisecond)
		defer cancel()
		leave, err := l.Access.EnterParsing(ctx, l.fill(tenant))
		if err != nil {
			return consoletest.Page{Status: http.StatusServiceUnavailable}
		}
		l.end = append(l.end, leave)
		return consoletest.Page{Status: http.StatusOK}
	}}
}
