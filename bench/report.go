package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// figure is one line of the table.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Ratio is the value divided by that of the figure To; Aim is its least, Limit its
	// greatest acceptable value.
	Ratio float64 `json:"ratio,omitempty"`
	To    string  `json:"to,omitempty"`
	Aim   float64 `json:"aim,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	// Low and High are the least and the greatest ratio of the rounds.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// report collects figures in order.
type report struct {
	Machine machine   `json:"machine"`
	At      time.Time `json:"at"`
	Figures []figure  `json:"figures"`
}

func (r *report) add(name string, value float64, unit string) *figure {
	r.Figures = append(r.Figures, figure{Name: name, Value: value, Unit: unit})
	return &r.Figures[len(r.Figures)-1]
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

func (r *report) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tVALUE\tUNIT\tRATIO\tTO")
	for _, f := range r.Figures {
		compared := ""
		if f.To != "" {
			compared = fmt.Sprintf("%.2f", f.Ratio)
		}
		remarks := f.To
		for _, note := range f.notes() {
			if remarks != "" {
				remarks += "; "
			}
			remarks += note
		}
		fmt.Fprintf(table, "%s\t%.2f\t%s\t%s\t%s\n", f.Name, f.Value, f.Unit, compared, remarks)
	}
	return table.Flush()
}
