package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
)

// A person signs in, changes the account, and signs out, without scripts too.
func TestAPersonChangesTheAccount(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.BrowserWithoutScripts(t)
	elsewhere := s.SignedIn("bob")
	b.Open("/console")
	b.WantPath("/console/sign-in")
	b.SignInAs(s.Email("bob"))
	b.WantPath("/console")
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
	b.PressInMenu("Sign out")
	b.WantPath("/console/sign-in")
	b.WantText("You are signed out.")
	b.Open("/console")
	b.WantPath("/console/sign-in")
}
