package conformance

import (
	"flag"
	"os"
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
	test func(t *testing.T, h *harness)
	// alone gives the test its own server, because it changes what other tests rely
	// on: a plan, the clock or an integration.
	alone bool
	// notYet replaces the test and the code: the work that will implement the rule.
	notYet string
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

// result is the result of a rule's test.
type result string

const (
	holds  result = "holds"
	fails  result = "fails"
	notYet result = "not yet"
)

func TestSpecification(t *testing.T) {
	shared := &currentTest{TB: t}
	var h *harness
	results := map[string]map[string]result{}
	complete := true
	for _, s := range sections {
		results[s.number] = map[string]result{}
		t.Run("section "+s.number, func(t *testing.T) {
			for _, r := range s.rules {
				if r.test == nil {
					results[s.number][r.item] = notYet
					continue
				}
				passed := t.Run(r.name(), func(t *testing.T) {
					results[s.number][r.item] = fails
					current := h
					switch shared.now = t; {
					case r.alone:
						current = newHarness(t)
					case h == nil:
						h = newHarness(shared)
						current = h
					}
					breakFromNowOn(t)
					r.test(t, current)
				})
				if results[s.number][r.item] == "" {
					complete = false // excluded by -run
				} else if passed {
					results[s.number][r.item] = holds
				}
			}
		})
	}
	if *write == "" {
		return
	}
	if !complete {
		t.Fatal("the page can be written only after a run of all rules")
	}
	if err := os.WriteFile(*write, []byte(page(t, results)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	for _, s := range sections {
		items := map[string]bool{}
		for _, r := range s.rules {
			switch {
			case r.item == "" || r.words == "":
				t.Errorf("section %s has a rule without an item or words: %s", s.number, r.name())
			case items[r.item]:
				t.Errorf("section %s has two rules %q", s.number, r.item)
			case (r.test == nil) == (r.notYet == ""):
				t.Errorf("section %s, %s must have either a test or a reason for having none", s.number, r.item)
			case (r.test == nil) != (r.code == ""):
				t.Errorf("section %s, %s names no function that implements it", s.number, r.item)
			case strings.ContainsAny(r.name(), "|\n") || len(r.words) > 110:
				t.Errorf("section %s, %s does not fit on the page", s.number, r.item)
			}
			items[r.item] = true
		}
	}
}
