package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/access"
	"millwright/web"
)

// limitVisitors counts a request without a genuine token of a session, before any query: beyond the
// limit, it leaves no row. Requests whose session has ended are counted once that is known
// (request.serve).
func (c *Console) limitVisitors(g *gin.Context) {
	r := &request{Context: g, console: c, zone: time.UTC}
	token, err := r.Cookie(c.cookieName("session"))
	if err != nil || c.service.People.PersonOfSession(token) == "" {
		if err := r.countVisitor(); err != nil {
			r.fail(err)
			g.Abort()
			return
		}
	}
	g.Next()
}

// countVisitor counts a request without a session by its network, and over that limit by the person
// who knows the browser: behind one address, strangers do not keep people from their sign-in page.
// Errors: rate_limited.
func (r *request) countVisitor() error {
	client := r.client()
	rate, err := r.console.service.Access.CountVisitor(client.Network, r.console.service.People.KnownBrowser(client))
	if err == nil {
		return nil
	}
	r.delay()
	return r.overLimit(rate, "Your network has sent too many requests within a minute.")
}

// delay delays the response to a request over a limit.
func (r *request) delay() {
	r.console.delayed.Wait(r.ctx(), r.client().Network, r.console.options.FailureDelay, r.Writer.Header())
}

// overLimit is the error of a request over a limit of a minute.
func (r *request) overLimit(rate access.Rate, what string) error {
	web.CloseUnread(r.Writer.Header(), r.Request)
	return models.Errorf(models.CodeRateLimited, "%s Try again in %s.", what, plural(r.retryAfter(rate.Reset.Sub(r.now())), "second", "seconds"))
}

// countForm counts a form of a person who is signed in. Beyond the limit, serve shows what was
// entered; beyond twice the limit nothing of the form is read. Signing out is not counted. Errors:
// rate_limited.
func (r *request) countForm() error {
	if r.Request.Method != http.MethodPost || !r.isSignedIn() || r.FullPath() == Root+"/sign-out" {
		return nil
	}
	kind, what := access.FormOfPerson, "forms"
	switch {
	case strings.HasSuffix(r.FullPath(), "/comments"):
		kind, what = access.FormOfComment, "comments"
	case strings.HasSuffix(r.FullPath(), "/seen"):
		kind = access.FormOfPage
	}
	rate, err := r.console.service.Access.CountForm(r.actor(), kind)
	if err == nil {
		return nil
	}
	r.exceeded = r.overLimit(rate, fmt.Sprintf("You have sent more than %d %s within a minute.", rate.Limit, what))
	if rate.Calls > 2*rate.Limit {
		r.delay()
		return r.exceeded
	}
	return nil
}

// showExceeded shows a form that is over a limit again, to be sent later, unless it has passwords.
// Errors: rate_limited, sentForm's.
func (r *request) showExceeded() error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	if len(withoutSecrets(f.Values)) != len(f.Values) {
		return r.exceeded
	}
	text := r.explain(r.exceeded)
	return confirmPage.render(r, text.status, confirmView{
		Title: text.title, Effects: []string{text.detail, "Nothing was done yet. What you entered is kept."},
		Action: r.Request.URL.RequestURI(), Button: "Send it", Harmless: true, Back: Root, Form: f, Hidden: f.entered(),
	})
}
