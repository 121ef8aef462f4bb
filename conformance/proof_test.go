//go:build proof

package conformance

import (
	"encoding/json"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// breaks are what is done to a function, in turn, until the rule's test fails. Some
// functions run only when the program starts: they return parts of SQL statements, or
// describe the API. A string is then the SQL condition that always holds.
var breaks = []struct {
	suffix    string
	fromStart bool
	words     string
}{
	{"", false, "returns its zero values"},
	{" true", false, "returns true"},
	{" error", false, "returns an error"},
	{" true", true, "returns true from the start"},
	{"", true, "returns its zero values from the start"},
}

// TestProof shows for each rule that its test depends on the functions it names: the
// test passes, and fails while one of them is broken. The product is compiled
// once, with a switch at the start of each of these functions.
func TestProof(t *testing.T) { //nolint:tparallel // nothing runs next to it
	binary := filepath.Join(t.TempDir(), "instrumented.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", instrument(t, namedFunctions(t)), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the instrumented product does not compile: %v\n%s", err, out)
	}
	for _, s := range sections {
		for _, r := range s.rules {
			t.Run("section "+s.number+"/"+r.item, func(t *testing.T) {
				t.Parallel()
				test := runner{t, binary, "TestSpecification/section " + s.number + "/" + r.name()}
				if failure := test.run("", ""); failure != "" {
					t.Fatalf("the test fails on its own: %s", failure)
				}
				for _, name := range r.functions() {
					test.prove(name)
				}
			})
		}
	}
}

// runner runs the test of a rule.
type runner struct {
	t            *testing.T
	binary, rule string
}

func (r runner) prove(name string) {
	r.t.Helper()
	for _, b := range breaks {
		fromStart := ""
		if b.fromStart {
			fromStart = name + b.suffix
		}
		if failure := r.run(name+b.suffix, fromStart); failure != "" {
			r.t.Logf("%s %s: %s", name, b.words, failure)
			return
		}
	}
	r.t.Errorf("the test passes although %s is broken", name)
}

// run runs the test, with a function that is broken during it or from the start. It
// returns the first line of the failure, "" if the test passes.
func (r runner) run(during, fromStart string) string {
	r.t.Helper()
	parts := strings.Split(strings.ReplaceAll(r.rule, " ", "_"), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	test := exec.CommandContext(r.t.Context(), r.binary, "-test.v", "-test.timeout=60s", "-test.run", strings.Join(parts, "/"), "-break", during)
	test.Env = append(os.Environ(), breakVariable+"="+fromStart)
	out, err := test.CombinedOutput()
	text := string(out)
	if err == nil && strings.Contains(text, "--- PASS: "+strings.ReplaceAll(r.rule, " ", "_")) {
		return ""
	}
	failure := "it did not run"
	for line := range strings.Lines(text) {
		if failureLine.MatchString(line) && !strings.Contains(line, serverStarted) {
			failure = strings.TrimSpace(line)
			break
		}
	}
	if during != "" && !strings.Contains(text, serverStarted) {
		r.t.Errorf("with %s broken, no server starts: %s", during, failure)
	}
	return failure
}

var failureLine = regexp.MustCompile(`^ +\w+\.go:\d+: |^panic: `)

// insertion is text that is inserted into a file at an offset.
type insertion struct {
	offset int
	text   string
}

// instrument writes the files of the functions with a switch at the start of each. It
// returns the path of the overlay with which the compiler reads them in place of the originals.
func instrument(t *testing.T, functions map[string]function) string {
	t.Helper()
	insertions, packages := map[string][]insertion{}, map[string]bool{} // by file, by directory
	for name, f := range functions {
		insertions[f.path] = append(insertions[f.path], f.breakable(name)...)
		packages[filepath.Dir(f.path)] = true
	}
	replaced, directory := map[string]string{}, t.TempDir()
	write := func(path, text string) {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replaced[absolute] = filepath.Join(directory, fmt.Sprintf("%d.go", len(replaced)))
		if err := os.WriteFile(replaced[absolute], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, list := range insertions {
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(list, func(a, b insertion) int { return a.offset - b.offset })
		var text strings.Builder
		from := 0
		for _, i := range list {
			text.Write(original[from:i.offset])
			text.WriteString(i.text)
			from = i.offset
		}
		text.Write(original[from:])
		write(path, text.String())
	}
	for dir := range packages {
		write(filepath.Join(dir, "conformance_break.go"), fmt.Sprintf(breakSource, filepath.Base(dir), breakVariable))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// breakable returns what turns the function into one that can be broken. Its results
// get names, so that a return without values compiles whatever their types are.
func (f function) breakable(name string) []insertion {
	var edits []insertion
	insert := func(at token.Pos, text string) { edits = append(edits, insertion{f.files.Position(at).Offset, text}) }
	arguments := strconv.Quote(name)
	if results := f.declare.Type.Results; results != nil {
		if !results.Opening.IsValid() {
			insert(results.Pos(), "(")
		}
		for i, field := range results.List {
			if len(field.Names) == 0 {
				insert(field.Pos(), fmt.Sprintf("broken%d ", i))
				arguments += fmt.Sprintf(", &broken%d", i)
			}
			for _, result := range field.Names {
				arguments += ", &" + result.Name
			}
		}
		if !results.Opening.IsValid() {
			insert(results.End(), ")")
		}
	}
	insert(f.declare.Body.Lbrace+1, " if conformanceBreak("+arguments+") { return };")
	return edits
}

// breakSource is added to each package with a function that can be broken. A variant
// that does not apply to the function's results breaks nothing.
const breakSource = `package %s

import (
	"errors"
	"os"
)

func conformanceBreak(name string, results ...any) bool {
	set := false
	switch os.Getenv(%q) {
	case name:
		return true
	case name + " true":
		for _, r := range results {
			switch r := r.(type) {
			case *bool:
				*r, set = true, true
			case *string:
				*r, set = "true", true
			}
		}
	case name + " error":
		for _, r := range results {
			if e, ok := r.(*error); ok {
				*e, set = errors.New("broken"), true
			}
		}
	}
	return set
}
`
