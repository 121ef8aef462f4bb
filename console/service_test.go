package console

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
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

// Reads and writes of records take the context and an actor: the console reaches no
// function that checks no permissions.
func TestTheConsoleReachesOnlyCheckedFunctions(t *testing.T) {
	reached := serviceFunctions(t)
	for name, at := range reached {
		room, function, _ := strings.Cut(name, ".")
		field, _ := reflect.TypeFor[service.Service]().FieldByName(room)
		method, ok := field.Type.MethodByName(function)
		if !ok {
			t.Errorf("%s: %s is not a method", at, name)
			continue
		}
		in := method.Type // after the receiver
		checked := in.NumIn() > 2 && in.In(1) == reflect.TypeFor[context.Context]() && in.In(2) == reflect.TypeFor[store.Actor]()
		if !checked && !slices.Contains(withoutActor, name) {
			t.Errorf("%s: %s takes no context and actor first", at, name)
		}
	}
	for _, name := range withoutActor {
		if reached[name] == "" {
			t.Errorf("the console does not reach %s", name)
		}
	}
}

// serviceFunctions returns the functions that the console names, as c.service.Records.WorkOrderDetail,
// each with a place. Other uses of the service fail the test, because they would hide functions.
func serviceFunctions(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files, found, named := token.NewFileSet(), map[string]string{}, map[ast.Node]bool{}
	visit := func(node ast.Node) bool {
		function, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if room, ok := function.X.(*ast.SelectorExpr); ok && isService(room.X) {
			named[room.X] = true
			found[room.Sel.Name+"."+function.Sel.Name] = files.Position(function.Pos()).String()
		}
		if isService(function) && !named[function] {
			t.Errorf("%s: name the function with its room, as in c.service.Records.WorkOrderDetail", files.Position(function.Pos()))
		}
		return true
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, visit)
	}
	return found
}

// isService reports whether the expression is a console's service.
func isService(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "service"
}
