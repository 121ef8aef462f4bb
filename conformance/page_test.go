package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const pageFile = "../docs/conformance.md"

const pageHead = `# Conformance

Every rule of the integration API's specification, with the function that implements it and the test that checks it.
` + "`make conformance`" + ` runs the tests and writes this page; do not edit it.
` + "`make conformance-proof`" + ` breaks these functions one at a time and checks that each rule's test fails.

Each test is a subtest of TestSpecification in ` + "`conformance/`" + `. Run one by the name in the table:
` + "`go test ./conformance -run 'TestSpecification/section_4/write_rule_7:'`" + ` (under ` + "`bin/devstack exec --no-temporal --`" + `).

The result is *holds*, *fails*, or *not yet* for what is not built, with the work that will implement it.

`

// page returns the page with the results.
func page(results map[string]map[string]result) string {
	var rows strings.Builder
	counts := map[result]int{}
	for _, s := range sections {
		for _, r := range s.rules {
			v := results[s.number][r.item]
			counts[v]++
			rows.WriteString(row(s.number, r, v))
		}
	}
	total := counts[holds] + counts[fails] + counts[notYet]
	return pageHead + fmt.Sprintf("%d rules: %d hold, %d fail, %d not yet.\n\n", total, counts[holds], counts[fails], counts[notYet]) +
		"| Section | Item | Rule | Implemented by | Test | Result |\n|---|---|---|---|---|---|\n" + rows.String()
}

func row(section string, r rule, v result) string {
	test := "none"
	if r.test != nil {
		name := strings.ReplaceAll("section_"+section+"/"+r.item+":", " ", "_")
		test = "[`" + name + "`](../conformance/section" + section + "_test.go)"
	}
	text := string(v)
	if v == notYet {
		text += ": " + r.notYet
	}
	code := "none"
	if r.code != "" {
		code = "`" + strings.ReplaceAll(r.code, ", ", "`, `") + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", section, cell(r.item), cell(r.words), code, test, text)
}

// cell quotes names with characters that Markdown would interpret.
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

// TestPageIsFresh compares the page with what a run of the current rules would
// write if every rule had the result that the page shows.
func TestPageIsFresh(t *testing.T) {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]map[string]result{}
	for _, s := range sections {
		results[s.number] = map[string]result{}
		for _, r := range s.rules {
			switch {
			case r.test == nil:
				results[s.number][r.item] = notYet
			case strings.Contains(string(text), row(s.number, r, fails)):
				results[s.number][r.item] = fails
			default:
				results[s.number][r.item] = holds
			}
		}
	}
	listed, wanted := strings.Split(string(text), "\n"), strings.Split(page(results), "\n")
	for i := range max(len(listed), len(wanted)) {
		if i >= len(listed) || i >= len(wanted) || listed[i] != wanted[i] {
			t.Fatalf("the page is stale from its line %d on: run `make conformance`", i+1)
		}
	}
}
