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

[api.md](api.md) has the rules in full, under the same section numbers. Each test is a subtest of TestSpecification in
` + "`conformance/`" + `, named by section and item, with underscores for spaces:
` + "`bin/devstack exec --no-temporal -- go test ./conformance -run 'TestSpecification/section_4/write_rule_7,_worker:'`" + `.

`

// page returns the page with the results.
func page(results map[string]map[string]result) string {
	var rows strings.Builder
	counts := map[result]int{}
	for _, s := range sections {
		fmt.Fprintf(&rows, "\n## Section %s\n\n| Item | Rule | Implemented by |\n|---|---|---|\n", s.number)
		for _, r := range s.rules {
			v := results[s.number][r.item]
			counts[v]++
			rows.WriteString(row(r, v))
		}
	}
	total := counts[holds] + counts[fails] + counts[notYet]
	return pageHead + fmt.Sprintf("%d rules: %d hold, %d fail, %d not yet.\n", total, counts[holds], counts[fails], counts[notYet]) + rows.String()
}

// row is the rule's line. Only a rule that does not hold shows its result.
func row(r rule, v result) string {
	text := cell(r.words)
	switch v {
	case holds:
	case fails:
		text = "**fails:** " + text
	case notYet:
		text = "**not yet:** " + text + "; " + r.notYet
	}
	code := "none"
	if r.code != "" {
		code = "`" + strings.ReplaceAll(r.code, ", ", "`, `") + "`"
	}
	return fmt.Sprintf("| %s | %s | %s |\n", cell(r.item), text, code)
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
			case strings.Contains(string(text), row(r, fails)):
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
