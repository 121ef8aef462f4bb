package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millwright/service/webhooks"
)

// deliveryView is one delivery.
type deliveryView struct {
	deliveryRow
	EventID string
	// Planned is the number of attempts in the retry schedule.
	Planned int
	Form    form
	// Made are the attempts, newest first.
	Made []attemptRow
	// Unread is true if the person may not read the record, so that responses are not shown.
	Unread bool
	// Body is what would be sent now, with Header; otherwise Withheld is the reason. Signed is true if
	// the signatures in Header are valid.
	Header   []namedValue
	Signed   bool
	Body     string
	Curl     string
	Withheld string
	// Workflows link to Temporal.
	Workflows []shortcut
	All       string
}

// attemptRow is an attempt in the timeline.
type attemptRow struct {
	Number            int
	At                moment
	State             stateMark
	Response, Latency string
	// Explained is the response or the error in a sentence.
	Explained string
	RemoteIP  string
	// Body is the beginning of the response's body; BodyNote describes a body that is not text.
	Body, BodyNote string
}

var deliveryPage = newPage[deliveryView]("delivery.html")

func (c *Console) showDelivery(r *request) error {
	d, err := c.service.Webhooks.DeliveryForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	links, err := r.recordLinks([]string{d.RecordID})
	if err != nil {
		return err
	}
	view := deliveryView{
		deliveryRow: r.deliveryRow(d.DeliveryItem, linkOr(links, d.RecordID)), EventID: d.EventID, Planned: d.Planned, Form: newForm(nil), Unread: !d.Readable, Signed: d.Signed, Withheld: d.Withheld,
		All: webhookURL(d.WebhookID) + "/deliveries",
	}
	for _, a := range slices.Backward(d.AttemptsMade) {
		row := r.attemptRow(a)
		if view.Unread {
			row.BodyNote = ""
		}
		view.Made = append(view.Made, row)
	}
	if d.Body != nil {
		for name, values := range d.Header {
			view.Header = append(view.Header, namedValue{name, strings.Join(values, ", ")})
		}
		slices.SortFunc(view.Header, func(a, b namedValue) int { return strings.Compare(a.Name, b.Name) })
		view.Body, view.Curl = indented(d.Body), curl(d.URL, view.Header, d.Body)
	}
	if c.options.WorkflowsURL != "" {
		if d.Workflow {
			view.Workflows = append(view.Workflows, c.workflowLink("The delivery's workflow in Temporal", "delivery/"+d.ID))
		}
		view.Workflows = append(view.Workflows, c.workflowLink("The address's workflow in Temporal", "webhook-address/"+d.WebhookID))
	}
	return deliveryPage.show(r, view)
}

// workflowLink returns the link to a workflow in Temporal's UI.
func (c *Console) workflowLink(text, id string) shortcut {
	return shortcut{Text: text, URL: c.options.WorkflowsURL + "/" + url.PathEscape(id)}
}

func (r *request) attemptRow(a webhooks.AttemptRecord) attemptRow {
	row := attemptRow{Number: a.Number, At: r.moment(a.StartedAt), Latency: latencyText(int(a.LatencyMS)), State: stateMark{"bad", "cross", "Failed"}, RemoteIP: valueOf(a.RemoteIP)}
	if a.Status == nil {
		row.Response, row.Explained = "No response", visible(valueOf(a.Error))
		return row
	}
	row.Response, row.Explained = statusText(*a.Status), explainStatus(*a.Status)
	if *a.Status >= 200 && *a.Status < 300 {
		row.State = stateMark{"good", "check", "Delivered"}
	}
	row.Body, row.BodyNote = bodyText(a)
	return row
}

// bodyText returns the beginning of a response's body, or a note if the body is not text.
func bodyText(a webhooks.AttemptRecord) (text, note string) {
	switch {
	case a.ResponseBody == nil || *a.ResponseBody == "":
		return "", "The response had no body."
	case a.ResponseBodyBase64:
		return *a.ResponseBody, "The body is not text; this is its beginning in base64."
	}
	return visible(*a.ResponseBody), ""
}

// statusSentences explain a receiver's response, by HTTP status.
var statusSentences = map[int]string{
	http.StatusGone:                  "The receiver no longer has anything at this path. Check the address.",
	http.StatusUnauthorized:          "The receiver did not accept the signature or wants credentials.",
	http.StatusForbidden:             "The receiver did not accept the signature or wants credentials.",
	http.StatusNotFound:              "The receiver has nothing at this path. Check the address.",
	http.StatusMethodNotAllowed:      "The receiver accepts no POST at this path. Check the address.",
	http.StatusRequestEntityTooLarge: "The receiver found the body too large.",
	http.StatusTooManyRequests:       "The receiver wants fewer requests.",
}

// explainStatus says in a sentence what a response means for the delivery.
func explainStatus(status int) string {
	if sentence, known := statusSentences[status]; known {
		return sentence
	}
	switch status / 100 {
	case 2:
		return "The receiver accepted the event."
	case 3:
		return "The receiver redirects. Redirects are not followed: enter the address it redirects to."
	case 4:
		return "The receiver rejected the request."
	case 5:
		return "The receiver failed."
	}
	return "The receiver's response is not one that accepts the event."
}

// indented returns JSON in lines.
func indented(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return visible(string(body))
	}
	return visible(b.String())
}

// curl returns the command that sends the same request.
func curl(address string, header []namedValue, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -i %s", shellQuoted(address))
	for _, h := range header {
		fmt.Fprintf(&b, " \\\n  -H %s", shellQuoted(h.Name+": "+h.Value))
	}
	fmt.Fprintf(&b, " \\\n  --data-binary %s", shellQuoted(string(body)))
	return b.String()
}

// shellQuoted quotes a string for a POSIX shell.
func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
