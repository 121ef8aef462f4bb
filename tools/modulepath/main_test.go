package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRename renames a copy of the repository. The modules that have code of ours must
// build and pass vet; deploy/check, which has none, takes minutes.
func TestRename(t *testing.T) {
	root := t.TempDir()
	run := func(directory, name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = directory
		command.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s in %s: %v\n%s", name, strings.Join(args, " "), directory, err, out)
		}
		return string(out)
	}
	for name := range strings.SplitSeq(run("../..", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			continue // the empty name at the end, or a file that was deleted
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(root, "git", "init", "--quiet")
	run(root, "git", "add", "--all")

	const path = "code.example.org/acme/millwright"
	if err := rename(root, path); err != nil {
		t.Fatal(err)
	}
	for module, packages := range map[string]string{
		".": "./...", "dev": "./...", "examples/erp-go": "./...", "tools": "./modulepath", "tools/oasdiff": "./received", "deploy/check": "",
	} {
		directory := filepath.Join(root, module)
		if got, want := strings.TrimSpace(run(directory, "go", "list", "-m", "-f", "{{if .Main}}{{.Path}}{{end}}")), filepath.Join(path, module); got != want {
			t.Errorf("the module in %s is %s, want %s", module, got, want)
		}
		if packages != "" {
			run(directory, "go", "build", "-o", os.DevNull, packages)
			run(directory, "go", "vet", packages)
		}
	}
	grep := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-nE", `["(: ]millwright/(service|api|models|dev|webhook)|prefix\(millwright\)`)
	grep.Dir = root
	if out, _ := grep.Output(); len(out) > 0 {
		t.Errorf("the old path remains:\n%s", out)
	}
	run(root, "git", "add", "--all")
	if err := rename(root, path); err != nil {
		t.Fatal(err)
	}
	if changed := run(root, "git", "diff", "--stat"); changed != "" {
		t.Errorf("a second run changes\n%s", changed)
	}
}

func TestRenameRejectsPathsWithoutHost(t *testing.T) {
	for _, path := range []string{"", "millwright", "millwright/v2", "https://github.com/acme/millwright", "github.com"} {
		if err := rename(t.TempDir(), path); err == nil || !strings.Contains(err.Error(), "must begin with a host") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
