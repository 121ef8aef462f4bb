// Command bench measures the service on the Postgres of DATABASE_URL and the
// Temporal of TEMPORAL_ADDRESS and prints a table; with -json it writes the same
// figures as JSON, with -write both. Run it with `make bench`, which builds the
// product and brings up a throwaway stack. Nothing is asserted: figures are for
// comparing with the floors measured in the same run. docs/performance.md tells
// how to read them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are the command line's.
type options struct {
	json, write, profile string
	only, calls          string
	large                bool
	records              int
	addresses            int
	retries              int
	seconds              float64
	binary               string
}

// part is a measurement that can be made alone.
type part struct {
	name    string
	measure func(context.Context, *report, options, time.Duration) error
}

func (p part) chosenAs() string { return p.name }

// parts are what can be measured alone, in their order.
var parts = []part{
	{"calls", benchCalls},
	{"deliveries", benchDeliveries},
	{"growth", benchGrowth},
	{"addresses", benchAddresses},
	{"retries", benchRetries},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) == 2 && os.Args[1] == floorServer {
		err = serveFloors(ctx)
	} else {
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
	flags.StringVar(&o.json, "json", "", "also write the figures to this file")
	flags.StringVar(&o.write, "write", "", "also write the figures to this file as JSON, and the table beside it as .txt")
	flags.StringVar(&o.only, "only", "", "measure only these, separated by commas: "+namesOf(parts))
	flags.StringVar(&o.calls, "calls", "", "of the calls measure only these, separated by commas: "+namesOf(measuredCalls))
	flags.StringVar(&o.profile, "profile", "", "also take profiles of api and worker under load, into this folder")
	flags.BoolVar(&o.large, "large", false, "grow to 2,000 addresses and 100,000 retries; takes some 40 minutes")
	flags.IntVar(&o.records, "records", 1_000_000, "work orders to grow to, from 10,000")
	flags.IntVar(&o.addresses, "addresses", 200, "webhook addresses to grow to, from 10")
	flags.IntVar(&o.retries, "retries", 5000, "deliveries that wait for their next attempt")
	flags.Float64Var(&o.seconds, "seconds", 10, "how long a load lasts")
	flags.StringVar(&o.binary, "millwright", "bin/millwright", "the product")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return o, err
	}
	if o.large {
		o.addresses, o.retries = 2000, 100_000
	}
	if o.seconds <= 0 || o.records < 20_000 || o.addresses < 20 || o.retries < 1 {
		return o, errors.New("-seconds is above 0, -records at least 20,000, -addresses at least 20, -retries at least 1")
	}
	return o, errors.Join(unknown("-only", o.only, parts), unknown("-calls", o.calls, measuredCalls))
}

// named is something that can be chosen on the command line.
type named interface{ chosenAs() string }

func namesOf[N named](all []N) string {
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.chosenAs()
	}
	return strings.Join(names, ", ")
}

// chosen reports whether the list of a flag has the name; an empty one has them all.
func chosen(list string, n named) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), n.chosenAs())
}

// unknown complains about a name in the list of a flag that nothing has.
func unknown[N named](name, list string, all []N) error {
	for asked := range strings.SplitSeq(list, ",") {
		if asked != "" && !slices.ContainsFunc(all, func(n N) bool { return n.chosenAs() == asked }) {
			return fmt.Errorf("%s %s: it is one of %s", name, asked, namesOf(all))
		}
	}
	return nil
}

func run(ctx context.Context, o options) error {
	if err := o.buildForProfiles(ctx); err != nil {
		return err
	}
	m, err := describe(ctx)
	if err != nil {
		return err
	}
	r := &report{Machine: m, At: time.Now().UTC()}
	fmt.Println(m)
	for _, part := range parts {
		if !chosen(o.only, part) {
			continue
		}
		started := time.Now()
		if err := part.measure(ctx, r, o, time.Duration(o.seconds*float64(time.Second))); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Printf("%s: measured in %s\n", part.name, time.Since(started).Round(time.Second))
	}
	if err := r.print(os.Stdout); err != nil {
		return err
	}
	return r.write(o)
}

// write writes the figures to the files that are asked for.
func (r *report) write(o options) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	for _, file := range []string{o.json, o.write} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o600); err != nil {
			return err
		}
	}
	if o.write == "" {
		return nil
	}
	table, err := os.Create(strings.TrimSuffix(o.write, ".json") + ".txt")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(table, r.Machine.String()+"\n"+r.At.Format(time.RFC3339)+"\n\n"); err != nil {
		return err
	}
	if err := r.print(table); err != nil {
		return err
	}
	return table.Close()
}
