package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const pageFile = "../docs/conformance.md"

const pageHead = `# Conformance

Every rule of the integration API's specification, section by section, with the test that holds this service to it.
The page is written by ` + "`make conformance`" + ` from a run of the tests; do not edit it.

A test is a subtest of TestSpecification in ` + "`conformance/`" + `; run one by the name the table shows:
` + "`go test ./conformance -run 'TestSpecification/section_4/write_rule_7:'`" + ` (under ` + "`bin/devstack exec --no-temporal --`" + `).

A verdict is one of three: *holds*, *fails*, or *not yet* for what is not built, with the work that will bring it.

`

// page is the page of the verdicts.
func page(verdicts map[string]map[string]verdict) string {
	var rows strings.Builder
	counts := map[verdict]int{}
	for _, s := range sections {
		for _, r := range s.rules {
			v := verdicts[s.number][r.item]
			counts[v]++
			rows.WriteString(row(s.number, r, v))
		}
	}
	total := counts[holds] + counts[fails] + counts[notYet]
	return pageHead + fmt.Sprintf("%d rules: %d hold, %d fail, %d not yet.\n\n", total, counts[holds], counts[fails], counts[notYet]) +
		"| Section | Item | Rule | Test | Verdict |\n|---|---|---|---|---|\n" + rows.String()
}

func row(section string, r rule, v verdict) string {
	test := "none"
	if r.test != nil {
		name := strings.ReplaceAll("section_"+section+"/"+r.item+":", " ", "_")
		test = "[`" + name + "`](../conformance/section" + section + "_test.go)"
	}
	said := string(v)
	if v == notYet {
		said += ": " + r.notYet
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", section, cell(r.item), cell(r.words), test, said)
}

// cell keeps names with underscores and braces as they are.
func cell(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		bare := strings.TrimRight(word, ",.;:")
		if strings.ContainsAny(bare, "_{}<>[]/*") && bare != "" {
			words[i] = "`" + bare + "`" + word[len(bare):]
		}
	}
	return strings.Join(words, " ")
}

// Whether a rule holds is seen in TestSpecification; here the page is what a run
// of today's rules would write, but for those that it says fail.
func TestPageIsFresh(t *testing.T) {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]map[string]verdict{}
	for _, s := range sections {
		verdicts[s.number] = map[string]verdict{}
		for _, r := range s.rules {
			switch {
			case r.test == nil:
				verdicts[s.number][r.item] = notYet
			case strings.Contains(string(text), row(s.number, r, fails)):
				verdicts[s.number][r.item] = fails
			default:
				verdicts[s.number][r.item] = holds
			}
		}
	}
	listed, wanted := strings.Split(string(text), "\n"), strings.Split(page(verdicts), "\n")
	for i := range max(len(listed), len(wanted)) {
		if i >= len(listed) || i >= len(wanted) || listed[i] != wanted[i] {
			t.Fatalf("the page is stale from its line %d on: run `make conformance`", i+1)
		}
	}
}
