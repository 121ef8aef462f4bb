package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/webhooks"
)

func (c *Console) deliveryRoutes(pages *gin.RouterGroup) {
	pages.GET("/deliveries", c.signedIn(requires(models.GrantIntegrations, c.listDeliveries)))
	pages.GET("/webhooks/:id/deliveries", c.signedIn(requires(models.GrantIntegrations, c.listDeliveries)))
	pages.POST("/deliveries/redeliver", c.signedIn(requires(models.GrantIntegrations, c.redeliverSelected)))
	pages.GET("/deliveries/redeliver-matching", c.signedIn(requires(models.GrantIntegrations, c.confirmRedelivery)))
	pages.POST("/deliveries/redeliver-matching", c.signedIn(requires(models.GrantIntegrations, c.redeliverMatching)))
	pages.GET("/deliveries/:id", c.signedIn(requires(models.GrantIntegrations, c.showDelivery)))
	pages.POST("/deliveries/:id/redeliver", c.signedIn(requires(models.GrantIntegrations, c.redeliverOne)))
}

// deliveriesPerPage is the page size of the list.
const deliveriesPerPage = 50

// deliveriesView is a list of deliveries: of the organization, or of one address.
type deliveriesView struct {
	// Address is whose deliveries are listed, nil for all addresses.
	Address *webhooks.Webhook
	Filter  deliveryFilterView
	Rows    []deliveryRow
	Pager   pager
	Form    form
	// Here is this page's URL: redelivering redirects to it.
	Here string
	// All links to redelivering everything that matches.
	All string
	// Clear links to the list without filters, "" if no filter is set.
	Clear string
	// SearchedTo is where the search stopped, and SearchOn continues it.
	SearchedTo moment
	SearchOn   string
	// Charts links to charts, which the page loads when someone opens them.
	Charts shortcut
	// Test links to the form that sends a test.
	Test string
}

// deliveryFilterView is what the filters show. Integrations and Addresses are empty if the list is
// an address's.
type deliveryFilterView struct {
	Action                  string
	Integrations, Addresses []option
	Status, Type, Response  []option
	From, To, Record, Zone  string
	Problems                wrongFilters
	// Kept are the filters without a field while another one is wrong.
	Kept []namedValue
}

// wrongFilters are what is wrong with the filters of a list, by their parameters.
type wrongFilters map[string]string

// keepFilter returns what is wrong with a filter that has one of the fields, at which the list shows it. Errors: all
// others.
func keepFilter(err error, fields ...string) (wrongFilters, error) {
	if known, ok := errors.AsType[*models.Error](err); ok && known.Code == models.CodeInvalidRequest && slices.Contains(fields, known.Parameter) {
		return wrongFilters{known.Parameter: known.Detail}, nil
	}
	return nil, err
}

// status returns 400 if a filter is wrong, 200 otherwise.
func (w wrongFilters) status() int {
	if len(w) > 0 {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

type deliveryRow struct {
	ID, Page string
	State    stateMark
	Type     models.EventType
	Record   recordLink
	// Host is the URL's, as the name of the address.
	URL, Host, AddressURL       string
	Integration, IntegrationURL string
	Response, Latency, Attempts string
	Next, At                    moment
	// Off is true if the address is off, so the delivery cannot be redelivered.
	Off bool
}

var deliveriesPage = newPage[deliveriesView]("deliveries.html")

// timeOfFilter reads a time of the URL, in the person's zone; zero without one. Errors: invalid_request.
func (r *request) timeOfFilter(name string) (time.Time, error) {
	text := r.Query(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(timeInput, text, r.zone)
	if err != nil || at.Year() < 2000 {
		return time.Time{}, models.BadParameter(name, "A time is written as 2026-03-02T08:00.")
	}
	return at, nil
}

// period reads the period that the URL filters by, from a time to another. Errors: invalid_request.
func (r *request) period() (from, to time.Time, err error) {
	if from, err = r.timeOfFilter("from"); err == nil {
		to, err = r.timeOfFilter("to")
	}
	return from, to, err
}

// deliverySearch reads the filters of the URL, with their parameters for links. The list of an
// address has it in its path. Errors: invalid_request.
func (r *request) deliverySearch() (webhooks.DeliverySearch, []string, error) {
	q := webhooks.DeliverySearch{
		WebhookID: cmp.Or(r.Param("id"), r.Query("webhook")), IntegrationID: r.Query("integration"), Status: models.DeliveryStatus(r.Query("status")), Type: models.EventType(r.Query("type")),
		Response: webhooks.ResponseClass(r.Query("response")),
	}
	record := models.Trim(r.Query("record"))
	var err error
	if q.RecordID, err = r.recordNamed(record, records.KindWorkOrder, records.KindFeedback); err != nil {
		return q, nil, err
	}
	if q.From, q.To, err = r.period(); err != nil {
		return q, nil, err
	}
	return q, []string{
		"integration", q.IntegrationID, "webhook", r.Query("webhook"), "status", string(q.Status), "type", string(q.Type), "response", string(q.Response), "record", record,
		"from", r.Query("from"), "to", r.Query("to"),
	}, nil
}

// responseOptions are the classes of responses as filters.
var responseOptions = []option{
	{Value: "", Label: "Any"}, {Value: "2xx", Label: "2xx accepted"}, {Value: "3xx", Label: "3xx redirect"}, {Value: "4xx", Label: "4xx rejected"},
	{Value: "5xx", Label: "5xx failed"}, {Value: "none", Label: "No response"},
}

// choose returns the options with the one that has the value chosen.
func choose(options []option, value string) []option {
	chosen := make([]option, len(options))
	for i, o := range options {
		o.Chosen = o.Value == value
		chosen[i] = o
	}
	return chosen
}

// maxAddressOptions limits the addresses that can be chosen in a filter before an integration is.
const maxAddressOptions = 100

// addTargets adds the integrations and the addresses to choose.
func (v *deliveryFilterView) addTargets(targets []webhooks.DeliveryTarget, q webhooks.DeliverySearch) {
	v.Integrations, v.Addresses = []option{{Label: "Any"}}, []option{{Label: "Any"}}
	for i, t := range targets {
		if i == 0 || t.IntegrationID != targets[i-1].IntegrationID {
			v.Integrations = append(v.Integrations, option{Value: t.IntegrationID, Label: t.Integration, Chosen: t.IntegrationID == q.IntegrationID})
		}
		chosen, offered := t.WebhookID == q.WebhookID, q.IntegrationID == "" && len(targets) <= maxAddressOptions || t.IntegrationID == q.IntegrationID
		if t.WebhookID != "" && (chosen || offered) {
			v.Addresses = append(v.Addresses, option{Value: t.WebhookID, Label: withoutScheme(t.URL), Chosen: chosen})
		}
	}
}

// withoutScheme returns the URL of an address as lists show it.
func withoutScheme(address string) string { return strings.TrimPrefix(address, "https://") }

// hostOf returns the host of an address's URL.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return withoutScheme(address)
}

func (r *request) deliveryFilterView(action string, q webhooks.DeliverySearch) deliveryFilterView {
	statuses, types := []option{{Label: "Any"}}, []option{{Label: "Any"}}
	for _, status := range deliveryOrder {
		statuses = append(statuses, option{Value: string(status), Label: deliveryMarks[status].Text})
	}
	for _, kind := range subscribable() { // tests are not stored
		types = append(types, option{Value: string(kind), Label: string(kind)})
	}
	return deliveryFilterView{
		Action: action, Status: choose(statuses, string(q.Status)), Type: choose(types, string(q.Type)),
		Response: choose(responseOptions, string(q.Response)), From: r.Query("from"), To: r.Query("to"), Record: models.Trim(r.Query("record")), Zone: r.zone.String(),
	}
}

func (c *Console) listDeliveries(r *request) error {
	search, parameters, err := r.deliverySearch()
	path, ofAddress := "/deliveries", r.Param("id") != ""
	if ofAddress {
		path = "/webhooks/" + url.PathEscape(r.Param("id")) + path
	}
	wrong, err := keepFilter(err, "record", "from", "to")
	if err != nil {
		return err
	}
	if wrong != nil {
		view := deliveriesView{Filter: r.deliveryFilterView(Root+path, search), Clear: Root + path}
		view.Filter.Problems, view.Filter.Kept = wrong, []namedValue{{"integration", r.Query("integration")}, {"webhook", r.Query("webhook")}}
		return deliveriesPage.render(r, wrong.status(), view)
	}
	before := r.Query("before")
	page, err := c.service.Webhooks.SearchDeliveries(r.ctx(), r.actor(), search, before, deliveriesPerPage)
	if err != nil {
		return err
	}
	view := deliveriesView{
		Filter: r.deliveryFilterView(Root+path, search), Form: newForm(nil), SearchedTo: r.optionalMoment(page.SearchedTo),
		Here: linkTo(path, append(parameters, "before", before)...), All: linkTo("/deliveries/redeliver-matching", append(parameters, "webhook", search.WebhookID)...),
		Test: Root + "/integrations",
	}
	view.Charts = shortcut{Text: "Charts of all deliveries", URL: linkTo("/charts/deliveries")}
	if search.WebhookID != "" {
		view.Charts = shortcut{Text: "Charts of the address", URL: linkTo("/webhooks/" + search.WebhookID + "/charts")}
	}
	if !ofAddress {
		view.Filter.addTargets(page.Targets, search)
	}
	view.Pager, view.Clear = pagesOf(path, parameters, before, page.Next)
	if view.Address = page.Webhook; view.Address != nil {
		view.Test = webhookURL(page.Webhook.ID)
	}
	if page.SearchedTo != nil {
		view.SearchOn, view.Pager.Older = view.Pager.Older, ""
	}
	links, err := r.recordLinks(stringsOf(page.Deliveries, func(d webhooks.DeliveryItem) string { return d.RecordID }))
	if err != nil {
		return err
	}
	for _, d := range page.Deliveries {
		view.Rows = append(view.Rows, r.deliveryRow(d, linkOr(links, d.RecordID)))
	}
	return deliveriesPage.show(r, view)
}

func (r *request) deliveryRow(d webhooks.DeliveryItem, record recordLink) deliveryRow {
	row := deliveryRow{
		ID: d.ID, Page: Root + "/deliveries/" + d.ID, State: deliveryMarks[d.Status], Type: d.EventType,
		Record: record, URL: d.URL, Host: hostOf(d.URL), AddressURL: webhookURL(d.WebhookID), Integration: d.Integration, IntegrationURL: recordURL(records.KindIntegration, d.IntegrationID),
		Response: responseText(d.Attempts, d.LastStatus, d.LastError), Attempts: strconv.Itoa(d.Attempts),
		Next: r.optionalMoment(d.NextAttemptAt), At: r.moment(d.CreatedAt), Off: !d.Enabled,
	}
	if d.LatencyMS != nil {
		row.Latency = latencyText(*d.LatencyMS)
	}
	return row
}

// responseText describes the receiver's response to the last attempt.
func responseText(attempts int, status *int, problem *string) string {
	if attempts == 0 {
		return ""
	}
	return cmp.Or(answerText(status, problem), "No response")
}

// statusText is a status of HTTP with its name.
func statusText(status int) string {
	if name := http.StatusText(status); name != "" {
		return strconv.Itoa(status) + " " + name
	}
	return strconv.Itoa(status)
}

func latencyText(ms int) string {
	if ms >= 1000 {
		return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + " s"
	}
	return strconv.Itoa(ms) + " ms"
}
