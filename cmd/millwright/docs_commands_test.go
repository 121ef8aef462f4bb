package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commandInDocs finds a command in a code span or at the beginning of a line of a code block.
var commandInDocs = regexp.MustCompile("(?m)(?:`|^(?:\\$ |sudo |docker compose (?:exec|run --rm) \\w+ )?)(?:bin/|/usr/local/bin/)?millwright ([a-z][^`\n|;&>)]*)")

// Every command and flag that the docs tell people to use exists.
func TestCommandsInDocsExist(t *testing.T) {
	var files []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/alerts/*", "deploy/*/*", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := 0
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range commandInDocs.FindAllStringSubmatch(string(text), -1) {
			seen++
			words := strings.Fields(strings.Split(match[1], " #")[0])
			root := rootCommand()
			root.InitDefaultHelpCmd()
			cmd, rest, err := root.Find(words)
			unknown := len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && rest[0] != "[flags]" // a group has flags at most
			if err != nil || cmd == root || cmd.HasSubCommands() && unknown {
				t.Errorf("%s: there is no command %q", file, match[0])
				continue
			}
			for _, word := range rest {
				name, isFlag := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(strings.TrimRight(name, "],."), "=")
				if isFlag && name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
					t.Errorf("%s: %q has no flag --%s", file, match[0], name)
				}
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d commands were found in the docs", seen)
	}
}
