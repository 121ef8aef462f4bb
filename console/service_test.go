package console

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/service"
	"millwright/service/store"
)

// withoutActor are about signing in and limits. They serve no records, so they take no actor.
var withoutActor = []string{
	"Access.CountForm", "Access.CountVisitor", "Access.EnterCall", "Access.EnterParsing",
	"People.AcceptWithOpenID", "People.BeginOpenID", "People.BeginSignInAgain", "People.ChooseOrganization", "People.FinishOpenID",
	"People.ForgotPassword", "People.KeepInput", "People.KnownBrowser", "People.Link", "People.MailsLinks", "People.OpenInput",
	"People.PersonOfSession", "People.PolledSession", "People.RedeemOpenID", "People.RenewRecent", "People.Session", "People.SignIn",
	"People.SignInAgain", "People.SignInAgainOpenID", "People.SignInOpenID", "People.SignOut", "People.UseLink",
}

// serviceUse is where the console names a function, as in c.service.Records.WorkOrderDetail, or the service in another way.
var serviceUse = regexp.MustCompile(`\.service\b(?:\.([A-Z]\w+)\.([A-Z]\w+))?`)

// Reads and writes of records take the context and an actor: the console reaches no
// function that checks no permissions.
func TestTheConsoleReachesOnlyCheckedFunctions(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			for _, use := range serviceUse.FindAllStringSubmatch(line, -1) {
				name := use[1] + "." + use[2]
				if reached[name] = true; !slices.Contains(withoutActor, name) && !takesActor(use[1], use[2]) {
					t.Errorf("%s: %q names no function that takes a context and an actor first: %s", path, name, line)
				}
			}
		}
	}
	for _, name := range withoutActor {
		if !reached[name] {
			t.Errorf("the console does not reach %s", name)
		}
	}
}

// takesActor reports whether the function of a room takes a context and an actor first.
func takesActor(room, function string) bool {
	field, known := reflect.TypeFor[service.Service]().FieldByName(room)
	if !known {
		return false
	}
	method, known := field.Type.MethodByName(function)
	in := method.Type // after the receiver
	return known && in.NumIn() > 2 && in.In(1) == reflect.TypeFor[context.Context]() && in.In(2) == reflect.TypeFor[store.Actor]()
}
