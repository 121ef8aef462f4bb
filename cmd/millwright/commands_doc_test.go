package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/commands.md again")

const commandsDoc = "../../docs/commands.md"

// docs/commands.md contains the help of every command.
func TestCommandsDocIsCurrent(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("# Commands\n\nEvery command with its flags and examples, as `--help` shows them. " +
		"[The contract](contract.md#operators-commands) describes their output. `--as` takes a person's id or e-mail address, " +
		"`…` stands for the rest of an id. This page is made by `go test ./cmd/millwright -run TestCommandsDocIsCurrent -update`.\n")
	every(rootCommand(), func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Name() != "help" {
			describeCommand(&doc, cmd)
		}
	})
	if *update {
		if err := os.WriteFile(commandsDoc, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(commandsDoc)
	if err != nil || string(stored) != doc.String() {
		t.Errorf("docs/commands.md is not what the commands say (%v): run this test with -update", err)
	}
}

func describeCommand(doc *strings.Builder, cmd *cobra.Command) {
	about := cmd.Short + "."
	if cmd.Long != "" {
		about = cmd.Long
	}
	fmt.Fprintf(doc, "\n## %s\n\n%s\n\n```\n%s\n", cmd.CommandPath(), about, cmd.UseLine())
	if flags := strings.TrimRight(cmd.NonInheritedFlags().FlagUsages(), "\n"); flags != "" {
		fmt.Fprintf(doc, "%s\n", flags)
	}
	doc.WriteString("```\n")
	if strings.TrimSpace(cmd.Example) == cmd.UseLine() {
		return // it says nothing more
	}
	doc.WriteString("\n```\n")
	for line := range strings.Lines(cmd.Example) {
		doc.WriteString(strings.TrimSpace(line) + "\n")
	}
	doc.WriteString("```\n")
}
