// Modulepath gives the module another path, under which others can fetch it:
//
//	cd tools && go run ./modulepath github.com/OWNER/millwright
//
// It changes the go.mod files, the imports, and what else names a package: the
// linter's rules, the examples of code and a few strings.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./modulepath PATH")
		os.Exit(2)
	}
	if err := rename("..", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rename gives the module in root, and the modules below it, a new path.
func rename(root, path string) error {
	if !regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._-]+)+$`).MatchString(path) {
		return fmt.Errorf("the path %q must begin with a host, such as github.com/OWNER/millwright", path)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(module), "\n")
	old := strings.TrimPrefix(first, "module ")
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files with git: %w", err)
	}
	files := strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 })
	replace := replacer(old, path, files)
	for _, name := range files {
		if err := rewrite(filepath.Join(root, name), replace); err != nil {
			return err
		}
	}
	return nil
}

// replacer returns what replaces the old path in the text of a file: alone in a go.mod
// and in the linter's settings, elsewhere only before the name of one of our directories.
func replacer(old, path string, files []string) func(name, text string) string {
	directories := map[string]bool{}
	for _, name := range files {
		if top, _, nested := strings.Cut(name, "/"); nested {
			directories[regexp.QuoteMeta(top)] = true
		}
	}
	quoted := regexp.QuoteMeta(old)
	imports := regexp.MustCompile(`(^|[^\w./-])` + quoted + `(/(?:` + strings.Join(slices.Sorted(maps.Keys(directories)), "|") + `)\b)`)
	requires := regexp.MustCompile(`(?m)^(module |replace |\t|require )` + quoted + `( |/|$)`)
	linter := regexp.MustCompile(`(pkg: |deny |prefix\()` + quoted + `([/)])`)
	return func(name, text string) string {
		text = imports.ReplaceAllString(text, "${1}"+path+"${2}")
		switch filepath.Base(name) {
		case "go.mod":
			text = requires.ReplaceAllString(text, "${1}"+path+"${2}")
		case ".golangci.yaml":
			text = linter.ReplaceAllString(text, "${1}"+path+"${2}")
		}
		return text
	}
}

// rewrite rewrites a file whose text changes. In Go files it sorts the imports again.
func rewrite(name string, replace func(name, text string) string) error {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	before, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	after := []byte(replace(name, string(before)))
	if bytes.Equal(before, after) {
		return nil
	}
	if strings.HasSuffix(name, ".go") {
		if after, err = format.Source(after); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return os.WriteFile(name, after, info.Mode())
}
