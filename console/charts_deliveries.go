package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/webhooks"
)

// showDeliveryCharts shows the charts of the organization's deliveries, or of an address's, for the
// chosen one of chartSpans, without a choice the first.
func (c *Console) showDeliveryCharts(r *request) error {
	webhookID, path, list := r.Param("id"), "/charts/deliveries", "/deliveries"
	if webhookID != "" {
		path, list = "/webhooks/"+webhookID+"/charts", "/webhooks/"+webhookID+"/deliveries"
	}
	span := chartSpans[0]
	for _, s := range chartSpans {
		if s.name == r.Query("time") {
			span = s
		}
	}
	view := chartsView{Back: Root + list}
	for _, s := range chartSpans {
		view.Ranges = append(view.Ranges, shortcut{s.text, linkTo(path, "time", s.name), s.name == span.name})
	}
	ctx, cancel := context.WithTimeout(r.ctx(), chartTime)
	defer cancel()
	figures, err := c.service.Webhooks.DeliveryFigures(ctx, r.actor(), webhookID, span.span, span.step)
	switch {
	case models.CodeOf(err) == models.CodePermissionDenied || models.CodeOf(err) == models.CodeNotFound:
		return err
	case err != nil: // too late, or the database is away: the page it belongs to works
		view.Missing = true
		return chartsPage.fragment(r, view)
	}
	d := deliveryCharts{r: r, figures: figures, span: span, list: list}
	view.Charts = []chart{d.outcomes()}
	if webhookID != "" {
		view.Charts = append(view.Charts, d.latencies())
	}
	view.Charts = append(view.Charts, d.responses())
	return chartsPage.fragment(r, view)
}

// deliveryCharts draws figures.
type deliveryCharts struct {
	r       *request
	figures []webhooks.DeliveryFigures
	span    chartSpan
	list    string
}

// noAttempts is what charts without figures say.
const noAttempts = "No attempts in this time."

// link links to the deliveries of a value's time.
func (d deliveryCharts) link(at models.Time) string {
	from, to := at.In(d.r.zone), at.Add(d.span.step).In(d.r.zone)
	return linkTo(d.list, "from", from.Format(timeInput), "to", to.Format(timeInput))
}

func (d deliveryCharts) at(at models.Time) string { return at.In(d.r.zone).Format("2 Jan 15:04") }

// outcomes draws the attempts by outcome, as columns.
func (d deliveryCharts) outcomes() chart {
	ch := chart{
		ID: "outcomes", Title: "Attempts per " + d.span.stepText + " by outcome",
		Legend:  []chartKey{{"good", "Delivered"}, {"warn", "Failed, repeated"}, {"bad", "Failed for good"}},
		Columns: []string{"Delivered", "Failed, repeated", "Failed for good"}, Empty: noAttempts,
	}
	most, delivered, retried, failed := 0, 0, 0, 0
	var columns []chartColumn
	for _, f := range d.figures {
		most = max(most, f.Total())
		delivered, retried, failed = delivered+f.Delivered, retried+f.Retried, failed+f.Failed
		columns = append(columns, chartColumn{d.at(f.At), d.link(f.At), []chartPart{
			{f.Delivered, "good", "delivered"}, {f.Retried, "warn", "retried"}, {f.Failed, "bad", "failed"},
		}})
	}
	ch.addColumns(columns, most)
	ch.Most = plural(most, "attempt", "attempts")
	ch.Description = fmt.Sprintf("Attempts from %s to %s, times in %s: %d delivered, %d failed and repeated, %d failed for good.", ch.First, ch.Last, d.r.zone, delivered, retried, failed)
	return ch
}

// latencies draws the median and the 95th percentile of the latency, as lines.
func (d deliveryCharts) latencies() chart {
	ch := chart{
		ID: "latencies", Title: "Latency per " + d.span.stepText,
		Legend: []chartKey{{"accent", "Median"}, {"held", "95 of 100 at most"}}, Columns: []string{"Median", "95 of 100"},
		Empty: noAttempts,
	}
	if n := len(d.figures); n > 0 {
		ch.First, ch.Last = d.at(d.figures[0].At), d.at(d.figures[n-1].At)
	}
	var most time.Duration
	for _, f := range d.figures {
		most = max(most, f.P95)
	}
	ch.Most = latencyText(int(most.Milliseconds()))
	ch.Description = fmt.Sprintf("From %s to %s, times in %s. At worst 95 of 100 attempts took up to %s.", ch.First, ch.Last, d.r.zone, ch.Most)
	for _, line := range []struct {
		tone  string
		value func(webhooks.DeliveryFigures) time.Duration
	}{
		{"accent", func(f webhooks.DeliveryFigures) time.Duration { return f.P50 }},
		{"held", func(f webhooks.DeliveryFigures) time.Duration { return f.P95 }},
	} {
		ch.Lines = append(ch.Lines, d.line(line.tone, most, line.value)...)
	}
	for _, f := range d.figures {
		if f.Total() > 0 {
			ch.Rows = append(ch.Rows, chartRow{d.at(f.At), d.link(f.At), []string{latencyText(int(f.P50.Milliseconds())), latencyText(int(f.P95.Milliseconds()))}})
		}
	}
	return ch
}

// line draws values as lines, with gaps where there were no attempts.
func (d deliveryCharts) line(tone string, most time.Duration, value func(webhooks.DeliveryFigures) time.Duration) []chartLine {
	var lines []chartLine
	var points []string
	end := func() {
		if len(points) > 0 {
			lines = append(lines, chartLine{tone, strings.Join(points, " ")})
		}
		points = nil
	}
	width := chartWidth / float64(max(len(d.figures), 1))
	for i, f := range d.figures {
		if f.Total() == 0 {
			end()
			continue
		}
		y := chartHeight * (1 - float64(value(f))/float64(max(most, 1)))
		for _, x := range []float64{float64(i) * width, float64(i+1) * width} { // a step, so that one value is visible
			points = append(points, fmt.Sprintf("%v,%v", round(x), round(y)))
		}
	}
	end()
	return lines
}

// kindTexts explain an attempt without a response, by the class of the error.
var kindTexts = map[string]string{
	"timeout": "No response in time", "connection_refused": "Connection refused", "unreachable": "Unreachable",
	"dns": "Name not found", "tls": "No secure connection", "blocked_address": "Address not allowed",
	"reset": "Connection ended early", "bad_response": "Response was not HTTP", "other": "Other",
}

// responses draws the responses by class and the failures by kind, as bars.
func (d deliveryCharts) responses() chart {
	ch := chart{ID: "responses", Title: "Responses and failures", Columns: []string{"Attempts"}, Empty: noAttempts}
	type row struct {
		text, tone, response string
		n                    int
	}
	rows := []row{{"2xx accepted", "good", "2xx", 0}, {"3xx redirect", "warn", "3xx", 0}, {"4xx rejected", "bad", "4xx", 0}, {"5xx failed", "bad", "5xx", 0}}
	for _, kind := range webhooks.FailureKinds {
		rows = append(rows, row{kindTexts[string(kind)], "held", "none", 0})
	}
	total := 0
	for _, f := range d.figures {
		total += f.Total()
		for i, n := range f.Responses {
			rows[i].n += n
		}
		for i, n := range f.Kinds {
			rows[len(f.Responses)+i].n += n
		}
	}
	ch.Description = plural(total, "attempt", "attempts") + " by what the receivers responded, or why there was no response."
	from, to := "", ""
	if len(d.figures) > 0 {
		from = d.figures[0].At.In(d.r.zone).Format(timeInput)
		to = d.figures[len(d.figures)-1].At.Add(d.span.step).In(d.r.zone).Format(timeInput)
	}
	x := 0.0
	for _, row := range rows {
		if row.n == 0 {
			continue
		}
		link := linkTo(d.list, "response", row.response, "from", from, "to", to)
		width := chartWidth * float64(row.n) / float64(total)
		ch.Bars = append(ch.Bars, chartBar{
			X: round(x), Y: 0, Width: round(max(width-2, 1)), Height: chartHeight, Tone: row.tone, Text: fmt.Sprintf("%s: %d", row.text, row.n), Link: link,
		})
		x += width
		ch.Legend = append(ch.Legend, chartKey{row.tone, fmt.Sprintf("%s: %d", row.text, row.n)})
		ch.Rows = append(ch.Rows, chartRow{row.text, link, []string{strconv.Itoa(row.n)}})
	}
	return ch
}
