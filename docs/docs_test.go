package docs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// files calls visit with each file of the repository that has one of the extensions.
func files(t *testing.T, visit func(path, text string), extensions ...string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if entry.IsDir() && (name == "node_modules" || name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && name != "..") {
			return filepath.SkipDir
		}
		for _, extension := range extensions {
			if err == nil && !entry.IsDir() && filepath.Ext(path) == extension {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				visit(path, string(text))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	ruleHeading = regexp.MustCompile(`(?m)^### (\d+\.\d+) `)
	// A citation is "api.md 4.7", or a list such as "api.md 6.6, 6.10 and 6.11".
	citation     = regexp.MustCompile(`\bapi\.md((?:\s|//|--|,|and|or|to)*\d+\.\d+(?:(?:\s|//|--|,|and|or|to)+\d+\.\d+)*|\s+\d+\b)`)
	ruleNumber   = regexp.MustCompile(`\d+\.\d+|\d+`)
	code         = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link         = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	testFunction = regexp.MustCompile(`func (?:Test|Fuzz|Benchmark)\w+\(`)
	testName     = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark)[A-Z]\w+)\b`)
	notInID      = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every rule of api.md that code, tests and pages cite exists.
func TestCitedRulesExist(t *testing.T) {
	page, err := os.ReadFile("api.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, found := range ruleHeading.FindAllStringSubmatch(string(page), -1) {
		if rules[found[1]] {
			t.Errorf("api.md has two rules %s", found[1])
		}
		rules[found[1]] = true
	}
	for _, number := range regexp.MustCompile(`\b[1-9]\.\d+\b`).FindAllString(code.ReplaceAllString(string(page), ""), -1) {
		if !rules[number] {
			t.Errorf("api.md refers to its rule %s, which it does not have", number)
		}
	}
	cited := 0
	files(t, func(path, text string) {
		for _, found := range citation.FindAllStringSubmatch(text, -1) {
			for _, number := range ruleNumber.FindAllString(found[1], -1) {
				cited++
				if !rules[number] {
					t.Errorf("%s cites api.md %s, which does not exist", path, number)
				}
			}
		}
	}, ".go", ".sql", ".md")
	if cited < 100 {
		t.Errorf("only %d citations were found", cited)
	}
}

// Every link between the repository's pages has a target, with its heading.
func TestLinks(t *testing.T) {
	headings := map[string]map[string]bool{}
	pages := map[string]string{}
	files(t, func(path, text string) {
		pages[path], headings[path] = code.ReplaceAllStringFunc(text, func(s string) string {
			if strings.HasPrefix(s, "```") {
				return ""
			}
			return s
		}), map[string]bool{}
		for _, found := range heading.FindAllStringSubmatch(pages[path], -1) {
			id := strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")
			headings[path][id] = true
		}
	}, ".md")
	for path, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			file, fragment, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, ":") {
				continue
			}
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s links to %s, which does not exist", path, found[1])
			} else if fragment != "" && !headings[target][fragment] {
				t.Errorf("%s links to %s, which has no such heading", path, found[1])
			}
		}
	}
}

// Every test that a page names exists, or a test begins with the name.
func TestNamedTestsExist(t *testing.T) {
	var tests strings.Builder
	files(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range testFunction.FindAllString(text, -1) {
				tests.WriteString(found)
			}
		}
	}, ".go")
	files(t, func(path, text string) {
		for _, found := range testName.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(tests.String(), "func "+found[1]) {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	}, ".md")
}

// The tour names buttons, links and headings as the console has them.
func TestTheToursLabelsAreTheConsoles(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tour, _ := strings.Cut(string(readme), "\n## A tour")
	tour, _, _ = strings.Cut(tour, "\n## ")
	var console strings.Builder
	files(t, func(path, text string) {
		if strings.HasPrefix(path, "../console/") || strings.HasPrefix(path, "../demo/") {
			console.WriteString(text)
		}
	}, ".html", ".go", ".yaml")
	labels := 0
	for i, part := range strings.Split(tour, "**") {
		if i%2 == 0 || strings.HasSuffix(part, ".") { // a step's heading
			continue
		}
		if labels++; !strings.Contains(console.String(), part) {
			t.Errorf("the console has no %q", part)
		}
	}
	if labels < 5 {
		t.Errorf("the tour has %d labels", labels)
	}
}
