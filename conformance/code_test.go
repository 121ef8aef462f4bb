package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// function is a function or method of the product, found by its name.
type function struct {
	path    string
	files   *token.FileSet
	declare *ast.FuncDecl
}

// namedFunctions returns the functions that the rules name, by name. A name that
// does not exist fails the test.
func namedFunctions(t *testing.T) map[string]function {
	t.Helper()
	named, declared := map[string]function{}, map[string]map[string]function{} // declared: by package directory
	for _, s := range sections {
		for _, r := range s.rules {
			for _, name := range r.functions() {
				dir, bare, _ := strings.Cut(name, ".")
				if declared[dir] == nil {
					declared[dir] = functionsIn(t, filepath.Join("..", dir))
				}
				f, found := declared[dir][bare]
				if !found {
					t.Errorf("section %s, %s: there is no function %s", s.number, r.item, name)
					continue
				}
				named[name] = f
			}
		}
	}
	return named
}

func TestImplementationsExist(t *testing.T) { namedFunctions(t) }

// functionsIn returns the functions and methods of the package in a directory:
// Func, Type.Method and (*Type).Method.
func functionsIn(t *testing.T, dir string) map[string]function {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]function{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok {
				functions[receiverOf(f)+f.Name.Name] = function{path, files, f}
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
