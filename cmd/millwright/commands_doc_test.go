package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/commands.md again")

const commandsDoc = "../../docs/commands.md"

// commonFlags are explained once, in the conventions.
var commonFlags = []string{"as", "json", "limit", "organization"}

const commandsHead = `# Commands

Every command with its flags and examples, as ~--help~ shows them. ~…~ stands for the rest of an id. This page is written by ~go test ./cmd/millwright -run TestCommandsDocIsCurrent -update~.

## Conventions

- A command exits 0 only on success. It prints a table, or with ~--json~ one object or array.
- ~TIME~ is an RFC 3339 time or a duration before now, such as ~36h~. ~--limit~ is the maximum number of rows (50).
- ~--as PERSON~, an id or e-mail address, acts with that person's permissions and is recorded as ~NAME (operator)~. Without it a command acts as the operator, recorded as ~Millwright~.
- Lists of work orders, feedback and Log Records require ~--organization~, an id or key, and show everything to the operator, without ~people~; with ~--as~ they show what that person may read.
- ~webhooks test~ and ~trigger~ exit 0 only if the receiver returned 2xx ([rule 6.14](api.md#614-tests)).

| with ~--json~ | members |
|---|---|
| delivery | ~id~, ~event_id~, ~event_type~, ~webhook_id~, ~status~, ~attempts~, ~next_attempt_at~, ~last_status~, ~last_error~, ~created_at~; ~show~ adds ~attempts_made~ |
| webhook address | ~id~, ~integration_id~, ~url~, ~events~, ~enabled~, ~off_reason~, ~off_at~; ~secret~ once, where one is made; ~list~ and ~show~ add ~failing_since~, ~last_at~, ~last_status~, ~last_error~, ~last_success_at~, ~held_reason~ |
| test | ~webhook_id~, ~event_id~ and the attempt |
| person | ~id~, ~organization_id~, ~name~, ~email~, ~phone~, ~admin~, ~organization_definition_id~, ~organization_definition~, ~grants~, ~deactivated_at~, ~signs_in~, ~openid_accounts~, ~invited~ |
| ~people invite~ | ~person_id~, ~url~, ~expires_at~ |
| organization | ~id~, ~key~, ~name~, ~plan~, ~read_only~, ~suspended~, ~openid_required~, ~created_at~ |
| work order, feedback | as a GET of the API returns it |
| Log Record | ~id~, ~created_at~, ~actor_id~, ~actor_name~, ~actor_now~ (the present name if it differs), ~action~, ~record_id~, ~record_name~ |
| notice | ~id~, ~kind~, ~created_at~, ~read_at~, ~record_id~, ~readable~, ~about~, ~title~, ~number~ |
| import | [import.md](import.md#preview-and-result) |
`

// docs/commands.md contains the help of every command.
func TestCommandsDocIsCurrent(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(strings.ReplaceAll(commandsHead, "~", "`"))
	every(rootCommand(), func(cmd *cobra.Command) {
		acts := !cmd.HasSubCommands() || cmd.Flags().HasFlags() // a group with flags does something itself
		if cmd.Runnable() && acts && cmd.Name() != "help" {
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
	var common []string
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(commonFlags, f.Name) {
			common = append(common, "`--"+f.Name+"`")
		} else {
			own.AddFlag(f)
		}
	})
	if flags := strings.TrimRight(own.FlagUsages(), "\n"); flags != "" {
		fmt.Fprintf(doc, "%s\n", flags)
	}
	example := strings.TrimSpace(cmd.Example)
	if strings.Contains(example, "\n") || strings.Contains(example, "--") { // else it says nothing more
		doc.WriteString("\n")
		for line := range strings.Lines(example) {
			doc.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	doc.WriteString("```\n")
	if len(common) > 0 {
		fmt.Fprintf(doc, "\nAlso %s.\n", strings.Join(common, ", "))
	}
}
