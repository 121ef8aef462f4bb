package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// every calls the function for the command and each one below it.
func every(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		every(c, visit)
	}
}

// words splits an example line as a shell does.
func words(line string) (words []string) {
	var word strings.Builder
	quote := rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			words = append(words, word.String())
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return words
}

// Each command's help shows examples, and the command accepts them.
func TestHelpHasExamplesThatWork(t *testing.T) {
	used := map[string]bool{}
	every(rootCommand(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if path == "millwright help" || strings.HasPrefix(path, "millwright completion") {
			return
		}
		used[path] = true
		out, err := run(t, append(strings.Fields(path)[1:], "--help")...)
		if err != nil || !strings.Contains(out, "Examples:") || !strings.Contains(out, "millwright") || cmd.Example == "" {
			t.Errorf("the help of %s lacks examples: %v\n%s", path, err, out)
			return
		}
		for line := range strings.Lines(cmd.Example) {
			command, _, _ := strings.Cut(line, " < ") // a file for its input
			args := words(strings.TrimSpace(command))
			if line = strings.TrimSpace(line); args[0] != "millwright" {
				t.Errorf("%s: the example %q runs another program", path, line)
				continue
			}
			// A fresh tree: flags keep what was parsed.
			target, rest, err := rootCommand().Find(args[1:])
			if err == nil {
				err = target.ParseFlags(rest)
			}
			if err == nil {
				err = target.ValidateArgs(target.Flags().Args())
			}
			if err == nil {
				err = target.ValidateRequiredFlags()
			}
			if err == nil {
				err = target.ValidateFlagGroups()
			}
			if err != nil || !strings.HasPrefix(target.CommandPath(), path) {
				t.Errorf("%s: the example %q runs %s: %v", path, line, target.CommandPath(), err)
			}
		}
	})
	for path := range examples {
		if !used[path] {
			t.Errorf("there are examples of %s, which does not exist", path)
		}
	}
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	every(rootCommand(), func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the help is %q", cmd.CommandPath(), cmd.Short)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: the flag --%s is not described", cmd.CommandPath(), f.Name)
			}
		})
	})
}

// A wrong value, flag or command is answered with those that are right.
func TestErrorsListTheValidValues(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says []string
	}{
		"a command":            {[]string{"webhook"}, []string{`unknown command "webhook" for "millwright"`, "Did you mean this?\n\twebhooks"}},
		"a subcommand":         {[]string{"webhooks", "enabel", "whk_x"}, []string{`unknown command "enabel"`, "renew-secret", "  enable "}},
		"a flag":               {[]string{"deliveries", "list", "--state", "failed"}, []string{"unknown flag: --state", "--status", "--address", "--limit", "--json"}},
		"a delivery status":    {[]string{"deliveries", "list", "--status", "failed,lost"}, []string{`--status: there is no delivery status "lost"`, "pending, delivered, retrying, failed, held, skipped"}},
		"a work order status":  {[]string{"work-orders", "list", "--organization", "acme", "--status", "done"}, []string{`there is no work order status "done"`, "sent_to_inspection"}},
		"a feedback status":    {[]string{"issues", "list", "--organization", "acme", "--status", "closed"}, []string{`there is no feedback status "closed"`, "open, resolved"}},
		"an event type":        {[]string{"webhooks", "change", "whk_x", "--event", "eaten"}, []string{`there is no event type "eaten"`, "work_order.created", "issue.resolved"}},
		"a triggered type":     {[]string{"trigger", "eaten", "--address", "whk_x"}, []string{`there is no event type "eaten"`, "work_order.created", "ping"}},
		"a scope":              {[]string{"integrations", "scopes", "idn_x", "--scope", "root"}, []string{`there is no scope "root"`, "work_orders:read"}},
		"a limit":              {[]string{"deliveries", "list", "--limit", "many"}, []string{"--limit: must be a whole number from 1"}},
		"a limit of nothing":   {[]string{"issues", "list", "--organization", "acme", "--limit", "0"}, []string{"a whole number from 1"}},
		"a duration":           {[]string{"namespace", "--retention", "long"}, []string{`--retention: "long" is not a duration`}},
		"no reader":            {[]string{"work-orders", "list"}, []string{"as organization"}},
		"two readers":          {[]string{"issues", "list", "--as", "a@example.com", "--organization", "acme"}, []string{"as organization"}},
		"no person of notices": {[]string{"notices", "list"}, []string{`"as"`, "millwright notices list --as PERSON"}},
		"no argument":          {[]string{"trigger"}, []string{"received 0", "millwright trigger EVENT_TYPE --address ID", "Examples:"}},
		"no flag":              {[]string{"people", "list"}, []string{`"organization"`, "millwright people list --organization KEY", "Examples:"}},
		"neither of two flags": {[]string{"log", "list"}, []string{"millwright log list --organization KEY | --as PERSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, test.args...)
			if err == nil {
				t.Fatalf("it prints %q and has no error", out)
			}
			for _, words := range test.says {
				if said := out + err.Error(); !strings.Contains(said, words) {
					t.Errorf("it says %q, which lacks %q", said, words)
				}
			}
		})
	}
}
