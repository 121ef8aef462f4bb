package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	only, calls, pages, patterns string
	write, profile, binary       string
	records, deliveries, expired int
	seconds                      float64
	peer                         peerOptions
}

// part is a measurement that can be selected.
type part struct {
	name    string
	measure func(*bench)
}

// parts are all measurements, in order.
var parts = []part{
	{"calls", benchCalls},
	{"costs", benchCosts},
	{"deliveries", benchDeliveries},
	{"growth", benchGrowth},
	{"neighbors", benchNeighbors},
	{"console", benchConsole},
	{"peers", benchPeer},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == baselineServerCommand:
		err = serveBaselines(ctx)
	case len(os.Args) == 2 && os.Args[1] == hostileClientCommand:
		err = serveHostileClient(ctx, os.Stdin, os.Stdout)
	default:
		var o options
		if o, err = readOptions(); err == nil {
			err = run(ctx, o)
		}
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func readOptions() (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.write, "write", "", "also write the table to this file")
	flags.StringVar(&o.only, "only", "", "measure only these parts, separated by commas: "+strings.Join(partNames(), ", "))
	flags.StringVar(&o.calls, "calls", "", "measure only these calls, separated by commas: "+strings.Join(callNames(), ", "))
	flags.StringVar(&o.pages, "pages", "", "of the console measure only pages with one of these strings in their names, separated by commas")
	flags.StringVar(&o.patterns, "patterns", "", "of the neighbors measure only patterns with one of these strings in their names, separated by commas")
	flags.StringVar(&o.profile, "profile", "", "also write profiles of api and worker under load to this directory; -millwright must be built with -tags profile")
	flags.IntVar(&o.records, "records", 1_000_000, "work orders to grow to, from 10,000")
	flags.IntVar(&o.deliveries, "deliveries", 0, "finished deliveries that are kept at the larger size of growth; they add sizes, a vacuum, a dump, and a removal under load")
	flags.IntVar(&o.expired, "expired", 0, "deliveries that the removal finds, all of one day; by default a thirtieth of -deliveries")
	flags.Float64Var(&o.seconds, "seconds", 10, "how long each load lasts")
	flags.StringVar(&o.binary, "millwright", "bin/millwright", "the product's program")
	o.peer.define(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return o, err
	}
	if o.expired == 0 {
		o.expired = o.deliveries / 30
	}
	if o.seconds <= 0 || o.records < 20_000 || o.deliveries < 0 || o.expired < 0 {
		return o, errors.New("-seconds must be above 0, -records at least 20,000, and -deliveries and -expired at least 0")
	}
	return o, errors.Join(unknown("-only", o.only, partNames()), unknown("-calls", o.calls, callNames()), o.peer.check(o.only))
}

func partNames() []string { return each(parts, func(p part) string { return p.name }) }

func callNames() []string { return each(measuredCalls, func(c measuredCall) string { return c.name }) }

// selected reports whether a flag's list contains the name; an empty list contains
// all.
func selected(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// named reports whether a flag's list has a string that is in the name; an empty list has one
// of every name.
func named(list, name string) bool {
	return list == "" || slices.ContainsFunc(strings.Split(list, ","), func(text string) bool { return strings.Contains(name, text) })
}

// unknown returns an error if a flag's list contains an unknown name.
func unknown(flag, list string, names []string) error {
	for asked := range strings.SplitSeq(list, ",") {
		if asked != "" && !slices.Contains(names, asked) {
			return fmt.Errorf("%s %s: must be one of %s", flag, asked, strings.Join(names, ", "))
		}
	}
	return nil
}

func run(ctx context.Context, o options) error {
	r := &report{At: time.Now().UTC(), live: os.Stdout}
	if err := attempt(func() { r.Machine = describe(ctx) }); err != nil {
		return err
	}
	fmt.Println(r.Machine)
	for _, part := range parts {
		if !selected(o.only, part.name) {
			continue
		}
		started := time.Now()
		err := runPart(ctx, r, o, part.measure)
		r.showMeasured()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Printf("%s: measured in %s\n", part.name, time.Since(started).Round(time.Second))
	}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	if o.write != "" {
		if err := r.writeTo(o.write); err != nil {
			return err
		}
	}
	if r.failures > 0 {
		return fmt.Errorf("%d rows could not be measured", r.failures)
	}
	return nil
}

// writeTo writes the table to the file.
func (r *report) writeTo(file string) error {
	table, err := os.Create(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(table, "%s\n%s\n\n", r.Machine, r.At.Format(time.RFC3339))
	return errors.Join(r.print(table), table.Close())
}
