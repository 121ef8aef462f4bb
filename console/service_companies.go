package console

import (
	"strconv"

	"millwright/service/inventory"
)

// companyRow is a service company on the Teams page, for administrators.
type companyRow struct{ Name, Nodes, WorkOrders, End string }

func companyRows(found []inventory.ServiceCompany) (rows []companyRow) {
	for _, company := range found {
		rows = append(rows, companyRow{
			Name: company.Name, End: linkTo("/service-companies/" + company.ID + "/end"),
			Nodes:      counted(company.Nodes, "place", "places"),
			WorkOrders: counted(company.WorkOrders, "work order", "work orders"),
		})
	}
	return rows
}

func (c *Console) confirmEndCompany(r *request) error {
	company, err := c.service.Inventory.ServiceCompany(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	view := confirmView{
		Title: "End the relation with " + company.Name + "?", Button: "End the relation",
		Action: linkTo("/service-companies/" + company.ID + "/end"), Back: linkTo("/teams"),
		Effects: []string{
			company.Name + " no longer sees any of your work orders from that moment on, closed ones included, and loses its permissions on " +
				counted(company.Nodes, "place", "places") + ".",
		},
	}
	if company.WorkOrders > 0 {
		view.Effects = append(view.Effects, "Within a minute, inventory managers take over its "+counted(company.WorkOrders, "open work order", "open work orders")+
			", or an administrator if no one manages the place."+when(len(company.Listed) > 0, " The first that you may read:"))
		for _, w := range company.Listed {
			view.Effects = append(view.Effects, strconv.FormatInt(w.Number, 10)+" “"+w.Title+"”: "+w.Status.Name())
		}
	}
	view.Effects = append(view.Effects, "Closed work orders and the history keep its name. An import can add it as a service company again.")
	return r.confirm(view)
}

func (c *Console) endCompany(r *request) error {
	return r.submit(outcome{to: Root + "/teams", done: "relation-ended"}, func(f form) error {
		return c.service.Inventory.EndServiceCompany(r.ctx(), r.actor(), f.key(r), r.Param("id"))
	})
}
