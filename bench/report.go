package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is one line of the table.
type figure struct {
	Name  string
	Value float64
	Unit  string
	// Ratio is the value divided by that of the figure To; Aim is its least, Limit its
	// greatest acceptable value.
	Ratio float64
	To    string
	Aim   float64
	Limit float64
	// Low and High are the least and the greatest ratio of the rounds.
	Low  float64
	High float64
	// Error is why nothing was measured, instead of a value.
	Error string
}

// report collects figures in order.
type report struct {
	Machine string
	At      time.Time
	Figures []figure
	// failures is the number of figures that could not be measured.
	failures int
	// live is where figures are written as they are measured, nil for nowhere; written is how
	// many have been.
	live    io.Writer
	written int
}

// add adds a figure, which the caller may complete until the next one: only then it is
// written as measured.
func (r *report) add(name string, value float64, unit string) *figure {
	r.showMeasured()
	r.Figures = append(r.Figures, figure{Name: name, Value: value, Unit: unit})
	return &r.Figures[len(r.Figures)-1]
}

// addFailure adds something that could not be measured.
func (r *report) addFailure(name string, err error) {
	r.add(name, 0, "").Error = err.Error()
	r.failures++
}

// showMeasured writes the figures that were not yet written, a line each.
func (r *report) showMeasured() {
	if r.live == nil {
		return
	}
	for _, f := range r.Figures[r.written:] {
		fmt.Fprintln(r.live, "  "+strings.Join(strings.Fields(strings.Join(f.row(), " ")), " "))
	}
	r.written = len(r.Figures)
}

// compare adds a figure with its ratio to an earlier one.
func (r *report) compare(name string, value float64, unit, to string) *figure {
	i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.Name == to })
	f := r.add(name, value, unit)
	f.To = to
	if i >= 0 {
		f.Ratio = ratio(value, r.Figures[i].Value)
	}
	return f
}

// compareRounds adds the median value with the median ratio to a baseline that
// alternated with it.
func (r *report) compareRounds(name string, values, baseline []float64, unit, to string) *figure {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = ratio(values[i], baseline[i])
	}
	f := r.add(name, median(values), unit)
	f.To, f.Ratio, f.Low, f.High = to, median(ratios), slices.Min(ratios), slices.Max(ratios)
	return f
}

// addSeries adds the median rate and the CPU time.
func (r *report) addSeries(name string, s series) {
	r.add(name, median(s.rates()), "/s")
	s.cpu(r, name)
}

// compareSeries adds the rate with its ratio to a baseline that alternated with it.
func (r *report) compareSeries(name string, s, baseline series, to string) *figure {
	return r.compareRounds(name, s.rates(), baseline.rates(), "/s", to)
}

// grown adds a figure at a size, compared with the figure at the smallest size.
func (r *report) grown(what string, size, smallest int, of string, value float64, unit string) {
	name := func(size int) string { return fmt.Sprintf("%s, at %d %s", what, size, of) }
	if size == smallest {
		r.add(name(size), value, unit)
	} else {
		r.compare(name(size), value, unit, name(smallest))
	}
}

// ratio returns value divided by to, 0 without a value to compare with.
func ratio(value, to float64) float64 {
	if to <= 0 {
		return 0
	}
	return value / to
}

// notes returns the remarks about a figure: its aim and limit, and the spread of its
// ratio.
func (f *figure) notes() (notes []string) {
	met := map[bool]string{true: "met", false: "not met"}
	if f.Aim > 0 {
		notes = append(notes, fmt.Sprintf("aim %.2f: %s", f.Aim, met[f.Ratio >= f.Aim]))
	}
	if f.Limit > 0 {
		notes = append(notes, fmt.Sprintf("at most %.2f: %s", f.Limit, met[f.Ratio <= f.Limit]))
	}
	if f.High > 0 {
		notes = append(notes, fmt.Sprintf("rounds %.2f to %.2f", f.Low, f.High))
	}
	return notes
}

// row returns the figure as a row of the table.
func (f *figure) row() []string {
	if f.Error != "" {
		return []string{f.Name, "failed", "", "", f.Error}
	}
	compared, remarks := "", f.notes()
	if f.To != "" {
		compared, remarks = fmt.Sprintf("%.2f", f.Ratio), append([]string{f.To}, remarks...)
	}
	return []string{f.Name, fmt.Sprintf("%.2f", f.Value), f.Unit, compared, strings.Join(remarks, "; ")}
}

func (r *report) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tVALUE\tUNIT\tRATIO\tTO")
	for _, f := range r.Figures {
		fmt.Fprintln(table, strings.Join(f.row(), "\t"))
	}
	return table.Flush()
}
