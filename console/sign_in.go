package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/service/people"
)

func (c *Console) signInRoutes(pages *gin.RouterGroup) {
	pages.GET("/sign-in", c.public(c.showSignIn))
	pages.POST("/sign-in", c.public(c.signIn))
	pages.POST("/sign-in/organization", c.public(c.chooseOrganization))
	pages.POST("/sign-out", c.public(c.signOut))
}

// signInView is the sign-in page. Next is the page that follows.
type signInView struct {
	Form form
	Next string
	// Ended is true if the visitor's session has ended, Kept is the input that it left (keepInput).
	Ended bool
	Kept  string
	// OpenID is the URL that signs in with the OpenID provider, "" if absent.
	OpenID, Provider string
}

var signInPage = newPage[signInView]("sign_in.html")

// choiceView asks a person of several organizations which one to sign in to.
type choiceView struct {
	Choices            []people.OrganizationChoice
	Choice, Next, Kept string
}

var choicePage = newPage[choiceView]("sign_in_organization.html")

func (c *Console) showSignIn(r *request) error {
	if r.isSignedIn() {
		return r.done(localPath(r.Query("next")), "")
	}
	view := c.signInView(newForm(nil), r.Query("next"))
	view.Ended = r.ended != ""
	return signInPage.show(r, view)
}

func (c *Console) signInView(f form, next string) signInView {
	return signInView{Form: f, Next: next, OpenID: c.openIDStart("next", next), Provider: c.provider.Name}
}

// renderSignIn shows the sign-in page with what went wrong.
func (c *Console) renderSignIn(r *request, status int, problem string) error {
	view := c.signInView(newForm(nil), "")
	view.Form.Error = problem
	return signInPage.render(r, status, view)
}

func (c *Console) signIn(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	kept := f.Value("kept")
	if r.isSignedIn() && kept != "" { // in another tab
		return r.showKept(kept)
	}
	failing, cancel := c.failureDelay(r.ctx())
	defer cancel()
	signedIn, err := c.service.People.SignIn(r.ctx(), people.SignInAttempt{
		Email: f.Value("email"), Password: f.Secret("password"), Client: r.clientOf(f),
	})
	view := c.signInView(newForm(url.Values{"email": {f.Value("email")}}), f.Value("next"))
	view.Kept = kept
	if limit, limited := errors.AsType[*people.TooManyAttemptsError](err); limited {
		c.metrics.signIns.WithLabelValues(signInLimited).Inc()
		view.Form.Error = limit.Error()
		r.retryAfter(limit.RetryAfter)
		return signInPage.render(r, http.StatusTooManyRequests, view)
	}
	suspended := errors.Is(err, people.ErrSuspended)
	if suspended || errors.Is(err, people.ErrSignInFailed) {
		c.metrics.signIns.WithLabelValues(signInFailed).Inc()
		<-failing.Done()
		view.Form.Error = "The e-mail address or the password is wrong."
		if suspended {
			view.Form.Error = "Your organization is suspended: no one can sign in to it. Ask one of its administrators."
		}
		return signInPage.render(r, http.StatusUnauthorized, view)
	}
	if err != nil {
		return err
	}
	c.metrics.signIns.WithLabelValues(signInSucceeded).Inc()
	r.keepKnown(signedIn.Known)
	if len(signedIn.Choices) > 0 {
		return choicePage.show(r, choiceView{signedIn.Choices, signedIn.Choice, f.Value("next"), kept})
	}
	return r.enter(signedIn.Token, f.Value("next"), kept)
}

// failureDelay returns a context that ends when a failed sign-in may be answered, so that the
// time until then tells nothing about the account.
func (c *Console) failureDelay(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, time.Now().Add(c.options.FailureDelay))
}

// enter starts the session in the browser and shows the page that was asked for, or the input
// that was kept since an earlier session ended.
func (r *request) enter(token, next, kept string) error {
	if err := r.keepSession(token); err != nil {
		return err
	}
	if kept != "" {
		viewer, err := r.console.service.People.Session(r.ctx(), token)
		if err != nil {
			return err
		}
		r.enterAs(viewer, token)
		return r.showKept(kept)
	}
	return r.done(localPath(next), "")
}

func (c *Console) chooseOrganization(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	token, err := c.service.People.ChooseOrganization(r.ctx(), f.Value("choice"), f.Value("person"), r.clientOf(f))
	if errors.Is(err, people.ErrSignInFailed) {
		return c.renderSignIn(r, http.StatusUnauthorized, "That took too long, or something has changed in the meantime. Sign in again.")
	}
	if err != nil {
		return err
	}
	return r.enter(token, f.Value("next"), f.Value("kept"))
}

func (c *Console) signOut(r *request) error {
	if r.isSignedIn() {
		if err := c.service.People.SignOut(r.ctx(), r.token); err != nil {
			return err
		}
	}
	r.forgetSession()
	r.Header("Clear-Site-Data", `"cache"`)
	return r.done(Root+"/sign-in", "signed-out")
}
