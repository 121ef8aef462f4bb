package console

import (
	"slices"
	"strconv"
	"strings"

	"millwright/models"
	"millwright/service/records"
)

// recordPages are the pages of the kinds of records.
var recordPages = map[records.Kind]string{
	records.KindWorkOrder: "/work-orders/", records.KindFeedback: "/feedback/", records.KindNode: "/inventory/",
	records.KindPerson: "/people/", records.KindTeam: "/teams/", records.KindIntegration: "/integrations/", records.KindWebhook: "/webhooks/",
}

// recordLink names a record and links to its page ({{template "record" .}}). URL is "" if the
// person may not open it.
type recordLink struct{ ID, Name, URL string }

// recordItem is a record in a short list.
type recordItem struct {
	Name, URL, Detail string
	State             stateMark
}

func workOrderItem(id string, number int64, title string, status models.WorkOrderStatus) recordItem {
	return recordItem{Name: strconv.FormatInt(number, 10) + " " + title, URL: workOrderURL(id), State: workOrderMarks[status]}
}

// recordLinks returns links to records by their ids, without those that the person may not open.
func (r *request) recordLinks(ids []string) (map[string]recordLink, error) {
	readable, err := r.console.service.Records.Readable(r.ctx(), r.actor(), ids)
	links := map[string]recordLink{}
	for id, record := range readable {
		if r.opens(record.Kind) {
			links[id] = recordLink{id, record.FullName(), recordURL(record.Kind, id)}
		}
	}
	return links, err
}

// linkOr returns the link to a work order or feedback, or what is shown of one that the person
// may not read.
func linkOr(links map[string]recordLink, id string) recordLink {
	if link, readable := links[id]; readable {
		return link
	}
	if models.IsID(id, models.PrefixFeedback) {
		return recordLink{ID: id, Name: "Feedback that you may not read"}
	}
	return recordLink{ID: id, Name: "A work order that you may not read"}
}

// recordURLs returns the pages of records by their ids, without those that the person may
// not open.
func (r *request) recordURLs(ids []string) (map[string]string, error) {
	links, err := r.recordLinks(ids)
	urls := map[string]string{}
	for id, link := range links {
		urls[id] = link.URL
	}
	return urls, err
}

// opens reports whether the person may open the pages of records of the kind.
func (r *request) opens(kind records.Kind) bool {
	return kind != records.KindIntegration && kind != records.KindWebhook || r.may(models.GrantIntegrations)
}

// recordNamed returns the id of the only record of the kinds, or of any, that the text names: by
// its id, a URL, a number, an external id or a code. Whether an id is known is left to who reads
// the record. Errors: invalid_request.
func (r *request) recordNamed(text string, kinds ...records.Kind) (string, error) {
	if id := models.FirstIDIn(text); id != "" || text == "" {
		return id, nil
	}
	named, err := r.console.service.Records.Named(r.ctx(), r.actor(), text)
	if err != nil {
		return "", err
	}
	if len(kinds) > 0 {
		named = slices.DeleteFunc(named, func(one records.Readable) bool { return !slices.Contains(kinds, one.Kind) })
	}
	switch len(named) {
	case 0:
		return "", models.BadParameter("record", "Nothing that you may read has the number, URL, external id or code %q.", text)
	case 1:
		return named[0].ID, nil
	}
	names := stringsOf(named, func(one records.Readable) string { return one.FullName() + " (" + one.ID + ")" })
	return "", models.BadParameter("record", "Several records have the number, external id or code %q. Enter the id of one: %s.", text, strings.Join(names, ", "))
}

// urlsOf returns recordURLs of the records that the entries of a list name.
func urlsOf[T any](r *request, entries []T, id func(T) string) (map[string]string, error) {
	return r.recordURLs(stringsOf(entries, id))
}

// recordURL returns the URL of a record's page.
func recordURL(kind records.Kind, id string) string { return Root + recordPages[kind] + id }

func workOrderURL(id string) string { return recordURL(records.KindWorkOrder, id) }

func feedbackURL(id string) string { return recordURL(records.KindFeedback, id) }

func nodeURL(id string) string { return recordURL(records.KindNode, id) }

func personURL(id string) string { return recordURL(records.KindPerson, id) }

func teamURL(id string) string { return recordURL(records.KindTeam, id) }

func webhookURL(id string) string { return recordURL(records.KindWebhook, id) }
