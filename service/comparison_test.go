package service_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// secretName is the end of a name whose value must not be compared byte by byte.
var secretName = regexp.MustCompile(`(?i)(secret|signature|signed|mac|token|password|hash|sum|digest|fingerprint|credentials|apikey|v1)$`)

// plainComparisons are ordinary comparisons of such names that reveal nothing: file,
// expression and reason.
var plainComparisons = map[string]string{
	"service/lists/page_start.go: c.Filter != digest":                      "after the token's MAC: a digest of filters that the caller sent itself",
	"service/imports/entry.go: e.imported[name] == digest":                 "whether an imported field has changed: no caller sends or sees digests",
	"console/integration_access.go: w.Kind switch pages.WayAssigned":       "kinds of access, no secret",
	"mail/mailtest/conversation.go: password != c.server.options.Password": "the mail server of tests",
}

// Secrets and signatures are compared in constant time or by a query over digests,
// never with ==, bytes.Equal or a switch. Comparing with a constant is allowed.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	found := map[string]bool{}
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if name != ".." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"dev", "tools", "bench", "bin", "testdata"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files++
		for _, c := range plainlyCompared(t, path) {
			found[filepath.ToSlash(strings.TrimPrefix(path, "../"))+": "+c] = true
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files were read, error %v", files, err)
	}
	for c := range found {
		if plainComparisons[c] == "" {
			t.Errorf("%s: compare in constant time (hmac.Equal, subtle.ConstantTimeCompare) or add the reason to plainComparisons", c)
		}
	}
	for c := range plainComparisons {
		if !found[c] {
			t.Errorf("%s: the exception is not needed", c)
		}
	}
}

// plainlyCompared returns the comparisons in a file that involve a secret's name.
func plainlyCompared(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return comparisonsIn(file)
}

func comparisonsIn(file ast.Node) []string {
	var found []string
	note := func(operator string, left, right ast.Expr) {
		if (isSecret(left) || isSecret(right)) && !isConstant(left) && !isConstant(right) {
			found = append(found, types.ExprString(left)+" "+operator+" "+types.ExprString(right))
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				note(n.Op.String(), n.X, n.Y)
			}
		case *ast.CallExpr:
			if plain := []string{"bytes.Equal", "bytes.Compare", "slices.Equal", "strings.EqualFold", "strings.Compare", "reflect.DeepEqual", "slices.Contains"}; slices.Contains(plain, types.ExprString(n.Fun)) && len(n.Args) == 2 {
				note(types.ExprString(n.Fun), n.Args[0], n.Args[1])
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				break
			}
			for _, clause := range n.Body.List {
				if c, ok := clause.(*ast.CaseClause); ok {
					for _, value := range c.List {
						note("switch", n.Tag, value)
					}
				}
			}
		}
		return true
	})
	return found
}

func isSecret(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return secretName.MatchString(e.Name)
	case *ast.SelectorExpr:
		return secretName.MatchString(e.Sel.Name)
	case *ast.CallExpr: // string(secret), hex.EncodeToString(mac), mac.Sum(nil)
		if len(e.Args) == 1 && isSecret(e.Args[0]) {
			return true
		}
		return isSecret(e.Fun)
	case *ast.SliceExpr:
		return isSecret(e.X)
	case *ast.IndexExpr:
		return isSecret(e.X)
	case *ast.StarExpr:
		return isSecret(e.X)
	case *ast.ParenExpr:
		return isSecret(e.X)
	}
	return false
}

// isConstant reports whether the expression is a literal, nil, or a constant of a
// package that names kinds and codes.
func isConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "true" || e.Name == "false"
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && slices.Contains([]string{"models", "json", "jsontext", "http"}, pkg.Name)
	}
	return false
}

// The test above finds what it looks for.
func TestPlainComparisonsAreFound(t *testing.T) {
	const source = `package p
func f(a, b struct{ Secret string }, sentMAC, mac []byte, token string) bool {
	switch token {
	case b.Secret:
	case "literal":
	}
	return a.Secret == b.Secret || bytes.Equal(mac, sentMAC) || string(mac) != other || token == "" || h.Sum(nil)[0] == x
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := comparisonsIn(file)
	want := []string{"token switch b.Secret", "a.Secret == b.Secret", "mac bytes.Equal sentMAC", "string(mac) != other", "h.Sum(nil)[0] == x"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
