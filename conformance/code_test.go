package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

func TestImplementationsExist(t *testing.T) {
	declared := map[string]map[string]bool{} // by package directory
	for _, s := range sections {
		for _, r := range s.rules {
			for _, name := range r.functions() {
				dir, bare, _ := strings.Cut(name, ".")
				if declared[dir] == nil {
					declared[dir] = functionsIn(t, filepath.Join("..", dir))
				}
				if !declared[dir][bare] {
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
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
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
