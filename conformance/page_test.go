package conformance

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const pageFile = "../docs/conformance.md"

const pageHead = `# Conformance

The rules of [api.md](api.md) with the conformance tests that check them and the functions that implement them.
` + "`make conformance`" + ` runs the tests and writes this page; do not edit it.

A test is a subtest of TestSpecification in ` + "`conformance/`" + `, named by section and item, with underscores for spaces:
` + "`bin/devstack exec --no-temporal -- go test ./conformance -run 'TestSpecification/section_4/write_rule_7,_worker:'`" + `.

`

// numbers gives the items of a section that begin with prefix their rule of api.md. The first
// match counts.
var numbers = []struct{ section, prefix, rule string }{
	{"1", "item 1,", "1.1"}, {"1", "item 2", "1.2"}, {"1", "item 3,", "1.3"}, {"1", "item 4", "1.4"}, {"1", "item 5,", "1.5"},
	{"1", "item 6,", "1.6"}, {"1", "item 7", "1.7"}, {"1", "item 8,", "1.8"}, {"1", "item 9", "1.9"},
	{"2", "work order field", "2.1"}, {"2", "feedback field", "2.2"}, {"2", "answer", "2.3"}, {"2", "identities", "2.4"}, {"2", "record field", "2.8"},
	{"3", "status names", "3.1"}, {"3", "on hold", "3.2"}, {"3", "row", "3.2"}, {"3", "rule, review", "3.4"}, {"3", "rule", "3.3"},
	{"4", "write rule 1", "4.1"}, {"4", "write rule 2", "4.2"}, {"4", "write rule 3", "4.3"}, {"4", "write rule 4", "4.4"},
	{"4", "write rule 5", "4.5"}, {"4", "write rule 6", "4.6"}, {"4", "write rule 7", "4.7"}, {"4", "write rule 8", "4.8"},
	{"4", "PATCH /work-orders/{id},", "4.4"}, {"4", "convention 1", "4.9"}, {"4", "convention 2", "4.17"}, {"4", "convention 3", "4.12"},
	{"4", "convention 4, limit", "4.13"}, {"4", "convention 4, status", "4.14"}, {"4", "convention 4", "4.15"},
	{"4", "convention 5, form", "5.1"}, {"4", "convention 5", "4.10"}, {"4", "convention 6", "4.12"}, {"4", "", "4.19"},
	{"5", "token request 3, renewal", "5.3"}, {"5", "token request", "5.1"}, {"5", "invalidation", "5.4"}, {"5", "scope", "5.5"},
	{"5", "permission,", "5.6"}, {"5", "permission 1", "5.7"}, {"5", "permission 2", "5.8"}, {"5", "permission 3", "5.9"},
	{"5", "permission 4", "5.10"}, {"5", "permission 5", "5.11"},
	{"6", "setup 2", "6.6"}, {"6", "setup 3, deliveries", "6.13"}, {"6", "setup 3", "6.14"}, {"6", "setup", "6.1"},
	{"6", "events 2", "6.3"}, {"6", "event", "6.2"}, {"6", "request", "6.4"}, {"6", "header", "6.4"}, {"6", "body", "6.5"},
	{"6", "own changes", "6.5"}, {"6", "signature", "6.6"}, {"6", "receiver", "6.7"}, {"6", "delivery 1", "6.8"}, {"6", "delivery 2", "6.8"},
	{"6", "delivery 3, schedule", "6.9"}, {"6", "delivery 3, list", "6.10"}, {"6", "delivery 3", "6.13"}, {"6", "delivery 4", "6.11"},
	{"6", "delivery 5, sync", "4.15"}, {"6", "delivery 5", "6.15"},
	{"7", "401 ", "7.4"}, {"7", "400 ", "7.4"}, {"7", "422 ", "7.3"}, {"7", "", "7.2"},
	{"8", "plan, calls", "8.2"}, {"8", "over the limit", "8.2"}, {"8", "", "8.1"},
	{"9", "item 1", "9.1"}, {"9", "item 2", "5.5"},
}

// numberOf returns the number of the item's rule in api.md, "" if it has none.
func numberOf(section, item string) string {
	for _, n := range numbers {
		if n.section == section && strings.HasPrefix(item, n.prefix) {
			return n.rule
		}
	}
	return ""
}

var apiRule = regexp.MustCompile(`(?m)^### (\d+\.\d+) (.*)$`)

// page returns the page: a line for each rule of api.md that has a test.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	tests := 0
	for _, heading := range apiRule.FindAllStringSubmatch(string(text), -1) {
		var items, functions []string
		for _, s := range sections {
			for _, r := range s.rules {
				if numberOf(s.number, r.item) == heading[1] {
					items = append(items, cell(r.item))
					functions = append(functions, r.functions()...)
				}
			}
		}
		if tests += len(items); len(items) > 0 {
			slices.Sort(functions)
			anchor := strings.ToLower(strings.NewReplacer(".", "", " ", "-", "'", "").Replace(heading[1] + " " + heading[2]))
			fmt.Fprintf(&rows, "| [%s](api.md#%s) | %s | `%s` |\n", heading[1], anchor, strings.Join(items, "; "), strings.Join(slices.Compact(functions), "`, `"))
		}
	}
	return pageHead + fmt.Sprintf("%d tests, which all pass.\n\n", tests) + "| Rule | Tests | Implemented by |\n|---|---|---|\n" + rows.String()
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

func TestPageIsFresh(t *testing.T) {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	listed, wanted := strings.Split(string(text), "\n"), strings.Split(page(t), "\n")
	for i := range max(len(listed), len(wanted)) {
		if i >= len(listed) || i >= len(wanted) || listed[i] != wanted[i] {
			t.Fatalf("the page is stale from its line %d on: run `make conformance`", i+1)
		}
	}
}
