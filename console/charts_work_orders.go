package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"millwright/service/records"
)

// daySpans are the times of charts by day.
var daySpans = []chartSpan{
	{"30d", "30 days", 30 * 24 * time.Hour, 24 * time.Hour, "2 Jan"},
	{"7d", "7 days", 7 * 24 * time.Hour, 24 * time.Hour, "2 Jan"},
}

func (c *Console) showWorkOrderCharts(r *request) error {
	view := chartsView{Title: "Work orders opened and closed", Back: linkTo("/work-orders"), BackText: "The work orders"}
	return r.showCharts(view, daySpans, "/work-orders/charts", func(ctx context.Context, span chartSpan) ([]chart, error) {
		days, err := c.service.Records.WorkOrderDays(ctx, r.actor(), r.zone, int(span.span/span.step))
		if err != nil {
			return nil, err
		}
		return []chart{r.workOrderChart(days, span)}, nil
	})
}

// workOrderChart draws two columns for each day.
func (r *request) workOrderChart(days []records.WorkOrderDay, span chartSpan) chart {
	ch := chart{
		ID: "work-orders", Title: "Work orders opened and closed per day",
		Legend:  []chartKey{{"accent", "Opened"}, {"good", "Closed: completed or cancelled"}},
		Columns: []string{"Opened", "Closed"}, Empty: "No work order was opened or closed in this time, on the places that you may read.",
	}
	most, opened, closed := 0, 0, 0
	for _, d := range days {
		most, opened, closed = max(most, d.Opened, d.Closed), opened+d.Opened, closed+d.Closed
	}
	at := func(d records.WorkOrderDay) string { return d.At.In(r.zone).Format(span.layout) }
	width := chartWidth / float64(max(len(days), 1))
	for i, d := range days {
		if d.Opened+d.Closed == 0 {
			continue
		}
		for nth, part := range []chartPart{{d.Opened, "accent", "opened"}, {d.Closed, "good", "closed"}} {
			if part.n == 0 {
				continue
			}
			height := chartHeight * float64(part.n) / float64(most)
			ch.Bars = append(ch.Bars, chartBar{
				X: round((float64(i) + .1 + .4*float64(nth)) * width), Y: round(chartHeight - height), Width: round(width * .4), Height: round(height),
				Tone: part.tone, Text: fmt.Sprintf("%s: %d %s", at(d), part.n, part.text),
			})
		}
		ch.Rows = append(ch.Rows, chartRow{At: at(d), Cells: []string{strconv.Itoa(d.Opened), strconv.Itoa(d.Closed)}})
	}
	if len(days) > 0 {
		ch.First, ch.Last = at(days[0]), at(days[len(days)-1])
	}
	ch.Most = plural(most, "work order", "work orders")
	ch.Description = fmt.Sprintf("From %s to %s, days in %s: %d opened and %d closed, on the places whose work orders you may read.", ch.First, ch.Last, r.zone, opened, closed)
	return ch
}
