package service_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"millwright/service"
)

// room is the name of a package before the name of a type.
var room = regexp.MustCompile(`\b(access|effects|imports|integrations|inventory|lists|pages|people|records|service|store|upkeep|webhooks)\.`)

// Service has the methods in testdata/methods.txt. Rooms call functions of each other, which
// callers of Service do not see.
func TestMethodsOfService(t *testing.T) {
	var methods strings.Builder
	kind := reflect.TypeFor[*service.Service]()
	for m := range kind.NumMethod() {
		method := kind.Method(m)
		methods.WriteString(method.Name + strings.TrimPrefix(room.ReplaceAllString(method.Type.String(), ""), "func") + "\n")
	}
	want, err := os.ReadFile("testdata/methods.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, listed := strings.Split(methods.String(), "\n"), strings.Split(string(want), "\n")
	for _, line := range got {
		if !strings.Contains(string(want), line+"\n") && line != "" {
			t.Errorf("not in testdata/methods.txt: %s", line)
		}
	}
	for _, line := range listed {
		if !strings.Contains(methods.String(), line+"\n") && line != "" {
			t.Errorf("no longer a method: %s", line)
		}
	}
}
