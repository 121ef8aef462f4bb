package console_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millwright/console/consoletest"
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
		links := func() (n int) {
			query := l.Pool.QueryRow
			if l.locks != nil {
				query = l.locks.QueryRow
			}
			l.Console.Wait()
			if err := query(l.t.Context(), `SELECT count(*) FROM sign_in_links WHERE person_id = $1`, l.things[key]).Scan(&n); err != nil {
				l.t.Fatal(err)
			}
			return n
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

// secret is a request for a token.
func secret(status int, network, client, secret string) request {
	return request{status, func(l *limited) consoletest.Page {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {l.fill(client)}, "client_secret": {secret}}
		return l.NewVisitor().At(l.api).Do(http.MethodPost, "/v1/oauth/token", form, "X-Forwarded-For", network)
	}}
}

// token returns a token of an integration, an invalid one of "none".
func (l *limited) token(integration string) string {
	if client, known := l.Acme.Integrations[integration]; known && l.tokens[integration] == "" {
		token, err := l.Access.IssueToken(l.t.Context(), client.ClientID, client.ClientSecret, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		l.tokens[integration] = token.AccessToken
	}
	return cmp.Or(l.tokens[integration], integration)
}

// call is a call of the API, without a token if the integration is "".
func call(status int, network, integration, path string) request {
	return request{status, func(l *limited) consoletest.Page {
		headers := []string{"X-Forwarded-For", network}
		if integration != "" {
			headers = append(headers, "Authorization", "Bearer "+l.token(integration))
		}
		return l.NewVisitor().At(l.api).Do(http.MethodGet, path, nil, headers...)
	}}
}

// startBody sends a call without its body. The status is 100 when the body is being received.
func startBody(integration string) request {
	return request{http.StatusContinue, func(l *limited) (page consoletest.Page) {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(l.api, "http://"), 20*time.Second)
		if err != nil {
			l.t.Fatal(err)
		}
		end := func() { _ = conn.Close() }
		l.t.Cleanup(end)
		l.end = append(l.end, end)
		_, err = fmt.Fprintf(conn, "POST /v1/work-orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", l.token(integration))
		if err == nil {
			_, err = fmt.Fscanf(bufio.NewReader(conn), "HTTP/1.1 %d", &page.Status)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		return page
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
