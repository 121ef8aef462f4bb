package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdpinput "github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/workflows"
)

// uiLimit bounds one step in the Temporal UI.
const uiLimit = 40 * time.Second

// operator has the Temporal UI open in a browser.
type operator struct {
	*harness
	browser *consoletest.Browser
	// list is the path of the namespace's workflows.
	list string
}

// The way through docs/operating-webhooks.md and docs/operating-work-orders.md in Temporal's own
// UI: find, read why, redeliver, act on a work order as a person, and wrong input. With TEMPORAL_UI_PICTURES=DIRECTORY it keeps the pictures there.
func TestAnOperatorWorksInTheTemporalUI(t *testing.T) {
	t.Parallel()
	temporalAddress, port := freePort(t)
	ui, uiPort := freePort(t)
	server := startDevstack(t, []string{"DATABASE_URL=" + os.Getenv("DATABASE_URL")},
		"temporal", "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort), "--db-prefix", "temporal_ui")
	server.awaitReady(2*time.Minute, server.printedReady)
	r := newReceiver(t)
	r.respondWith(always(http.StatusInternalServerError))
	h := newHarness(t, settings{
		"TEMPORAL_ADDRESS": temporalAddress, "OPERATOR_ACTIONS": "true", "WEBHOOK_RETRY_SCHEDULE": "1s,1s,1h,1h",
	}, r)
	h.importWorkforce()
	h.startWorker()
	h.startAPI(nil)
	i := h.integrator()
	o := operator{h, consoletest.Open(t, "http://"+ui, true), "/namespaces/" + h.settings["TEMPORAL_NAMESPACE"] + "/workflows"}
	o.resize()

	// Find a failing delivery, read why, and redeliver it once the receiver works.
	var deliveries []string
	for n := range 3 {
		id := h.deliveryTo(1, i.create(fmt.Sprint("Replace filter ", n)))
		h.awaitAttemptsMade(id, "retrying", 500, 500, 500)
		deliveries = append(deliveries, workflows.DeliveryID(id))
	}
	address := workflows.WebhookAddressID(h.org.webhookID(1))
	o.find(`WorkflowType = "Delivery" AND DeliveryStatus = "retrying" AND LastResult = "500"`, deliveries...)
	o.picture("deliveries")
	o.open(deliveries[0])
	o.click("the tab Pending Activities", "a", `e.innerText.trim().startsWith("Pending Activities")`)
	o.wait("Attempt", "500 Internal Server Error")
	o.picture("delivery-details")
	o.readDetails(address, "failing", "failing since", "last response: 500", "retrying")
	o.picture("address-details")
	r.respondWith(accept)
	o.update(deliveries[0], "redeliver", `{}`, "")

	// Redeliver the others at their address.
	o.update(address, "redeliver", `{"from": "yesterday"}`, `There is no member "from"`)
	o.update(address, "redeliver", fmt.Sprintf(`{"since": %q}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)), "")
	h.awaitAllDelivered()

	// Review a work order as its consultant.
	order := h.createOrder(i, "Replace filter", []string{"worker"}, true)
	i.complete(order)
	flow := workflows.WorkOrderID(order)
	o.find(`WorkflowType = "WorkOrder" AND ExecutionStatus = "Running" AND WorkOrderStatus = "sent_to_inspection"`, flow)
	o.picture("work-orders")
	o.readDetails(flow, "sent_to_inspection", "in review since", "next reminder at", "open → sent_to_inspection", "its page in the console")
	o.picture("work-order-details")
	review := `{"decision": %q, "comment": "The belt is loose.", "person": %q}`
	o.update(flow, "review", fmt.Sprintf(review, "send_back", h.org.imported.IDs["worker"]), "Only a consultant of the work order may review it.")
	o.update(flow, "review", fmt.Sprintf(review, "send_back", h.org.imported.IDs["advisor"]), "")
	o.open(flow)
	o.wait("sent_to_inspection → back_from_inspection")
	o.picture("work-order-timeline")
}

// evaluate runs an expression in the page. While a page loads, it may fail.
func (o operator) evaluate(expression string) (value string, err error) {
	ctx, cancel := context.WithTimeout(o.browser.Context, uiLimit)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string](expression))
}

// pageText evaluates to what the page shows. Details are Markdown in a frame.
const pageText = `[document, ...[...document.querySelectorAll("iframe")].map(frame => frame.contentDocument)]
	.map(page => page?.body?.innerText ?? "").join("\n")`

// wait waits until the page shows the strings.
func (o operator) wait(parts ...string) {
	o.t.Helper()
	eventually(o.t, uiLimit, "the page shows "+strings.Join(parts, ", "), func() bool {
		text, err := o.evaluate(pageText)
		for _, part := range parts {
			if err != nil || !strings.Contains(text, part) {
				return false
			}
		}
		return true
	})
}

// click clicks the first visible element that the expression accepts.
func (o operator) click(what, selector, condition string) {
	o.t.Helper()
	eventually(o.t, uiLimit, "the page shows "+what, func() bool {
		clicked, err := o.evaluate(`(() => {
			const found = [...document.querySelectorAll(` + strconv.Quote(selector) + `)].find(e => e.checkVisibility() && !e.disabled && (` + condition + `))
			found?.click()
			return found ? "clicked" : ""
		})()`)
		return err == nil && clicked != ""
	})
}

// find lists the workflows of the query, which must be these.
func (o operator) find(query string, ids ...string) {
	o.t.Helper()
	for _, id := range ids { // the list of the server follows after a moment
		eventually(o.t, deliveryLimit, "the query finds "+id, func() bool {
			found := o.workflowsOf(query)
			return len(found) == len(ids) && strings.Contains(strings.Join(found, " "), id)
		})
	}
	o.browser.Open(o.list + "?query=" + url.QueryEscape(query))
	o.wait(ids...)
}

// open opens a workflow page.
func (o operator) open(id string) {
	o.t.Helper()
	o.browser.Open(o.list + "/" + url.PathEscape(id))
	o.wait("More Actions")
}

// readDetails opens the current details of a workflow, which must contain the strings.
func (o operator) readDetails(id string, parts ...string) {
	o.t.Helper()
	eventually(o.t, deliveryLimit, "the details of "+id+" are current", func() bool {
		return strings.Contains(o.metadata(id).GetCurrentDetails(), "**"+parts[0]+"**")
	})
	o.open(id)
	o.click("the tab User Metadata", "a", `e.innerText.trim() === "User Metadata"`)
	o.wait(parts...)
}

// update sends an update from the workflow's page, which closes its form when the update has
// succeeded. Otherwise the form shows the error.
func (o operator) update(id, name, input, failure string) {
	o.t.Helper()
	o.open(id)
	o.click("More Actions", "button", `e.innerText.trim() === "More Actions"`)
	o.click("Send an Update", "[role=menuitem]", `e.innerText.trim() === "Send an Update"`)
	o.click("the updates", "[data-testid=update-select-button]", "true")
	o.click("the update "+name, "#update-select-select [role=option]", `e.innerText.trim().split("\n")[0] === `+strconv.Quote(name))
	if name == workflows.UpdateReview {
		o.picture("updates")
	}
	eventually(o.t, uiLimit, "the input has its field", func() bool {
		focused, err := o.evaluate(`(() => {
			const field = [...document.querySelectorAll('.cm-content[contenteditable="true"]')].find(e => e.checkVisibility())
			field?.focus()
			return field && document.activeElement === field ? "focused" : ""
		})()`)
		return err == nil && focused != ""
	})
	if _, err := chromedp.Call(o.browser.Context, cdpinput.InsertText, cdpinput.InsertTextParams{Text: input}); err != nil {
		o.t.Fatal(err)
	}
	o.click("Submit", "[data-testid=confirm-modal-button]", `e.innerText.trim() === "Submit"`)
	if failure != "" {
		o.wait(failure)
		return
	}
	eventually(o.t, uiLimit, "the form is closed", func() bool {
		open, err := o.evaluate(`String([...document.querySelectorAll("[data-testid=update-select-button]")].some(e => e.checkVisibility()))`)
		return err == nil && open == "false"
	})
}

// resize makes the window as large as the pictures of the guides.
func (o operator) resize() {
	o.t.Helper()
	_, err := chromedp.Call(o.browser.Context, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: 1400, Height: 900, DeviceScaleFactor: 1})
	if err != nil {
		o.t.Fatal(err)
	}
}

// picture keeps what the browser shows.
func (o operator) picture(name string) {
	o.t.Helper()
	directory := os.Getenv("TEMPORAL_UI_PICTURES")
	if directory == "" {
		return
	}
	content, err := chromedp.Run(o.browser.Context, chromedp.CaptureScreenshot())
	if err = cmp.Or(err, os.WriteFile(filepath.Join(directory, name+".png"), content, 0o600)); err != nil {
		o.t.Fatal(err)
	}
}
