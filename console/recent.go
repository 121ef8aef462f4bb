package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/service/people"
)

func (c *Console) recentRoutes(pages *gin.RouterGroup) {
	pages.GET("/sign-in/again", c.signedIn(c.showSignInAgain))
	pages.POST("/sign-in/again", c.recent(func(r *request) error { return r.done(localPath(r.PostForm("next")), "") }))
}

// recent serves a page to people who have signed in a short time ago, and renews that with
// each form they send. Others sign in again first: a form that was sent goes on with what was
// entered, except passwords.
func (c *Console) recent(serve handler) gin.HandlerFunc {
	return c.signedIn(c.afterRecentSignIn(serve))
}

func (c *Console) afterRecentSignIn(serve handler) handler {
	return func(r *request) error {
		if r.Request.Method == http.MethodGet {
			if !r.viewer.Recent {
				return r.done(linkTo("/sign-in/again", "next", r.Request.URL.RequestURI()), "")
			}
			return serve(r)
		}
		f, err := r.sentForm()
		if err != nil {
			return err
		}
		switch {
		case r.viewer.Recent:
			err = c.service.People.RenewRecent(r.ctx(), r.viewer)
		case f.Values.Has(passwordAgain):
			proceed, failed := c.signInAgain(r, f)
			if !proceed {
				return failed
			}
		default:
			return c.askAgain(r, http.StatusUnauthorized, f, "")
		}
		if err != nil {
			return err
		}
		return serve(r)
	}
}

// passwordAgain is the field of the password on the page that asks to sign in again.
const passwordAgain = "password_again"

// signInAgain checks the password that was entered to go on with a form. Unless it is right,
// it responds.
func (c *Console) signInAgain(r *request, f form) (proceed bool, err error) {
	failing, cancel := c.failureDelay(r.ctx())
	defer cancel()
	password := f.Secret(passwordAgain)
	f.Values.Del(passwordAgain)
	err = c.service.People.SignInAgain(r.ctx(), r.viewer, password)
	if limit, limited := errors.AsType[*people.TooManyAttemptsError](err); limited {
		c.metrics.signIns.WithLabelValues(signInLimited).Inc()
		r.retryAfter(limit.RetryAfter)
		return false, c.askAgain(r, http.StatusTooManyRequests, f, limit.Error())
	}
	if errors.Is(err, people.ErrSignInFailed) {
		c.metrics.signIns.WithLabelValues(signInFailed).Inc()
		<-failing.Done()
		return false, c.askAgain(r, http.StatusUnauthorized, f, "This is not your password.")
	}
	if err == nil {
		c.metrics.signIns.WithLabelValues(signInSucceeded).Inc()
	}
	return err == nil, err
}

// againView asks a person to sign in again. The form goes to Action with what was entered.
type againView struct {
	Form   form
	Action string
	Kept   []namedValue
	// Sent is whether a form was sent, which goes on then.
	Sent bool
	// Password is whether the person signs in again with a password, OpenID is where with the
	// OpenID provider, "" with neither.
	Password         bool
	OpenID, Provider string
	// Email is the person's, for password managers.
	Email string
	// Done is whether the sign-in is recent, and no page to go on with is known.
	Done bool
}

var againPage = newPage[againView]("sign_in_again.html")

// showSignInAgain asks to sign in again before the page next.
func (c *Console) showSignInAgain(r *request) error {
	next := r.Query("next")
	switch {
	case !r.viewer.Recent:
		return c.renderAgain(r, http.StatusOK, againView{
			Action: Root + "/sign-in/again", Kept: []namedValue{{"next", next}}, OpenID: linkTo("/openid/again", "next", next),
		})
	case next != "":
		return r.done(localPath(next), "")
	}
	return againPage.show(r, againView{Done: true})
}

// askAgain asks to sign in again before the form that was sent goes on. With the OpenID
// provider this happens in another tab, so that this one keeps what was entered.
func (c *Console) askAgain(r *request, status int, f form, problem string) error {
	view := againView{Action: r.Request.URL.RequestURI(), Sent: r.path() != "/sign-in/again", OpenID: linkTo("/openid/again"), Form: form{Error: problem}}
	if !view.Sent {
		view.OpenID = linkTo("/openid/again", "next", f.Value("next"))
	}
	view.Kept = keptValues(withoutSecrets(f.Values))
	return c.renderAgain(r, status, view)
}

// withoutSecrets returns the values of a form that may be sent to the browser again.
func withoutSecrets(values url.Values) url.Values {
	kept := maps.Clone(values)
	maps.DeleteFunc(kept, func(name string, _ []string) bool {
		return name == "username" || strings.Contains(name, "password") || strings.Contains(name, "secret")
	})
	return kept
}

// keptValues returns the values of a form as hidden fields.
func keptValues(values url.Values) (kept []namedValue) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			kept = append(kept, namedValue{name, value})
		}
	}
	return kept
}

func (c *Console) renderAgain(r *request, status int, view againView) error {
	view.Email, view.Password, view.Provider = r.viewer.Email, r.viewer.HasPassword && !r.viewer.OpenIDRequired, c.provider.Name
	if view.Password || c.openID == nil {
		view.OpenID = ""
	}
	return againPage.render(r, status, view)
}
