package console

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service"
)

func (c *Console) chartRoutes(pages *gin.RouterGroup) {
	pages.GET("/charts/deliveries", c.signedIn(c.showDeliveryCharts))
	pages.GET("/webhooks/:id/charts", c.signedIn(c.showDeliveryCharts))
}

// chartTime bounds how long the figures of charts may take.
const chartTime = 250 * time.Millisecond

// chartLink is a place in a page where charts are loaded after it ({{template "charts" .}}).
type chartLink struct{ URL, Text string }

// chartsView are charts of one time.
type chartsView struct {
	Title  string
	Ranges []chartRange
	// Missing says that the figures did not come in time.
	Missing bool
	Charts  []chart
	Back    string
}

// chartRange leads to the same charts of another time.
type chartRange struct {
	Text, URL string
	Chosen    bool
}

// chart is a drawing with the same figures as a table. Coordinates are in a box of
// chartWidth to chartHeight, which the page stretches.
type chart struct {
	ID, Title, Description string
	// Most is the value at the top, First and Last are the times of the ends.
	Most, First, Last string
	Bars              []chartBar
	Lines             []chartLine
	Legend            []chartKey
	Columns           []string
	Rows              []chartRow
}

// chartBar is one value of a column; Link leads to what it counts.
type chartBar struct {
	X, Y, Width, Height float64
	Tone, Text, Link    string
}

type chartLine struct{ Tone, Points string }

type chartKey struct{ Tone, Text string }

type chartRow struct {
	At, Link string
	Cells    []string
}

const (
	chartWidth  = 720.0
	chartHeight = 120.0
)

var chartsPage = newPage[chartsView]("charts.html")

// chartSpans are the times that charts show, with the step of their values.
var chartSpans = []struct {
	name, text string
	span, step time.Duration
	layout     string
}{
	{"24h", "24 hours", 24 * time.Hour, time.Hour, "2 Jan 15:04"},
	{"7d", "7 days", 7 * 24 * time.Hour, 6 * time.Hour, "2 Jan 15:04"},
	{"30d", "30 days", 30 * 24 * time.Hour, 24 * time.Hour, "2 Jan 15:04"},
}

// showDeliveryCharts shows the charts of the organization's deliveries, or of an address's.
func (c *Console) showDeliveryCharts(r *request) error {
	if err := r.require(models.GrantIntegrations); err != nil {
		return err
	}
	webhookID, path, list := r.Param("id"), "/charts/deliveries", "/deliveries"
	if webhookID != "" {
		path, list = "/webhooks/"+webhookID+"/charts", "/webhooks/"+webhookID+"/deliveries"
	}
	view := chartsView{Title: "Deliveries", Back: Root + list}
	chosen := chartSpans[0]
	for _, s := range chartSpans {
		if s.name == r.Query("time") {
			chosen = s
		}
	}
	for _, s := range chartSpans {
		view.Ranges = append(view.Ranges, chartRange{s.text, linkTo(path, "time", s.name), s.name == chosen.name})
	}
	ctx, cancel := context.WithTimeout(r.ctx(), chartTime)
	defer cancel()
	figures, err := c.service.DeliveryFigures(ctx, r.actor(), webhookID, chosen.span, chosen.step)
	switch {
	case models.CodeOf(err) == models.CodePermissionDenied || models.CodeOf(err) == models.CodeNotFound:
		return err
	case err != nil: // too late, or the database is away: the page it belongs to works
		view.Missing = true
		return chartsPage.fragment(r, view)
	}
	d := deliveryCharts{r: r, figures: figures, step: chosen.step, layout: chosen.layout, list: list}
	view.Charts = append(view.Charts, d.outcomes())
	if webhookID != "" {
		view.Charts = append(view.Charts, d.latencies())
	}
	view.Charts = append(view.Charts, d.responses())
	return chartsPage.fragment(r, view)
}

// deliveryCharts draws figures.
type deliveryCharts struct {
	r       *request
	figures []service.DeliveryFigures
	step    time.Duration
	layout  string
	list    string
}

// stepText is the step of the values in words.
func (d deliveryCharts) stepText() string {
	if d.step == time.Hour {
		return "hour"
	}
	if d.step == 24*time.Hour {
		return "day"
	}
	return strconv.Itoa(int(d.step.Hours())) + " hours"
}

// link leads to the deliveries of a value's time.
func (d deliveryCharts) link(at models.Time) string {
	from, to := at.In(d.r.zone), at.Add(d.step).In(d.r.zone)
	return linkTo(d.list, "from", from.Format(filterTime), "to", to.Format(filterTime))
}

func (d deliveryCharts) at(at models.Time) string { return at.In(d.r.zone).Format(d.layout) }

// ends are the times of the first and the last value.
func (d deliveryCharts) ends() (first, last string) {
	if len(d.figures) == 0 {
		return "", ""
	}
	return d.at(d.figures[0].At), d.at(d.figures[len(d.figures)-1].At)
}

// outcomes draws the attempts by outcome, as columns.
func (d deliveryCharts) outcomes() chart {
	ch := chart{
		ID: "outcomes", Title: "Attempts per " + d.stepText() + " by outcome",
		Legend:  []chartKey{{"good", "Delivered"}, {"warn", "Retried"}, {"bad", "Failed for good"}},
		Columns: []string{"Delivered", "Retried", "Failed"},
	}
	ch.First, ch.Last = d.ends()
	most, delivered, retried, failed := 0, 0, 0, 0
	for _, f := range d.figures {
		most = max(most, f.Total())
		delivered, retried, failed = delivered+f.Delivered, retried+f.Retried, failed+f.Failed
	}
	ch.Most = plural(most, "attempt", "attempts")
	ch.Description = fmt.Sprintf("From %s to %s %d attempts delivered, %d will be or were repeated, %d failed for good.", ch.First, ch.Last, delivered, retried, failed)
	width := chartWidth / float64(max(len(d.figures), 1))
	for i, f := range d.figures {
		at, link := d.at(f.At), d.link(f.At)
		top := chartHeight
		for _, part := range []struct {
			n          int
			tone, text string
		}{{f.Delivered, "good", "delivered"}, {f.Retried, "warn", "retried"}, {f.Failed, "bad", "failed"}} {
			if part.n == 0 {
				continue
			}
			height := chartHeight * float64(part.n) / float64(most)
			top -= height
			ch.Bars = append(ch.Bars, chartBar{
				X: round(float64(i)*width + width*.1), Y: round(top), Width: round(width * .8), Height: round(height),
				Tone: part.tone, Text: fmt.Sprintf("%s: %d %s", at, part.n, part.text), Link: link,
			})
		}
		if f.Total() > 0 {
			ch.Rows = append(ch.Rows, chartRow{at, link, []string{strconv.Itoa(f.Delivered), strconv.Itoa(f.Retried), strconv.Itoa(f.Failed)}})
		}
	}
	return ch
}

// latencies draws the median and the 95th percentile of the latency, as lines.
func (d deliveryCharts) latencies() chart {
	ch := chart{
		ID: "latencies", Title: "Latency per " + d.stepText(),
		Legend: []chartKey{{"accent", "Median"}, {"held", "95 of 100 are faster"}}, Columns: []string{"Median", "95 of 100"},
	}
	ch.First, ch.Last = d.ends()
	var most time.Duration
	for _, f := range d.figures {
		most = max(most, f.P95)
	}
	ch.Most = latencyText(int(most.Milliseconds()))
	ch.Description = fmt.Sprintf("From %s to %s. The slowest 95th percentile is %s.", ch.First, ch.Last, ch.Most)
	for _, line := range []struct {
		tone  string
		value func(service.DeliveryFigures) time.Duration
	}{
		{"accent", func(f service.DeliveryFigures) time.Duration { return f.P50 }},
		{"held", func(f service.DeliveryFigures) time.Duration { return f.P95 }},
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
func (d deliveryCharts) line(tone string, most time.Duration, value func(service.DeliveryFigures) time.Duration) []chartLine {
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

// responses draws the responses by class and the failures by kind, as bars.
func (d deliveryCharts) responses() chart {
	ch := chart{ID: "responses", Title: "Responses and failures", Columns: []string{"Attempts"}}
	type row struct {
		text, tone, response string
		n                    int
	}
	rows := []row{{"2xx accepted", "good", "2xx", 0}, {"3xx redirect", "warn", "3xx", 0}, {"4xx rejected", "bad", "4xx", 0}, {"5xx failed", "bad", "5xx", 0}}
	for _, kind := range service.FailureKinds {
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
	ch.Most = plural(total, "attempt", "attempts")
	ch.Description = ch.Most + " by what the receivers responded, or why there was no response."
	from, to := "", ""
	if len(d.figures) > 0 {
		from = d.figures[0].At.In(d.r.zone).Format(filterTime)
		to = d.figures[len(d.figures)-1].At.Add(d.step).In(d.r.zone).Format(filterTime)
	}
	x := 0.0
	for _, row := range rows {
		if row.n == 0 {
			continue
		}
		link := linkTo(d.list, "response", row.response, "from", from, "to", to)
		width := chartWidth * float64(row.n) / float64(total)
		ch.Bars = append(ch.Bars, chartBar{
			X: round(x), Y: chartHeight / 2, Width: round(max(width-2, 1)), Height: chartHeight / 2, Tone: row.tone, Text: fmt.Sprintf("%s: %d", row.text, row.n), Link: link,
		})
		x += width
		ch.Rows = append(ch.Rows, chartRow{row.text, link, []string{strconv.Itoa(row.n)}})
	}
	return ch
}

func round(x float64) float64 { return math.Round(x*10) / 10 }
