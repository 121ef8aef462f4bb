package console

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"millwright/service/store"
)

// signInFunctions serve no records, so they take no actor.
var signInFunctions = []string{
	"AcceptWithOpenID", "BeginOpenID", "BeginSignInAgain", "ChooseOrganization", "CountForm", "CountVisitor", "EnterCall", "EnterParsing", "FinishOpenID", "ForgotPassword", "KeepInput", "KnownBrowser", "Link", "MailsLinks", "OpenInput", "PersonOfSession", "PolledSession", "RedeemOpenID", "RenewRecent", "Session", "SignIn", "SignInAgain", "SignInAgainOpenID", "SignInOpenID",
	"SignOut", "UseLink",
}

// Reads and writes of records take the context and an actor: the console reaches no
// function that checks no permissions.
func TestTheConsoleReachesOnlyCheckedFunctions(t *testing.T) {
	for method := range reflect.TypeFor[signingIn]().Methods() {
		if !slices.Contains(signInFunctions, method.Name) {
			t.Errorf("%s is not about signing in: Service has the functions that check permissions", method.Name)
		}
	}
	for method := range reflect.TypeFor[Service]().Methods() {
		if slices.Contains(signInFunctions, method.Name) {
			continue
		}
		in := method.Type
		if in.NumIn() < 2 || in.In(0) != reflect.TypeFor[context.Context]() || in.In(1) != reflect.TypeFor[store.Actor]() {
			t.Errorf("%s takes no context and actor first", method.Name)
		}
	}
}
