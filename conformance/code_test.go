package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImplementationsExist(t *testing.T) {
	declared := map[string]map[string]bool{} // by package directory
	for _, s := range sections {
		for _, r := range s.rules {
			if r.code == "" {
				continue
			}
			for name := range strings.SplitSeq(r.code, ", ") {
				dir, function, _ := strings.Cut(name, ".")
				if declared[dir] == nil {
					declared[dir] = functionsIn(t, filepath.Join("..", dir))
				}
				if !declared[dir][function] {
					t.Errorf("section %s, %s: there is no function %s", s.number, r.item, name)
				}
			}
		}
	}
}

// functionsIn returns the functions and methods of the package in a directory:
// Func, Type.Method and (*Type).Method.
func functionsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok {
				functions[receiverOf(f)+f.Name.Name] = true
			}
		}
	}
	return functions
}

// receiverOf returns "" for a function, "Type." or "(*Type)." for a method.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind, pointer := f.Recv.List[0].Type, false
	if star, ok := kind.(*ast.StarExpr); ok {
		kind, pointer = star.X, true
	}
	switch generic := kind.(type) {
	case *ast.IndexExpr:
		kind = generic.X
	case *ast.IndexListExpr:
		kind = generic.X
	}
	name := kind.(*ast.Ident).Name
	if pointer {
		return "(*" + name + ")."
	}
	return name + "."
}
