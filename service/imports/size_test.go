package imports

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"millwright/service/people"
	"millwright/service/store"
)

// A short file whose aliases stand for billions of values is rejected before they are
// expanded; a file with few aliases is read.
func TestImportFileOfAliases(t *testing.T) {
	const head = "organization: {key: acme, name: Acme}\ninventory:\n  - &a0 {key: n0, kind: location, name: N}\n"
	bomb := strings.Builder{}
	bomb.WriteString(head)
	for i := 1; i <= 12; i++ {
		fmt.Fprintf(&bomb, "  - &a%d {key: n%d, kind: location, name: N, children: [%s*a%d]}\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	_, err := readImportFile([]byte(bomb.String()))
	if err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("%d bytes that stand for 10^12 nodes: %.200v", bomb.Len(), err)
	}

	_, err = readImportFile([]byte(strings.Repeat("#", MaxFile+1)))
	if err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a file that is too large: %.200v", err)
	}

	file, err := readImportFile([]byte(head + "people:\n  - &p {key: ann, name: &n Ann, email: a@example.com}\nteams: [{key: t, name: *n, members: [ann]}]\n"))
	if err != nil || *file.Teams[0].Name != "Ann" {
		t.Errorf("a file with an alias: %v", err)
	}
}

// Scopes may be written unquoted inside a flow mapping, as docs/import.md does.
func TestImportFileWithScopesInAFlowMapping(t *testing.T) {
	file, err := readImportFile([]byte("organization: {key: acme}\nintegrations:\n  - {key: erp, name: ERP, scopes: [work_orders:read, work_orders:write]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := file.Integrations[0].Scopes, []string{"work_orders:read", "work_orders:write"}; !slices.Equal(got, want) {
		t.Errorf("the scopes are %q, want %q", got, want)
	}
}

// A deeply nested file is rejected at once, whether its levels are written or come from
// aliases. A parser that backtracks would need minutes.
func TestImportFileNestedDeeply(t *testing.T) {
	chain := strings.Builder{}
	chain.WriteString("a0: &a0 [x]\n")
	for i := 1; i <= maxImportDepth; i++ {
		fmt.Fprintf(&chain, "a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	for name, text := range map[string]string{
		"open brackets":   strings.Repeat("[", 200_000),
		"open braces":     strings.Repeat("{a: ", 200_000),
		"dashes":          strings.Repeat("- ", 200_000),
		"closed brackets": strings.Repeat("[", 65) + strings.Repeat("]", 65),
		"aliases":         chain.String(),
	} {
		_, err := readImportFile([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "deeper than 64 levels") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	_, err := readImportFile([]byte(strings.Repeat("[", maxImportDepth) + strings.Repeat("]", maxImportDepth)))
	if err == nil || strings.Contains(err.Error(), "deeper") {
		t.Errorf("64 levels: %v", err)
	}
}

// Each problem with the form of a file is named with its line, in the words of its
// author and without the values, which may be secrets.
func TestImportFileProblemsNameTheirLines(t *testing.T) {
	_, err := readImportFile([]byte(`organization: {key: acme, nam: Acme, suspended: maybe, plan: {integrations: many}}
people: ann
teams: [{key: t, members: {secret-of-ann: true}}]
integrations:
  - key: erp
    client_secret: [secret-of-the-erp]
  - key: fm
    name: FM
    name: FM
`))
	rejected, ok := errors.AsType[*FileError](err)
	if !ok {
		t.Fatal(err)
	}
	want := []string{
		`line 1: unknown field "nam"`, `line 1: expected true or false`, `line 1: expected an integer`, `line 2: expected a list`,
		`line 3: expected a list`, `line 6: expected a string`, `line 9: mapping key "name" already defined at line 8`,
	}
	slices.Sort(rejected.Problems)
	slices.Sort(want)
	if !slices.Equal(rejected.Problems, want) {
		t.Errorf("the problems are\n%s\nwant\n%s", strings.Join(rejected.Problems, "\n"), strings.Join(want, "\n"))
	}
	for text, want := range map[string]string{
		"organization: [":                   "line 1",
		"organization: {key: a}\n---\na: b": "more than one YAML document",
	} {
		if _, err := readImportFile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// An import stops when its context ends, even while it hashes passwords, which takes
// a file of many people hours.
func TestImportStopsHashingPasswords(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	password := "secret-of-ann"
	s := &store.Store{Options: store.Options{Random: rand.Reader}}
	hashes, err := New(s, people.New(s)).hashPasswords(ctx, []importPerson{{Key: "ann", Password: &password}})
	if !errors.Is(err, context.Canceled) || len(hashes) > 0 {
		t.Errorf("%d passwords are hashed: %v", len(hashes), err)
	}
}
