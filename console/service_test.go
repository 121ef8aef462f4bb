package console

import (
	"context"
	"reflect"
	"testing"

	"millwright/service"
)

// Reads and writes of records take the context and an actor: the console reaches no
// function that checks no permissions.
func TestTheConsoleReachesOnlyCheckedFunctions(t *testing.T) {
	signIn := reflect.TypeFor[SignInService]()
	for method := range reflect.TypeFor[Service]().Methods() {
		if _, ok := signIn.MethodByName(method.Name); ok {
			continue
		}
		in := method.Type
		if in.NumIn() < 2 || in.In(0) != reflect.TypeFor[context.Context]() || in.In(1) != reflect.TypeFor[service.Actor]() {
			t.Errorf("%s takes no context and actor first", method.Name)
		}
	}
}
