package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
)

func TestAPersonSignsInAndOut(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(_ *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		b.Open("/console")
		b.WantPath("/console/sign-in")
		b.SignInAs(s.Email("ann"))
		b.WantPath("/console")
		b.WantText("Ann Field")
		b.PressInMenu("Sign out")
		b.WantPath("/console/sign-in")
		b.WantText("You are signed out.")
		b.Open("/console")
		b.WantPath("/console/sign-in")
	})
}

func TestAPersonChangesTheAccount(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		elsewhere := s.SignedIn("bob")
		b.SignIn("bob")
		b.PressInMenu("Account")
		b.Fill("name", "Bob Brick")
		b.Fill("time_zone", "Europe/Helsinki")
		b.Fill("theme", "dark")
		b.Press("Save")
		b.WantText("Saved.", "Today 14:15")
		b.Fill("old_password", "wrong password")
		b.Fill("password", "a good long password")
		b.Press("Change the password")
		b.WantText("This is not your password.")
		b.Fill("old_password", consoletest.Password)
		b.Fill("password", "a good long password")
		b.Press("Change the password")
		b.WantText("Your password is changed.")
		elsewhere.Get("/console").Want(http.StatusSeeOther)
		again := s.NewVisitor()
		again.Post("/console/sign-in", credentials(s.Email("bob"), "a good long password")).Want(http.StatusSeeOther)
		b.Open("/console/account")
		b.Press("End all others")
		again.Get("/console").Want(http.StatusSeeOther)
	})
}

func TestNoticesAreRead(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(_ *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		notify(s, "ann", "webhook.failing", "webhook.turned_off", "webhook.failing")
		b.SignIn("ann")
		b.PressInSidebar("Notices 3 unread")
		b.WantText("A webhook address was turned off after a final failure")
		b.Press("Open: A webhook address was turned off after a final failure http://127.0.0.1:9/reader")
		b.WantPath("/console/webhooks/" + s.ID("reader_hook"))
		b.PressInSidebar("Notices 2 unread")
		b.Press("Mark all as read")
		b.WantText("You have read everything.")
	})
}
