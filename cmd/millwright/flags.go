package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millwright/models"
)

// choices is a flag that takes some of a fixed list of values, repeated or separated by commas.
type choices[S ~string] struct {
	chosen *[]S
	valid  []S
	// noun is what error sentences call a value, such as "delivery status".
	noun string
}

// choiceFlag adds a flag that takes some of the valid values.
func choiceFlag[S ~string](cmd *cobra.Command, chosen *[]S, valid []S, name, noun string) {
	cmd.Flags().Var(&choices[S]{chosen, valid, noun}, name, noun+", once for each or separated by commas: "+strings.Join(textsOf(valid), ", "))
}

// Set adds the values of a comma-separated string.
func (c *choices[S]) Set(text string) error {
	if text == "" {
		return nil
	}
	for value := range strings.SplitSeq(text, ",") {
		if !slices.Contains(c.valid, S(value)) {
			return valueError(fmt.Sprintf("there is no %s %q; choose from %s", c.noun, value, strings.Join(textsOf(c.valid), ", ")))
		}
		*c.chosen = append(*c.chosen, S(value))
	}
	return nil
}

// String returns the chosen values; pflag shows a default that is not "".
func (c *choices[S]) String() string {
	if c.chosen == nil {
		return ""
	}
	return strings.Join(textsOf(*c.chosen), ",")
}

// Type is what help calls a value.
func (c *choices[S]) Type() string { return "values" }

// limitFlag is --limit of lists.
type limitFlag int

// flag adds --limit to the command.
func (l *limitFlag) flag(cmd *cobra.Command) {
	*l = models.DefaultPageSize
	cmd.Flags().Var(l, "limit", "how many to list at most")
}

// Set accepts a whole number from 1.
func (l *limitFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return valueError("must be a whole number from 1")
	}
	*l = limitFlag(n)
	return nil
}

func (l *limitFlag) String() string { return strconv.Itoa(int(*l)) }

// Type is what help calls the value.
func (l *limitFlag) Type() string { return "number" }

// upTo returns up to limit rows of a list, page by page. page returns the next rows, of the
// size or fewer at the end.
func upTo[T any](limit limitFlag, page func(size int) ([]T, error)) ([]T, error) {
	found := []T{}
	for len(found) < int(limit) {
		size := min(int(limit)-len(found), models.MaxPageSize)
		rows, err := page(size)
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
		if len(rows) < size {
			break
		}
	}
	return found, nil
}

// textsOf returns the values as plain strings.
func textsOf[S ~string](values []S) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}

// valueError is the message of one of our flags about its value.
type valueError string

func (w valueError) Error() string { return string(w) }

// describeFlagError returns an error about a flag's value that lists what would be right.
func describeFlagError(_ *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if own, ok := errors.AsType[valueError](wrong.Unwrap()); ok {
			return fmt.Errorf("--%s: %w", wrong.GetFlag().Name, own)
		}
		return fmt.Errorf("--%s: %q is not a %s", wrong.GetFlag().Name, wrong.GetValue(), wrong.GetFlag().Value.Type())
	}
	return err
}
