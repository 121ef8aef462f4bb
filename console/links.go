package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/people"
)

func (c *Console) linkRoutes(pages *gin.RouterGroup) {
	for _, path := range []string{"/invite/:token", "/reset/:token"} {
		pages.GET(path, c.public(shows(c.renderLink)))
		pages.POST(path, c.public(c.useLink))
	}
	pages.GET("/forgotten", c.public(c.showForgotten))
	pages.POST("/forgotten", c.public(c.sendForgotten))
}

// linkPageView is the page for an invitation or a forgotten password.
type linkPageView struct {
	Link   people.LinkView
	Form   form
	Action string
	// OpenID is the URL that accepts an invitation with the OpenID provider, "" if absent.
	OpenID, Provider string
}

// Invites reports whether the link is an invitation.
func (v linkPageView) Invites() bool { return v.Link.Kind == models.LinkInvitation }

var linkPage = newPage[linkPageView]("link.html")

// linkGoneView is the page for a link that cannot be used.
type linkGoneView struct{ Mail bool }

var linkGonePage = newPage[linkGoneView]("link_gone.html")

// renderLink shows the page for the request's link; rejected is the form to show again, or nil.
func (c *Console) renderLink(r *request, status int, rejected *form) error {
	link, err := c.service.People.Link(r.ctx(), r.client().Network, r.Param("token"))
	if errors.Is(err, people.ErrLinkInvalid) {
		return linkGonePage.render(r, http.StatusGone, linkGoneView{c.service.People.MailsLinks()})
	}
	if err != nil {
		return err
	}
	view := linkPageView{
		Link: link, Action: r.Request.URL.Path, Form: newForm(url.Values{"name": {link.Name}}).orRejected(rejected),
		OpenID: c.openIDStart("invite", r.Param("token")), Provider: c.provider.Name,
	}
	return linkPage.render(r, status, view)
}

func (c *Console) useLink(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	signedIn, err := c.service.People.UseLink(r.ctx(), people.LinkUse{
		Token: r.Param("token"), Name: f.Value("name"), Password: f.Secret("password"), Client: r.clientOf(f),
	})
	if errors.Is(err, people.ErrLinkInvalid) {
		return linkGonePage.render(r, http.StatusGone, linkGoneView{c.service.People.MailsLinks()})
	}
	if err != nil {
		return r.finish(f, err, outcome{again: c.renderLink})
	}
	r.keepKnown(signedIn.Known)
	return r.enter(signedIn.Token, "", "")
}

// forgottenView is the page for people who forgot their password. Sent is after they asked.
type forgottenView struct {
	Form form
	Mail bool
	Sent bool
}

var forgottenPage = newPage[forgottenView]("forgotten.html")

func (c *Console) showForgotten(r *request) error {
	return forgottenPage.show(r, forgottenView{Form: newForm(nil), Mail: c.service.People.MailsLinks()})
}

// sendForgotten responds the same at once, whether there is such a person or not: the links
// are made after the response.
func (c *Console) sendForgotten(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	if c.service.People.MailsLinks() {
		email, client := f.Value("email"), r.client()
		c.later(r.ctx(), "make the link of a forgotten password", func(ctx context.Context) error {
			return c.service.People.ForgotPassword(ctx, f.Key, email, client)
		})
	}
	return forgottenPage.show(r, forgottenView{Mail: c.service.People.MailsLinks(), Sent: true})
}

// laterPeriod limits work that continues after a response.
const laterPeriod = time.Minute

// later runs do after the response. If that takes too long, it drops do: people ask again.
func (c *Console) later(ctx context.Context, what string, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laterPeriod)
	c.background.Go(func() {
		defer cancel()
		if err := do(ctx); err != nil {
			c.log.WarnContext(ctx, "work after a response failed", "what", what, "error", err.Error())
		}
	})
}

// Wait waits for work that continues after responses.
func (c *Console) Wait() { c.background.Wait() }
