package console_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/people"
	"millwright/service/store"
)

var (
	light = consoletest.Look{Theme: "light", Width: 1280}
	dark  = consoletest.Look{Theme: "dark", Width: 1280}
	phone = consoletest.Look{Theme: "light", Width: 390}
)

// importantPages have pictures in the dark and on a telephone.
var importantPages = map[string]bool{"start": true, "work-orders": true, "work-order": true, "node-assignees": true, "deliveries": true}

// heights are how high the pages of the day are on a telephone at most, in CSS pixels.
var heights = map[string]float64{"start": 1500, "start-worker": 1500, "deliveries": 5000, "work-orders": 5000}

// rowsInView counts the rows of tables that are completely in the window.
const rowsInView = `[...document.querySelectorAll("main tbody tr")].filter(r => r.getBoundingClientRect().height > 0 && r.getBoundingClientRect().bottom <= innerHeight).length`

// Every page of the demo opens, fits and is without errors. With CONSOLE_DOCS=DIRECTORY their
// pictures are kept: docs/console has them (make screenshots).
func TestPagesOfTheDemo(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	var taken []string
	for _, visit := range []struct {
		viewer string
		pages  []shownPage
	}{{"", d.visitorPages()}, {"karin_ostlund", d.workerPages()}, {"margaret_ellison", d.adminPages()}} {
		b := d.Browser(t)
		if visit.viewer != "" {
			b.SignInAs(d.Email(visit.viewer))
		}
		for _, page := range visit.pages {
			page.open(b)
			if page.name == "inventory" {
				for _, key := range []string{"hospital", "acute_tower", "acute_tower_hvac", "acute_tower_ahu_01"} {
					b.Click(fmt.Sprintf(`details[hx-get$=%q] > summary`, d.ID(key)))
					b.Text(fmt.Sprintf(`details[hx-get$=%q] li`, d.ID(key)))
				}
			}
			looks := []consoletest.Look{light}
			if importantPages[page.name] {
				looks = append(looks, dark, phone)
			}
			taken = append(taken, b.Picture(page.name, looks...)...)
			if page.name == "deliveries" { // the widest table
				b.CheckWidth(page.name, 700, 1024, 1259, 1260)
			}
			if most := heights[page.name]; most > 0 {
				if height := b.Measure(390, 844, `document.documentElement.scrollHeight`); height > most {
					t.Errorf("%s is %v px high on a telephone, want at most %v", page.name, height, most)
				}
			}
			if page.name == "work-orders" {
				if rows := b.Measure(1280, 800, rowsInView); rows < 14 {
					t.Errorf("%v work orders are in view on a desk, want 14", rows)
				}
			}
		}
	}
	checkPictures(t, taken)
}

// checkPictures checks that the documentation has these pictures and no others.
func checkPictures(t *testing.T, taken []string) {
	t.Helper()
	files, err := os.ReadDir("../docs/console")
	if err != nil {
		t.Fatal(err)
	}
	kept := make([]string, len(files))
	for i, file := range files {
		kept[i] = file.Name()
	}
	slices.Sort(taken)
	if !slices.Equal(kept, taken) {
		t.Errorf("docs/console has %v, the pictures are %v: make screenshots", kept, taken)
	}
}

func (d *demo) visitorPages() []shownPage {
	d.t.Helper()
	_, invited, err := d.People.InvitePerson(d.t.Context(), d.Viewer("margaret_ellison"), store.NoKey, d.Acme.OrganizationID, people.Invitation{Email: "elsie.crane@northfield.example.com"})
	d.check(err)
	reset, err := d.People.NewPersonLink(d.t.Context(), d.Viewer("margaret_ellison"), store.NoKey, d.ID("karin_ostlund"), true)
	d.check(err)
	return []shownPage{
		{name: "sign-in", path: "/console/sign-in"},
		{name: "invitation", path: invited.URL("")},
		{name: "forgotten", path: "/console/forgotten"},
		{name: "reset", path: reset.URL("")},
	}
}

func (d *demo) workerPages() []shownPage {
	inspection := "/console/work-orders/" + d.ID("inspection")
	return []shownPage{
		{name: "start-worker", path: "/console"},
		{name: "work-order-worker", path: inspection},
		{name: "work-order-answers", path: inspection + "/answers"},
	}
}

// adminPages change things at the end: a page is as those before have left it.
func (d *demo) adminPages() []shownPage {
	d.t.Helper()
	inspection, node := "/console/work-orders/"+d.ID("inspection"), "/console/inventory/"+d.ID("acute_tower_ahu_01")
	team, energy, rooms := "/console/teams/"+d.ID("hvac_team"), "/console/integrations/"+d.ID("energy"), "/console/webhooks/"+d.ID("rooms_hook")
	return []shownPage{
		{name: "start", path: "/console"},
		{name: "notices", path: "/console/notices"},
		{name: "account", path: "/console/account"},

		{name: "work-orders", path: "/console/work-orders"},
		{name: "work-orders-search", path: "/console/work-orders?q=test"},
		{name: "work-orders-none", path: "/console/work-orders?status=on_hold&due=overdue&assignee=Electricians"},
		{name: "work-order", path: inspection},
		{name: "work-order-review", path: "/console/work-orders/" + d.ID("thermography")},
		{name: "work-order-on-hold", path: "/console/work-orders/" + d.ID("chiller")},
		{name: "work-order-edit", path: inspection + "/edit"},
		{name: "work-order-assign", path: inspection + "/assign"},
		{name: "work-order-cancel", path: inspection + "/cancel"},
		{name: "work-order-where", path: "/console/work-orders/new?q=ahu"},
		{name: "work-order-new", path: "/console/work-orders/new?node=" + d.ID("acute_tower_ahu_01")},

		{name: "feedback", path: "/console/feedback"},
		{name: "feedback-new", path: "/console/feedback/new?node=NUH-A-010"},
		{name: "feedback-one", path: "/console/feedback/" + d.ID("feedback leak")},
		{name: "feedback-work-order", path: "/console/feedback/" + d.ID("feedback leak"), press: "Make a work order of it"},

		{name: "inventory", path: "/console/inventory"},
		{name: "search", path: "/console/search?q=nuh+a+ahu+01"},
		{name: "inventory-search", path: "/console/inventory?q=chiller"},
		{name: "node", path: node},
		{name: "node-work-orders", path: node + "?tab=work-orders"},
		{name: "node-feedback", path: "/console/inventory/" + d.ID("acute_tower") + "?tab=feedback"},
		{name: "node-assignees", path: node + "?tab=assignees"},
		{name: "node-assign", path: node + "/assign"},
		{name: "node-unassign", path: "/console/inventory/" + d.ID("acute_tower") + "/unassign?identity=" + d.ID("nadia_petrov")},
		{name: "label", path: node + "/label"},

		{name: "people", path: "/console/people"},
		{name: "person", path: "/console/people/" + d.ID("david_pryce")},
		{name: "person-deactivate", path: "/console/people/" + d.ID("karin_ostlund") + "/deactivate"},
		{name: "definitions", path: "/console/people/definitions"},
		{name: "teams", path: "/console/teams"},
		{name: "team", path: team},
		{name: "team-members", path: team + "/members"},
		{name: "team-delete", path: team + "/delete"},
		{name: "forms", path: "/console/forms"},
		{name: "form", path: "/console/forms/" + d.ID("ahu_inspection")},

		{name: "integrations", path: "/console/integrations"},
		{name: "integration", path: energy + "?see=" + d.ID("acute_tower_ahu_01")},
		{name: "integration-new", path: "/console/integrations/new"},
		{name: "webhook", path: "/console/webhooks/" + d.ID("energy_hook")},
		{name: "webhook-tested", path: "/console/webhooks/" + d.ID("erp_hook")},
		{name: "webhook-new", path: energy + "/webhooks/new"},
		{name: "webhook-missed", path: rooms + "/missed"},
		{name: "webhook-off", path: "/console/webhooks/" + d.ID("energy_hook") + "/off"},
		{name: "deliveries", path: "/console/deliveries"},
		{name: "delivery", path: "/console/deliveries/" + d.ID("retried")},
		{name: "latency", path: "/console/webhooks/" + d.ID("erp_hook") + "/charts"},
		{name: "deliveries-none", path: "/console/webhooks/" + d.ID("closures_hook") + "/deliveries"},
		{name: "redelivery", path: "/console/deliveries/redeliver-matching?status=retrying"},
		{name: "log", path: "/console/log"},

		{name: "person-invited", path: "/console/people/new", fields: map[string]string{"email": "rosa.lind@northfield.example.com"}, press: "Invite"},
		{name: "integration-secret", path: "/console/integrations/new", fields: map[string]string{"name": "Warehouse", "scopes": "inventory:read"}, press: "Create"},
		{name: "webhook-secret", path: energy + "/webhooks/new", fields: map[string]string{"url": "https://energy.northfield.example.com/alarms", "events": "work_order.created"}, press: "Add the address"},
	}
}
