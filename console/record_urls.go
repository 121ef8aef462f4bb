package console

import (
	"context"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// recordURLsService is what the handlers of this file call.
type recordURLsService interface {
	ReadableRecords(ctx context.Context, actor store.Actor, ids []string) (map[string]records.RecordKind, error)
}

// recordPages are the pages of the kinds of records.
var recordPages = map[records.RecordKind]string{
	records.RecordWorkOrder: "/work-orders/", records.RecordFeedback: "/feedback/", records.RecordNode: "/inventory/",
	records.RecordPerson: "/people/", records.RecordTeam: "/teams/", records.RecordIntegration: "/integrations/", records.RecordWebhook: "/webhooks/",
}

// recordURLs returns the pages of records by their ids, without those that the person may
// not open.
func (r *request) recordURLs(ids []string) (map[string]string, error) {
	readable, err := r.console.service.ReadableRecords(r.ctx(), r.actor(), ids)
	urls := map[string]string{}
	for id, kind := range readable {
		managed := kind == records.RecordIntegration || kind == records.RecordWebhook
		if !managed || r.may(models.GrantIntegrations) {
			urls[id] = recordURL(kind, id)
		}
	}
	return urls, err
}

// urlsOf returns recordURLs of the records that the entries of a list name.
func urlsOf[T any](r *request, entries []T, id func(T) string) (map[string]string, error) {
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = id(entry)
	}
	return r.recordURLs(ids)
}

// recordURL returns the URL of a record's page.
func recordURL(kind records.RecordKind, id string) string { return Root + recordPages[kind] + id }

func workOrderURL(id string) string { return recordURL(records.RecordWorkOrder, id) }

func feedbackURL(id string) string { return recordURL(records.RecordFeedback, id) }

func nodeURL(id string) string { return recordURL(records.RecordNode, id) }

func personURL(id string) string { return recordURL(records.RecordPerson, id) }

func teamURL(id string) string { return recordURL(records.RecordTeam, id) }

func webhookURL(id string) string { return recordURL(records.RecordWebhook, id) }
