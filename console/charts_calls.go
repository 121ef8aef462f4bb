package console

import (
	"context"
	"fmt"
	"time"

	"millwright/service/access"
)

func (c *Console) showCallCharts(r *request) error {
	id := r.Param("id")
	page := "/integrations/" + id
	view := chartsView{Title: "Calls", Back: Root + page, BackText: "The integration"}
	return r.showCharts(view, chartSpans, page+"/charts", func(ctx context.Context, span chartSpan) ([]chart, error) {
		calls, err := c.service.Access.CallFigures(ctx, r.actor(), id, span.span, span.step)
		if err != nil {
			return nil, err
		}
		return []chart{r.callChart(calls, span)}, nil
	})
}

// limitShown limits the height of the limit's line, as a multiple of the highest column: a
// higher line is not drawn, since the columns would be too low to compare.
const limitShown = 3

// callChart draws calls as columns and the limit as a line.
func (r *request) callChart(calls access.IntegrationCalls, span chartSpan) chart {
	ch := chart{
		ID: "calls", Title: "Calls per " + span.stepText(),
		Legend:  []chartKey{{"accent", "Within the limit"}, {"bad", "Over the limit, rejected"}},
		Columns: []string{"Within the limit", "Rejected"}, Empty: "No calls in this time.",
	}
	top, admitted, rejected := 0, 0, 0
	var columns []chartColumn
	for _, f := range calls.Steps {
		top = max(top, f.Calls+f.Rejected)
		admitted, rejected = admitted+f.Calls, rejected+f.Rejected
		columns = append(columns, chartColumn{at: f.At.In(r.zone).Format(span.layout), parts: []chartPart{
			{f.Calls, "accent", "within the limit"}, {f.Rejected, "bad", "rejected"},
		}})
	}
	limit := calls.Allowed * int(span.step/time.Minute)
	if limit <= limitShown*top {
		top = max(top, limit)
		y := round(chartHeight * (1 - float64(limit)/float64(max(top, 1))))
		ch.Lines = []chartLine{{"held", fmt.Sprintf("0,%v %v,%[1]v", y, chartWidth)}}
		ch.Legend = append(ch.Legend, chartKey{"held", "The limit of a minute all the time"})
	}
	ch.addColumns(columns, top)
	ch.Most = plural(top, "call", "calls")
	ch.Description = fmt.Sprintf("From %s to %s %s within the limit, and %d over it, which were rejected. The plan allows %d in a minute.",
		ch.First, ch.Last, plural(admitted, "call", "calls"), rejected, calls.Allowed)
	return ch
}
