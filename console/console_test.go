package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"millwright/console/consoletest"
)

func TestAPersonSignsInAndOut(t *testing.T) {
	for name, open := range map[string]func(*consoletest.Site, testing.TB) *consoletest.Browser{
		"with scripts": (*consoletest.Site).Browser, "without scripts": (*consoletest.Site).BrowserWithoutScripts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consoletest.NewSite(t)
			b := open(s, t)
			b.Open("/console")
			b.WantPath("/console/sign-in")
			b.Check("sign-in")
			b.SignIn("ann")
			b.WantPath("/console")
			b.WantText("Ann Field")
			b.Check("start")
			b.PressInSidebar("Sign out")
			b.WantPath("/console/sign-in")
			b.WantText("You are signed out.")
			b.Open("/console")
			b.WantPath("/console/sign-in")
		})
	}
}

func TestASignInWithAWrongPasswordFails(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.NewVisitor()
	v.Post("/console/sign-in", url.Values{"email": {"ann@acme.example.com"}, "password": {"wrong"}}).
		Want(http.StatusUnauthorized, "The e-mail address or the password is wrong.")
	v.Get("/console").Want(http.StatusSeeOther)
}
