package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/gin-gonic/gin"
	"golang.org/x/oauth2"

	"millwright/service/people"
)

// OpenIDOptions name an OpenID Connect provider with which people sign in.
type OpenIDOptions struct {
	// Issuer is the provider's URL, at which it is discovered.
	Issuer                 string
	ClientID, ClientSecret string
	// Name is what people call the provider.
	Name string
}

// openID signs people in with a provider: code flow with PKCE, state and nonce.
type openID struct {
	options  OpenIDOptions
	redirect string
	client   *http.Client

	mu sync.Mutex
	// provider is nil until it was discovered: the console starts without it.
	provider *oidc.Provider
}

// providerTimeout bounds each request to the provider.
const providerTimeout = 10 * time.Second

func newOpenID(options OpenIDOptions, publicURL string) *openID {
	return &openID{options: options, redirect: publicURL + Root + "/openid/callback", client: &http.Client{Timeout: providerTimeout}}
}

// discovered returns the provider, which it discovers the first time.
func (o *openID) discovered(ctx context.Context) (*oidc.Provider, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider == nil {
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.options.Issuer)
		if err != nil {
			return nil, fmt.Errorf("discover the OpenID provider: %w", err)
		}
		o.provider = provider
	}
	return o.provider, nil
}

func (o *openID) config(provider *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: o.options.ClientID, ClientSecret: o.options.ClientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: o.redirect, Scopes: []string{oidc.ScopeOpenID},
	}
}

func (c *Console) openIDRoutes(pages *gin.RouterGroup) {
	if c.openID == nil {
		return
	}
	pages.GET("/openid/start", c.public(c.startOpenID))
	pages.GET("/openid/again", c.signedIn(c.startOpenIDAgain))
	pages.GET("/openid/callback", c.public(c.finishOpenID))
}

// openIDState is kept in a cookie between the two requests of a sign-in.
type openIDState struct {
	State, Nonce, Verifier string
	// Invitation is the token of an invitation to accept, Next the page that follows.
	Invitation, Next string
	// Again is the request of a person who is signed in to sign in again, "" for others.
	Again string
}

// startOpenID sends the visitor to the provider, to sign in or to accept an invitation.
func (c *Console) startOpenID(r *request) error {
	invitation, next := r.Query("invite"), r.Query("next")
	page := linkTo("/sign-in", "next", next)
	if invitation != "" {
		page = Root + "/invite/" + url.PathEscape(invitation)
	}
	return c.goToProvider(r, page, openIDState{Invitation: invitation, Next: localPath(next)})
}

// startOpenIDAgain sends a person who is signed in to the provider, which must ask her again.
func (c *Console) startOpenIDAgain(r *request) error {
	next := r.Query("next")
	page := linkTo("/sign-in/again", "next", next)
	if next == "" {
		next = page
	}
	request, err := c.service.People.BeginSignInAgain(r.viewer)
	if err != nil {
		return err
	}
	return c.goToProvider(r, page, openIDState{Again: request, Next: localPath(next)},
		oauth2.SetAuthURLParam("max_age", "0"), oauth2.SetAuthURLParam("prompt", "login"))
}

// goToProvider sends the visitor to the provider, from the console page that offers
// it. Another site must not start it: the provider may ask nothing, and the visitor would have
// accepted an invitation of others by opening a page of theirs. Such visitors see the page.
func (c *Console) goToProvider(r *request, page string, state openIDState, parameters ...oauth2.AuthCodeOption) error {
	if from := r.GetHeader("Sec-Fetch-Site"); from != "" && from != "same-origin" {
		return r.done(page, "")
	}
	provider, err := c.openID.discovered(r.ctx())
	if err != nil {
		return c.openIDFails(r, err)
	}
	state.State, state.Nonce, state.Verifier = rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	sealed, err := c.service.People.BeginOpenID(r.ctx(), state, r.client())
	if limit, limited := errors.AsType[*people.TooManyAttemptsError](err); limited {
		r.retryAfter(limit.RetryAfter)
		return c.renderSignIn(r, http.StatusTooManyRequests, limit.Error())
	}
	if err != nil {
		return err
	}
	r.setCookie("openid", sealed, int(people.OpenIDLifetime.Seconds()))
	parameters = append(parameters, oidc.Nonce(state.Nonce), oauth2.S256ChallengeOption(state.Verifier))
	r.Redirect(http.StatusSeeOther, c.openID.config(provider).AuthCodeURL(state.State, parameters...))
	return nil
}

// finishOpenID signs the visitor in with what the provider says.
func (c *Console) finishOpenID(r *request) error {
	var state openIDState
	sealed, _ := r.Cookie(c.cookieName("openid"))
	r.setCookie("openid", "", -1)
	err := c.service.People.RedeemOpenID(r.ctx(), sealed, &state)
	if err != nil && !errors.Is(err, people.ErrSignInFailed) {
		return err
	}
	if err != nil || subtle.ConstantTimeCompare([]byte(state.State), []byte(r.Query("state"))) != 1 {
		return c.openIDFails(r, errors.New("the state of the sign-in is not that of the browser"))
	}
	account, err := c.openID.account(r.ctx(), r.Query("code"), state)
	if err != nil {
		return c.openIDFails(r, err)
	}
	if state.Again != "" {
		return c.finishOpenIDAgain(r, account, state)
	}
	var signedIn people.SignedIn
	if state.Invitation != "" {
		signedIn, err = c.service.People.AcceptWithOpenID(r.ctx(), state.Invitation, account, r.client())
	} else {
		signedIn, err = c.service.People.SignInOpenID(r.ctx(), account, r.client())
	}
	switch {
	case errors.Is(err, people.ErrLinkInvalid):
		return linkGonePage.render(r, http.StatusGone, linkGoneView{c.service.People.MailsLinks()})
	case errors.Is(err, people.ErrSignInFailed):
		c.metrics.signIns.WithLabelValues(signInFailed).Inc()
		return c.renderSignIn(r, http.StatusUnauthorized, "Your account at "+c.provider.Name+" is not linked to anyone here. Open your invitation and choose "+c.provider.Name+" there.")
	case err != nil:
		return err
	}
	c.metrics.signIns.WithLabelValues(signInSucceeded).Inc()
	if err := c.service.People.FinishOpenID(r.ctx(), r.client()); err != nil {
		return err
	}
	if len(signedIn.Choices) > 0 {
		return choicePage.show(r, choiceView{signedIn.Choices, signedIn.Choice, state.Next, ""})
	}
	return r.enter(signedIn.Token, state.Next, "")
}

// finishOpenIDAgain makes the sign-in of the session recent, and goes on.
func (c *Console) finishOpenIDAgain(r *request, account people.OpenIDAccount, state openIDState) error {
	if !r.isSignedIn() {
		return r.askToSignIn()
	}
	err := c.service.People.SignInAgainOpenID(r.ctx(), r.viewer, account, state.Again)
	if errors.Is(err, people.ErrSignInFailed) {
		c.metrics.signIns.WithLabelValues(signInFailed).Inc()
		return c.renderAgain(r, http.StatusUnauthorized, againView{
			Action: Root + "/sign-in/again", Kept: []namedValue{{"next", state.Next}}, OpenID: linkTo("/openid/again", "next", state.Next),
			Form: form{Error: "Either " + c.provider.Name + " did not ask you to sign in again, or this account there is not linked to you here."},
		})
	}
	if err != nil {
		return err
	}
	c.metrics.signIns.WithLabelValues(signInSucceeded).Inc()
	if err := c.service.People.FinishOpenID(r.ctx(), r.client()); err != nil {
		return err
	}
	return r.done(state.Next, "")
}

// account exchanges the code for the account that the provider has verified.
func (o *openID) account(ctx context.Context, code string, state openIDState) (people.OpenIDAccount, error) {
	provider, err := o.discovered(ctx)
	if err != nil {
		return people.OpenIDAccount{}, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	token, err := o.config(provider).Exchange(ctx, code, oauth2.VerifierOption(state.Verifier))
	if err != nil {
		return people.OpenIDAccount{}, errors.New("the provider does not exchange the code") // its response may repeat the code
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: o.options.ClientID}).Verify(ctx, raw)
	if err != nil {
		return people.OpenIDAccount{}, fmt.Errorf("the id token is not valid: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(state.Nonce)) != 1 || verified.Subject == "" {
		return people.OpenIDAccount{}, errors.New("the id token is not for this sign-in")
	}
	account := people.OpenIDAccount{Issuer: verified.Issuer, Subject: verified.Subject}
	var claims struct {
		AuthTime        float64 `json:"auth_time"`
		AuthorizedParty string  `json:"azp"`
	}
	if err := verified.Claims(&claims); err != nil {
		return people.OpenIDAccount{}, errors.New("the id token's auth_time is not a number")
	}
	// A token for several audiences names the one that requested it (OpenID Connect Core, 3.1.3.7).
	if claims.AuthorizedParty != o.options.ClientID && (claims.AuthorizedParty != "" || len(verified.Audience) > 1) {
		return people.OpenIDAccount{}, errors.New("the id token was issued to another client")
	}
	if claims.AuthTime > 0 && claims.AuthTime < 1<<40 {
		account.AuthenticatedAt = time.Unix(int64(claims.AuthTime), 0)
	}
	return account, nil
}

// openIDFails shows the sign-in page. The reason is only logged.
func (c *Console) openIDFails(r *request, err error) error {
	c.metrics.signIns.WithLabelValues(signInFailed).Inc()
	c.log.WarnContext(r.ctx(), "a sign-in with the OpenID provider failed", "error", err.Error())
	return c.renderSignIn(r, http.StatusUnauthorized, "Signing in with "+c.provider.Name+" failed. Try again, or use your password.")
}

// openIDStart is the URL that begins a sign-in with the provider, "" if there is no provider.
func (c *Console) openIDStart(name, value string) string {
	if c.openID == nil {
		return ""
	}
	return linkTo("/openid/start", name, value)
}
