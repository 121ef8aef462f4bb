// Command bench measures the service on the Postgres of DATABASE_URL and the Temporal of
// TEMPORAL_ADDRESS. Run it with `make bench`; docs/performance.md explains its figures.
//
// Each part (-only selects some) makes its own installation: a database, a Temporal namespace,
// and api and worker as processes. The bench calls the API, receives the deliveries, and reads
// CPU time and memory from /proc. Nothing is asserted: figures are for comparison with baselines,
// the same work without the product. It must not call the service's code: of the product it imports
// packages for ids, signatures, workflow ids and the tokens of sessions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	only, calls, pages, patterns         string
	write, profile, binary               string
	peerRead, peerCreate, peerCreateBody string
	records, deliveries, expired         int
	seconds                              float64
}

// rounds is the number of times that what is compared alternates, so that other load on
// the machine affects all of it.
const rounds = 3

// bench is what a part measures with.
type bench struct {
	*report
	options *options
	// load is the duration of each load.
	load time.Duration
}

// parts are all measurements, in order.
var parts = []struct {
	name    string
	measure func(*bench)
}{
	{"calls", benchCalls},
	{"costs", benchCosts},
	{"deliveries", benchDeliveries},
	{"growth", benchGrowth},
	{"neighbors", benchNeighbors},
	{"console", benchConsole},
	{"peers", benchPeer},
}

func main() {
	o := defineOptions()
	flag.Parse()
	switch {
	case flag.Arg(0) == baselineServer:
		serveBaselines()
	case flag.Arg(0) == hostileClient:
		serveHostileClient(flag.Arg(1), flag.Arg(2))
	default:
		run(o)
	}
}

func defineOptions() *options {
	var o options
	flag.StringVar(&o.write, "write", "", "also write the table to this file")
	flag.StringVar(&o.only, "only", "", "measure only these parts, separated by commas: calls, costs, deliveries, growth, neighbors, console, peers")
	flag.StringVar(&o.calls, "calls", "", "measure only these calls, separated by commas: read, list, change, create")
	flag.StringVar(&o.pages, "pages", "", "of the console measure only pages with one of these strings in their names, separated by commas")
	flag.StringVar(&o.patterns, "patterns", "", "of the neighbors measure only patterns with one of these strings in their names, separated by commas")
	flag.StringVar(&o.profile, "profile", "", "also write profiles of api and worker under load to this directory; -millwright must be built with -tags profile")
	flag.IntVar(&o.records, "records", 1_000_000, "work orders to grow to, from 10,000")
	flag.IntVar(&o.deliveries, "deliveries", 0, "finished deliveries that are kept at the larger size of growth; they add sizes, a vacuum, a dump, and a removal under load")
	flag.IntVar(&o.expired, "expired", 0, "deliveries that the removal finds, all of one day; by default a thirtieth of -deliveries")
	flag.Float64Var(&o.seconds, "seconds", 10, "how long each load lasts")
	flag.StringVar(&o.binary, "millwright", "bin/millwright", "the product's program")
	flag.StringVar(&o.peerRead, "peer-read", "", "the URL of a record of another server; its reads are compared with reads of a work order")
	flag.StringVar(&o.peerCreate, "peer-create", "", "the URL where another server creates records by POST; they are compared with creations of work orders")
	flag.StringVar(&o.peerCreateBody, "peer-create-body", `{"title":"Replace filter {id}"}`, "the record to create; {id} becomes another string each time")
	return &o
}

// named reports whether a flag's list has a string that is in the name; an empty list has one
// of every name.
func named(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(text string) bool { return strings.Contains(name, text) })
}

// run measures the parts that are selected.
func run(o *options) {
	if os.Getenv("DATABASE_URL") == "" || os.Getenv("TEMPORAL_ADDRESS") == "" {
		check(errors.New("DATABASE_URL and TEMPORAL_ADDRESS are not set: run `make bench`"))
	}
	if o.expired == 0 {
		o.expired = o.deliveries / 30
	}
	if o.seconds <= 0 || o.records < 20_000 || o.deliveries < 0 || o.expired < 0 {
		check(errors.New("-seconds must be above 0, -records at least 20,000, and -deliveries and -expired at least 0"))
	}
	r := &report{machine: describe(), at: time.Now().UTC()}
	fmt.Println(r.machine)
	for _, part := range parts {
		if named(o.only, part.name) {
			started := time.Now()
			part.measure(&bench{r, o, time.Duration(o.seconds * float64(time.Second))})
			fmt.Printf("%s: measured in %s\n", part.name, time.Since(started).Round(time.Second))
		}
	}
	r.print(os.Stdout)
	if o.write != "" {
		file := must(os.Create(o.write))
		r.print(file)
		check(file.Close())
	}
}

// check ends the bench at an error, so that it reads as the list of what it does. The figures until
// then have been printed, and devstack ends the processes.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:revive // nothing that runs needs an end
	}
}

// must returns the value, unless there is an error; see check.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// each returns what of returns for each element.
func each[T, R any](all []T, of func(T) R) []R {
	results := make([]R, len(all))
	for n, one := range all {
		results[n] = of(one)
	}
	return results
}

// await polls until the condition holds.
func await(every time.Duration, holds func() bool) {
	for !holds() {
		sleep(every)
	}
}

func sleep(d time.Duration) { <-time.After(d) }
