package conformance

import (
	"flag"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

var write = flag.String("write", "", "file to write the rules and results to")

// rule is one rule of the specification with its test.
type rule struct {
	// item is the rule's place in the section: a row, a list item or a numbered rule.
	item string
	// words summarize the rule.
	words string
	// code names the functions that implement the rule, separated by ", ":
	// service/records.(*Records).CancelWorkOrder.
	code string
	// test of several rules is a function with a name, in shared_test.go, and runs for the first of them.
	test func(t *testing.T, h *harness)
	// alone gives the test its own server, because it changes what other tests rely
	// on: a plan, the clock or an integration.
	alone bool
}

// functions returns the names of the functions that implement the rule.
func (r rule) functions() []string {
	return strings.FieldsFunc(r.code, func(c rune) bool { return c == ',' || c == ' ' })
}

// sections are the sections of the specification, in order.
var sections = []struct {
	number string
	rules  []rule
}{
	{"1", section1}, {"2", section2}, {"3", section3}, {"4", section4}, {"5", section5},
	{"6", section6}, {"7", section7}, {"8", section8}, {"9", section9},
}

// name is the name of the rule's subtest.
func (r rule) name() string { return r.item + ": " + r.words }

// testName returns the name of the rule's test, "" for a function without one.
func (r rule) testName() string {
	name := runtime.FuncForPC(reflect.ValueOf(r.test).Pointer()).Name()
	if strings.Contains(name, ".func") {
		return ""
	}
	return name
}

func TestSpecification(t *testing.T) {
	shared := &currentTest{TB: t}
	var h *harness
	complete, passed := true, map[string]bool{} // passed: by the names of tests
	for _, s := range sections {
		t.Run("section "+s.number, func(t *testing.T) {
			for _, r := range s.rules {
				ran := false
				t.Run(r.name(), func(t *testing.T) {
					ran = true
					name, current := r.testName(), h
					if passed[name] {
						return
					}
					switch shared.now = t; {
					case r.alone:
						current = newHarness(t)
					case h == nil:
						h = newHarness(shared)
						current = h
					}
					r.test(t, current)
					passed[name] = name != "" && !t.Failed()
				})
				complete = complete && ran // -run excludes some
			}
		})
	}
	switch {
	case *write == "":
	case !complete || t.Failed():
		t.Fatal("the page can be written only after a run of all rules in which all hold")
	default:
		if err := os.WriteFile(*write, []byte(page(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Each rule is unique in its section, belongs to a rule of api.md that exists, and fits on the page.
func TestRulesAreWellFormed(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		items := map[string]bool{}
		for _, r := range s.rules {
			number := numberOf(s.number, r.item)
			switch {
			case r.item == "" || r.words == "" || r.code == "":
				t.Errorf("section %s has a rule without an item, words or a function that implements it: %s", s.number, r.name())
			case items[r.item]:
				t.Errorf("section %s has two rules %q", s.number, r.item)
			case number == "" || !strings.Contains(string(text), "\n### "+number+" "):
				t.Errorf("section %s, %s has no rule in api.md (%q)", s.number, r.item, number)
			case strings.ContainsAny(r.name(), "|\n") || len(r.words) > 110:
				t.Errorf("section %s, %s does not fit on the page", s.number, r.item)
			}
			items[r.item] = true
		}
	}
}
