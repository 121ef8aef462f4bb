// Command bench measures the service on the Postgres of DATABASE_URL and the
// Temporal of TEMPORAL_ADDRESS and prints a table; with -json it writes the same
// figures as JSON. Run it with `make bench`, which builds the product and brings
// up a throwaway stack. Nothing is asserted: figures are for comparing with the
// floors measured in the same run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"text/tabwriter"
	"time"
)

// figure is one measured line.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Ratio compares with the figure named in To.
	Ratio float64 `json:"ratio,omitempty"`
	To    string  `json:"to,omitempty"`
}

// report collects figures in their order.
type report struct {
	Machine string    `json:"machine"`
	At      time.Time `json:"at"`
	Figures []figure  `json:"figures"`
}

func (r *report) add(name string, value float64, unit string) {
	r.Figures = append(r.Figures, figure{Name: name, Value: value, Unit: unit})
}

// compare adds a figure with its ratio to an earlier one.
func (r *report) compare(name string, value float64, unit, to string) {
	f := figure{Name: name, Value: value, Unit: unit, To: to}
	for _, other := range r.Figures {
		if other.Name == to && other.Value > 0 {
			f.Ratio = value / other.Value
		}
	}
	r.Figures = append(r.Figures, f)
}

func (r *report) print() error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tVALUE\tUNIT\tRATIO\tTO")
	for _, f := range r.Figures {
		ratio := ""
		if f.To != "" {
			ratio = fmt.Sprintf("%.2f", f.Ratio)
		}
		fmt.Fprintf(table, "%s\t%.2f\t%s\t%s\t%s\n", f.Name, f.Value, f.Unit, ratio, f.To)
	}
	return table.Flush()
}

// options are the command line's.
type options struct {
	json    string
	only    string
	large   int
	seconds float64
	binary  string
}

func main() {
	var o options
	flag.StringVar(&o.json, "json", "", "also write the figures to this file")
	flag.StringVar(&o.only, "only", "", "measure only this: lists or deliveries")
	flag.IntVar(&o.large, "large", 1_000_000, "work orders of the large organization")
	flag.Float64Var(&o.seconds, "seconds", 10, "how long each load of deliveries lasts")
	flag.StringVar(&o.binary, "millwright", "bin/millwright", "the product, for deliveries")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context, o options) error {
	r := &report{
		Machine: fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		At:      time.Now().UTC(),
	}
	fmt.Println(r.Machine)
	if err := measure(ctx, r, o); err != nil {
		return err
	}
	if err := r.print(); err != nil {
		return err
	}
	if o.json == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(b, '\n'), 0o600)
}

func measure(ctx context.Context, r *report, o options) error {
	switch o.only {
	case "", "lists", "deliveries":
	default:
		return fmt.Errorf("-only %s: it is lists or deliveries", o.only)
	}
	if o.seconds <= 0 {
		return errors.New("-seconds is above 0")
	}
	if o.only != "lists" {
		if err := benchDeliveries(ctx, r, o.binary, time.Duration(o.seconds*float64(time.Second))); err != nil {
			return err
		}
	}
	if o.only != "deliveries" {
		return benchLists(ctx, r, []int{10_000, o.large})
	}
	return nil
}
