package console

import (
	"millwright/service/records"
)

// loadView is who has how much to do.
type loadView struct {
	Rows []loadRow
	// NoOneCan links to the work that no one can do, nil without any.
	NoOneCan *shortcut
	// MoreRows and More are of records.Load.
	MoreRows, More bool
}

// loadRow is a person or a team; each number links to its work orders.
type loadRow struct {
	Name, Kind string
	Counts     []loadCount
}

type loadCount struct {
	N               int
	Label, URL, Tip string
	// Late is true for work that is overdue.
	Late bool
}

var loadPage = newPage[loadView]("work_order_load.html")

func (c *Console) showLoad(r *request) error {
	load, err := c.service.Records.WorkOrderLoad(r.ctx(), r.actor(), r.viewer.TimeZone)
	if err != nil {
		return err
	}
	view := loadView{MoreRows: load.MoreRows, More: load.More}
	if load.NoOneCan.N > 0 {
		view.NoOneCan = &shortcut{Text: countText(load.NoOneCan), URL: shownWorkOrders{records.SearchNoOne}.url()}
	}
	for _, l := range load.Rows {
		row := loadRow{Name: l.Name, Kind: identityKinds[l.Kind]}
		for _, count := range []struct {
			n           int
			due         records.Due
			label, text string
		}{{l.Overdue, records.DueOverdue, "Late", "overdue"}, {l.Today, records.DueToday, "Today", "due today"}, {l.Week, records.DueWeek, "This week", "due this week"}, {l.All, "", "To be done", "to be done"}} {
			row.Counts = append(row.Counts, loadCount{count.n, count.label, shownWorkOrders{records.LoadSearch(l.IdentityID, count.due)}.url(), count.text, count.due == records.DueOverdue && count.n > 0})
		}
		view.Rows = append(view.Rows, row)
	}
	return loadPage.show(r, view)
}
