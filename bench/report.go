package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// figure is one line of the table.
type figure struct {
	name  string
	value float64
	unit  string
	// ratio is the value divided by that of the figure to, or 0.
	ratio float64
	to    string
}

// report collects figures in order, and prints each.
type report struct {
	machine string
	at      time.Time
	figures []figure
}

func (r *report) put(f figure) {
	r.figures = append(r.figures, f)
	fmt.Println("  " + strings.Join(f.row(), " "))
}

// add adds a figure.
func (r *report) add(name string, value float64, unit string) {
	r.put(figure{name: name, value: value, unit: unit})
}

// compare adds a figure with its ratio to the latest one of that name, if that was measured.
func (r *report) compare(name string, value float64, unit, to string) {
	f := figure{name: name, value: value, unit: unit}
	for _, earlier := range slices.Backward(r.figures) {
		if earlier.name == to {
			f.to, f.ratio = to, value/earlier.value
			break
		}
	}
	r.put(f)
}

// alternate measures ours and a baseline in turn, and adds the median rates and the CPU time of both.
// It returns the rate of ours.
func (in *installation) alternate(name, baseline string, ours, theirs func() measured) float64 {
	var with, of [rounds]measured
	var ratios [rounds]float64
	for round := range rounds {
		of[round], with[round] = theirs(), ours()
		ratios[round] = with[round].rate() / of[round].rate()
	}
	rate := median(each(with[:], measured.rate))
	in.add(baseline, median(each(of[:], measured.rate)), "/s")
	in.addCPU(baseline, of[:]...)
	in.put(figure{name, rate, "/s", median(ratios[:]), baseline})
	in.addCPU(name, with[:]...)
	return rate
}

// addCPU adds each process's seconds per thousand operations, and their sum.
func (r *report) addCPU(what string, all ...measured) {
	n, used := 0, usage{}
	for _, m := range all {
		n += m.n
		for process, seconds := range m.used {
			used[process] += seconds
		}
	}
	sum := 0.0
	for _, process := range []string{"api", "worker", "baselines", "postgres", "temporal", "bench"} {
		if used[process] > 0 && n > 0 {
			cost := used[process] * 1000 / float64(n)
			sum += cost
			r.add(what+": CPU of "+process, cost, "s/1,000")
		}
	}
	r.add(what+": CPU of all these", sum, "s/1,000")
}

// addWaits adds percentiles, with their ratios to an earlier figure, if to is not empty.
func (r *report) addWaits(what string, w waits, to string) {
	for _, p := range []float64{50, 95, 99} {
		name := fmt.Sprintf(", p%.0f", p)
		r.compare(what+name, milliseconds(w.percentile(p)), "ms", to+name)
	}
}

// row returns the figure as a row of the table.
func (f figure) row() []string {
	row := []string{f.name, fmt.Sprintf("%.2f", f.value), f.unit, "", f.to}
	if f.to != "" {
		row[3] = fmt.Sprintf("%.2f", f.ratio)
	}
	return row
}

func (r *report) print(to io.Writer) {
	fmt.Fprintf(to, "%s\n%s\n\n", r.machine, r.at.Format(time.RFC3339))
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tVALUE\tUNIT\tRATIO\tTO")
	for _, f := range r.figures {
		fmt.Fprintln(table, strings.Join(f.row(), "\t"))
	}
	check(table.Flush())
}

// describe returns what is measured, and where.
func describe() string {
	ctx := context.Background()
	conn := must(pgx.Connect(ctx, os.Getenv("DATABASE_URL")))
	defer func() { _ = conn.Close(ctx) }()
	temporal := must(client.DialContext(ctx, client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS"), Logger: quiet}))
	defer temporal.Close()
	system := must(temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}))
	return fmt.Sprintf("%d cores, %s, %s %s; %s, Postgres %s, Temporal %s; commit %s; load before %s",
		runtime.NumCPU(), printed("grep", "MemTotal", "/proc/meminfo"), printed("uname", "-sr"), runtime.GOARCH,
		runtime.Version(), conn.PgConn().ParameterStatus("server_version"), system.GetServerVersion(), printed("git", "describe", "--always", "--dirty"), printed("cat", "/proc/loadavg"))
}

// printed returns what the command prints, "unknown" if it fails.
func printed(name string, args ...string) string {
	text, err := exec.CommandContext(context.Background(), name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text)), " ")
}
