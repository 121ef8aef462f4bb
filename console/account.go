package console

import (
	_ "embed"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/people"
)

func (c *Console) accountRoutes(pages *gin.RouterGroup) {
	pages.GET("/account", c.signedIn(c.showAccount))
	pages.POST("/account", c.signedIn(c.changeProfile))
	pages.POST("/account/password", c.signedIn(c.setPassword))
	pages.POST("/account/openid/unlink", c.recent(c.unlinkAccount))
	pages.POST("/account/sessions/end-others", c.recent(c.endOtherSessions))
	pages.POST("/account/sessions/:id/end", c.recent(c.endSession))
}

//go:embed zones.txt
var zoneNames string

// accountView is what people see and change about themselves.
type accountView struct {
	Email    string
	Profile  form
	Password form
	// HasPassword is false for people who only sign in with an OpenID provider.
	HasPassword bool
	// OpenIDRequired is whether passwords let no one of the organization in.
	OpenIDRequired bool
	Zones, Themes  []option
	Sessions       []sessionRow
	// Accounts are the linked accounts of OpenID providers; Unlink is the form that ends one.
	Accounts []accountRow
	Unlink   form
}

type accountRow struct {
	Issuer, Subject, Provider string
	Since                     moment
}

type sessionRow struct {
	ID, Browser, Network, Method string
	Since, Seen                  moment
	Current                      bool
}

var accountPage = newPage[accountView]("account.html")

var methodNames = map[models.SignInMethod]string{
	models.SignedInByPassword: "with the password", models.SignedInByLink: "with a link", models.SignedInByOpenID: "with the OpenID provider",
}

func (c *Console) showAccount(r *request) error {
	return c.renderAccount(r, http.StatusOK, nil, nil, nil)
}

// renderAccount shows the page, with forms that were rejected or nil.
func (c *Console) renderAccount(r *request, status int, profile, password, unlink *form) error {
	sessions, err := c.service.People.Sessions(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	accounts, err := c.service.People.LinkedAccounts(r.ctx(), r.actor())
	if err != nil {
		return err
	}
	zone := r.viewer.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	view := accountView{
		Email: r.viewer.Email, HasPassword: r.viewer.HasPassword, OpenIDRequired: r.viewer.OpenIDRequired,
		Profile:  newForm(url.Values{"name": {r.viewer.Name}, "time_zone": {zone}, "theme": {string(r.viewer.Theme)}}).orRejected(profile),
		Password: newForm(nil).orRejected(password), Unlink: newForm(nil).orRejected(unlink),
		Themes: []option{{Value: "", Label: "As the device"}, {Value: "light", Label: "Light"}, {Value: "dark", Label: "Dark"}},
	}
	for name := range strings.Lines(zoneNames) {
		name = strings.TrimSpace(name)
		view.Zones = append(view.Zones, option{Value: name, Label: strings.ReplaceAll(name, "_", " ")})
	}
	for _, s := range sessions {
		view.Sessions = append(view.Sessions, sessionRow{
			ID: s.ID, Browser: browserName(s.UserAgent), Network: s.Network, Method: methodNames[s.Method],
			Since: r.moment(s.CreatedAt), Seen: r.moment(s.SeenAt), Current: s.ID == r.viewer.SessionID,
		})
	}
	for _, a := range accounts {
		view.Accounts = append(view.Accounts, accountRow{a.Issuer, a.Subject, c.providerName(a.Issuer), r.moment(a.CreatedAt)})
	}
	return accountPage.render(r, status, view)
}

func browserName(userAgent string) string {
	named := func(names [][2]string) string {
		for _, known := range names {
			if strings.Contains(userAgent, known[0]) {
				return known[1]
			}
		}
		return ""
	}
	name := named([][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}})
	system := named([][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}})
	switch {
	case name == "":
		return "Another browser"
	case system == "":
		return name
	}
	return name + " on " + system
}

func (c *Console) changeProfile(r *request) error {
	page := outcome{to: Root + "/account", done: "saved", again: func(r *request, status int, f *form) error { return c.renderAccount(r, status, f, nil, nil) }}
	return r.submit(page, func(f form) error {
		zone := f.Value("time_zone")
		if zone == "UTC" {
			zone = ""
		}
		return c.service.People.ChangeProfile(r.ctx(), r.actor(), f.key(r), people.Profile{Name: f.Value("name"), TimeZone: zone, Theme: models.Theme(f.Value("theme"))})
	})
}

// setPassword changes the password: by the current one, or without one after a recent sign-in.
func (c *Console) setPassword(r *request) error {
	if r.viewer.HasPassword {
		return c.changePassword(r)
	}
	return c.afterRecentSignIn(c.changePassword)(r)
}

func (c *Console) changePassword(r *request) error {
	f, err := r.sentForm()
	if err != nil {
		return err
	}
	token, err := c.service.People.ChangePassword(r.ctx(), r.actor(), f.key(r), people.PasswordChange{
		SessionID: r.viewer.SessionID, Email: r.viewer.Email, Old: f.Secret("old_password"), New: f.Secret("password"), Client: r.client(),
	})
	if err == nil {
		r.setCookie("session", token, sessionCookieAge)
	}
	if limit, limited := errors.AsType[*people.TooManyAttemptsError](err); limited {
		f.Values, f.Error = nil, limit.Error()
		r.retryAfter(limit.RetryAfter)
		return c.renderAccount(r, http.StatusTooManyRequests, nil, &f, nil)
	}
	return r.finish(f, err, outcome{to: Root + "/account", done: "password-changed", again: func(r *request, status int, f *form) error {
		return c.renderAccount(r, status, nil, f, nil)
	}})
}

// providerName is what people call the OpenID provider with the issuer.
func (c *Console) providerName(issuer string) string {
	if issuer == c.provider.Issuer {
		return c.provider.Name
	}
	return issuer
}

func (c *Console) unlinkAccount(r *request) error {
	page := outcome{to: Root + "/account", done: "unlinked", again: func(r *request, status int, f *form) error { return c.renderAccount(r, status, nil, nil, f) }}
	return r.submit(page, func(f form) error {
		return c.service.People.UnlinkAccount(r.ctx(), r.actor(), f.key(r), r.viewer.SessionID, f.Value("issuer"), f.Value("subject"))
	})
}

func (c *Console) endSession(r *request) error {
	if err := c.service.People.EndSession(r.ctx(), r.actor(), r.Param("id")); err != nil {
		return err
	}
	return r.done(Root+"/account", "session-ended")
}

func (c *Console) endOtherSessions(r *request) error {
	if err := c.service.People.EndOtherSessions(r.ctx(), r.actor(), r.viewer.SessionID); err != nil {
		return err
	}
	return r.done(Root+"/account", "session-ended")
}
