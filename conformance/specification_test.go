package conformance

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var write = flag.String("write", "", "file to write the page of rules and verdicts to")

// rule is one rule of the specification with the test that holds the product to it.
type rule struct {
	// item is where the section says it: a row, a list item, a numbered rule.
	item string
	// words are a few of our own.
	words string
	test  func(t *testing.T, h *harness)
	// alone says that the test changes what others rely on (a plan, a clock, an
	// integration): it gets a server of its own.
	alone bool
	// notYet stands in place of a test: the work that will bring the rule.
	notYet string
}

// sections are the specification's, in its order.
var sections = []struct {
	number string
	rules  []rule
}{
	{"1", section1}, {"2", section2}, {"3", section3}, {"4", section4}, {"5", section5},
	{"6", section6}, {"7", section7}, {"8", section8}, {"9", section9},
}

// name is the rule's subtest in its section's.
func (r rule) name() string { return r.item + ": " + r.words }

// verdict is what came of a rule.
type verdict string

const (
	holds  verdict = "holds"
	fails  verdict = "fails"
	notYet verdict = "not yet"
)

func TestSpecification(t *testing.T) {
	shared := &currentTest{TB: t}
	var h *harness
	verdicts := map[string]map[string]verdict{}
	complete := true
	for _, s := range sections {
		verdicts[s.number] = map[string]verdict{}
		t.Run("section "+s.number, func(t *testing.T) {
			for _, r := range s.rules {
				if r.test == nil {
					verdicts[s.number][r.item] = notYet
					continue
				}
				passed := t.Run(r.name(), func(t *testing.T) {
					verdicts[s.number][r.item] = fails
					if r.alone {
						r.test(t, newHarness(t))
						return
					}
					shared.now = t
					if h == nil {
						h = newHarness(shared)
					}
					r.test(t, h)
				})
				if verdicts[s.number][r.item] == "" {
					complete = false // left out by -run
				} else if passed {
					verdicts[s.number][r.item] = holds
				}
			}
		})
	}
	if *write == "" {
		return
	}
	if !complete {
		t.Fatal("the page is written after a run of every rule")
	}
	if err := os.WriteFile(*write, []byte(page(verdicts)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	for _, s := range sections {
		items := map[string]bool{}
		for _, r := range s.rules {
			switch {
			case r.item == "" || r.words == "":
				t.Errorf("section %s has a rule without an item or words: %+v", s.number, r.name())
			case items[r.item]:
				t.Errorf("section %s has two rules %q", s.number, r.item)
			case (r.test == nil) == (r.notYet == ""):
				t.Errorf("section %s, %s has neither a test nor a reason, or both", s.number, r.item)
			case strings.ContainsAny(r.name(), "|\n") || len(r.words) > 110:
				t.Errorf("section %s, %s does not fit on the page", s.number, r.item)
			}
			items[r.item] = true
		}
	}
}
