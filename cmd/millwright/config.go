package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its value, its default and its meaning; secrets are not shown",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SETTING\tVALUE\tDEFAULT\tMEANING")
			for _, tag := range settingTags() {
				value := shownValue(tag.Get("env"), tag.Get("secret") == "true")
				fallback := tag.Get("envDefault")
				switch {
				case tag.Get("required") == "true":
					fallback = "(required)"
				case fallback == "":
					fallback = "(none)"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", tag.Get("env"), value, fallback, tag.Get("doc"))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "\n%s can be read from files instead: NAME%s holds the path.\n", secretNames(), fileSuffix)
			return nil
		},
	}
}

// shownValue returns a setting's value as it is printed: never a secret.
func shownValue(name string, secret bool) string {
	value, set := os.LookupEnv(name)
	if !secret {
		if !set {
			return "(not set)"
		}
		return value
	}
	if path := os.Getenv(name + fileSuffix); path != "" && value == "" {
		return "(in " + path + ")"
	}
	if !set {
		return "(not set)"
	}
	return "(set)"
}

func secretNames() string {
	var names []string
	for _, tag := range settingTags() {
		if tag.Get("secret") == "true" {
			names = append(names, tag.Get("env"))
		}
	}
	return strings.Join(names, ", ")
}
