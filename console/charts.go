package console

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
)

func (c *Console) chartRoutes(pages *gin.RouterGroup) {
	pages.GET("/charts/deliveries", c.signedIn(requires(models.GrantIntegrations, c.showDeliveryCharts)))
	pages.GET("/webhooks/:id/charts", c.signedIn(requires(models.GrantIntegrations, c.showDeliveryCharts)))
}

// chartTime bounds how long the figures of charts may take.
const chartTime = 250 * time.Millisecond

// chartsView are charts of one time.
type chartsView struct {
	// Ranges link to the same charts for each range of time.
	Ranges []shortcut
	// Missing is true if the figures were not read in time.
	Missing bool
	Charts  []chart
	// Back links to the list that the charts belong to.
	Back string
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
	// Empty is shown instead of the chart if there are no rows.
	Empty string
}

// chartBar is one value of a column; Link links to what it counts, "" if there is no such page.
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

// chartSpan is a time that charts show, with the step of its values.
type chartSpan struct {
	name, text, stepText string
	span, step           time.Duration
}

var chartSpans = []chartSpan{
	{"24h", "24 hours", "hour", 24 * time.Hour, time.Hour},
	{"7d", "7 days", "6 hours", 7 * 24 * time.Hour, 6 * time.Hour},
	{"30d", "30 days", "day", 30 * 24 * time.Hour, 24 * time.Hour},
}

// chartColumn is what a chart draws of one step, from the bottom to the top.
type chartColumn struct {
	at, link string
	parts    []chartPart
}

type chartPart struct {
	n          int
	tone, text string
}

func (c chartColumn) height() int {
	sum := 0
	for _, part := range c.parts {
		sum += part.n
	}
	return sum
}

// addColumns draws columns, up to the value at the top, and adds the rows of those that are
// not empty.
func (ch *chart) addColumns(columns []chartColumn, top int) {
	if len(columns) > 0 {
		ch.First, ch.Last = columns[0].at, columns[len(columns)-1].at
	}
	width := chartWidth / float64(max(len(columns), 1))
	for i, c := range columns {
		if c.height() == 0 {
			continue
		}
		y := chartHeight
		row := chartRow{At: c.at, Link: c.link}
		for _, part := range c.parts {
			row.Cells = append(row.Cells, strconv.Itoa(part.n))
			if part.n == 0 {
				continue
			}
			height := chartHeight * float64(part.n) / float64(top)
			y -= height
			ch.Bars = append(ch.Bars, chartBar{
				X: round(float64(i)*width + width*.1), Y: round(y), Width: round(width * .8), Height: round(height),
				Tone: part.tone, Text: fmt.Sprintf("%s: %d %s", c.at, part.n, part.text), Link: c.link,
			})
		}
		ch.Rows = append(ch.Rows, row)
	}
}

func round(x float64) float64 { return math.Round(x*10) / 10 }
