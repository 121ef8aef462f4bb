package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/mail"
	"millwright/models"
	"millwright/service"
)

func (c *Console) linkRoutes(pages *gin.RouterGroup) {
	for _, path := range []string{"/invite/:token", "/reset/:token"} {
		pages.GET(path, c.public(c.showLink))
		pages.POST(path, c.public(c.useLink))
	}
	pages.GET("/forgotten", c.public(c.showForgotten))
	pages.POST("/forgotten", c.public(c.sendForgotten))
}

// Mailer sends one e-mail; *mail.Client is the real one.
type Mailer interface {
	Send(ctx context.Context, message mail.Message) error
}

// linkPageView is the page of an invitation or of a forgotten password.
type linkPageView struct {
	Link   service.LinkView
	Form   form
	Action string
	// OpenID is where to accept an invitation with an OpenID provider, "" without one.
	OpenID, Provider string
}

// Invites reports whether the link is an invitation.
func (v linkPageView) Invites() bool { return v.Link.Kind == models.LinkInvitation }

var linkPage = newPage[linkPageView]("link.html")

// linkGoneView is the page of a link that cannot be used.
type linkGoneView struct{ Mail bool }

var linkGonePage = newPage[linkGoneView]("link_gone.html")

func (c *Console) showLink(r *request) error {
	return c.renderLink(r, http.StatusOK, nil)
}

// renderLink shows the page of the request's link, with a form that was rejected or nil.
func (c *Console) renderLink(r *request, status int, rejected *form) error {
	link, err := c.service.Link(r.ctx(), r.Param("token"))
	if errors.Is(err, service.ErrLinkInvalid) {
		return linkGonePage.render(r, http.StatusGone, linkGoneView{c.options.Mailer != nil})
	}
	if err != nil {
		return err
	}
	view := linkPageView{
		Link: link, Action: r.Request.URL.Path, Form: newForm(url.Values{"name": {link.Name}}),
		OpenID: c.openIDStart("invite", r.Param("token")), Provider: c.openIDName(),
	}
	if rejected != nil {
		view.Form = *rejected
	}
	return linkPage.render(r, status, view)
}

func (c *Console) useLink(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	signedIn, err := c.service.UseLink(r.ctx(), service.LinkUse{
		Token: r.Param("token"), Name: f.Value("name"), Password: f.Secret("password"), Client: r.client(),
	})
	if errors.Is(err, service.ErrLinkInvalid) {
		return linkGonePage.render(r, http.StatusGone, linkGoneView{c.options.Mailer != nil})
	}
	if err != nil {
		if status, rejected := f.reject(r, err); rejected {
			return c.renderLink(r, status, &f)
		}
		return err
	}
	r.keepKnown(signedIn.Known)
	return r.enter(signedIn.Token, "")
}

// forgottenView is the page of people who forgot their password. Sent is after they asked.
type forgottenView struct {
	Form form
	Mail bool
	Sent bool
}

var forgottenPage = newPage[forgottenView]("forgotten.html")

func (c *Console) showForgotten(r *request) error {
	return forgottenPage.show(r, forgottenView{Form: newForm(nil), Mail: c.options.Mailer != nil})
}

// sendForgotten responds the same at once, whether there is such a person or not: the links
// are made and sent after the response.
func (c *Console) sendForgotten(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	if c.options.Mailer != nil {
		email, client := f.Value("email"), r.client()
		c.later(r.ctx(), "send the link of a forgotten password", func(ctx context.Context) error {
			links, err := c.service.ForgotPassword(service.WithForm(ctx, service.Form{Key: f.Key}), email, client)
			for _, link := range links {
				err = errors.Join(err, c.sendLink(ctx, link))
			}
			return err
		})
	}
	return forgottenPage.show(r, forgottenView{Mail: c.options.Mailer != nil, Sent: true})
}

// Bounds of work that continues after a response.
const (
	maxLater    = 16
	laterPeriod = time.Minute
)

// later runs do after the response. If too much is running, it does nothing: people ask again.
func (c *Console) later(ctx context.Context, what string, do func(context.Context) error) {
	select {
	case c.running <- struct{}{}:
	default:
		c.log.WarnContext(ctx, "too much is running", "what", what)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laterPeriod)
	c.background.Go(func() {
		defer func() { <-c.running }()
		defer cancel()
		if err := do(ctx); err != nil {
			c.log.WarnContext(ctx, "work after a response failed", "what", what, "error", err.Error())
		}
	})
}

// Wait waits for work that continues after responses.
func (c *Console) Wait() { c.background.Wait() }

// LinkURL returns the address of a sign-in link of the installation with the public URL.
func LinkURL(publicURL string, link service.LinkEmail) string {
	if link.Kind == models.LinkInvitation {
		return publicURL + Root + "/invite/" + link.Token
	}
	return publicURL + Root + "/reset/" + link.Token
}

// sendLink sends a link by e-mail.
func (c *Console) sendLink(ctx context.Context, link service.LinkEmail) error {
	subject, text := "Choose a new password", "Someone, probably you, asked for a new password for Millwright.\nIf it was not you, do nothing: your password stays as it is."
	if link.Kind == models.LinkInvitation {
		subject, text = "You are invited to "+link.Organization, "You are invited to use Millwright, the maintenance service of "+link.Organization+"."
	}
	return c.options.Mailer.Send(ctx, mail.Message{
		ID: "link-" + time.Now().UTC().Format("20060102150405.000000000"), To: mail.Address{Name: link.PersonName, Email: link.Email}, Subject: subject,
		Text: fmt.Sprintf("Hello %s,\n\n%s\n\nChoose a password here. The link works once, until %s:\n\n%s\n\nOrganization: %s\n",
			link.PersonName, text, link.ExpiresAt.Format("2 January 2006, 15:04 UTC"), LinkURL(c.options.PublicURL, link), link.Organization),
	})
}
