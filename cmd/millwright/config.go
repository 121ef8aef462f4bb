package main

import (
	"fmt"
	"os"
	"reflect"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print every setting: its default, whether it is set, what it means",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SETTING\tVALUE\tDEFAULT\tMEANING")
			t := reflect.TypeFor[settings]()
			for i := range t.NumField() {
				tag := t.Field(i).Tag
				value, set := os.LookupEnv(tag.Get("env"))
				switch {
				case !set:
					value = "(not set)"
				case tag.Get("secret") == "true":
					value = "(set)"
				}
				fallback := tag.Get("envDefault")
				switch {
				case tag.Get("required") == "true":
					fallback = "(required)"
				case fallback == "":
					fallback = "(none)"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", tag.Get("env"), value, fallback, tag.Get("doc"))
			}
			return table.Flush()
		},
	}
}
