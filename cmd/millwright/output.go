package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
)

// output is how a command prints its result: a table for people, JSON for programs.
type output struct{ json bool }

// flag adds --json to the command.
func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON, for programs")
}

// show prints value as JSON if --json is given, otherwise the table that the
// function writes: each cell ends with a tab, each line with a newline.
func (o *output) show(cmd *cobra.Command, value any, table func(w io.Writer)) error {
	if o.json {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	table(w)
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(line, " \n"))
	}
	return nil
}

// orDash formats an optional value for a table.
func orDash[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}

// maxCell limits the characters in a cell of a table.
const maxCell = 40

// short formats a string that others wrote for a cell of a table.
func short(text string) string {
	if runes := []rune(text); len(runes) > maxCell {
		text = string(runes[:maxCell-1]) + "…"
	}
	return oneLine(text)
}

// textCell formats optional text that others wrote.
func textCell(text *string) string { return oneLine(orDash(text)) }

// oneLine replaces unprintable characters, so that a string that others wrote cannot
// control the terminal or break the table.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
