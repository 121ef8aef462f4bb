package webhooks

import (
	"millwright/service/effects"
	"millwright/service/store"
	"millwright/service/storetest"
)

// DeliveryStatements are statements that a test explains.
var DeliveryStatements = map[string]string{
	"claim":   storetest.Numbered(claimPendingQuery, "webhook", "in_flight", "records", "limit"),
	"events":  claimedEventsQuery,
	"retry":   storetest.Numbered(claimRetriesQuery, "webhook", "in_flight", "records", "now", "retries"),
	"skip":    skipQuery,
	"next":    storetest.Numbered(nextRetryQuery, "webhook", "now"),
	"address": addressStateQuery,
	"shown":   shownQuery,
	"quota":   quotaQuery,
	"poll":    storetest.Numbered(pollQuery, "ids", "now"),
	"state":   deliveryStateQuery,
	// GORM's parameters are numbered here.
	"redeliver": storetest.Numbered(store.Fill(redeliverQuery, "d", "d"), "ids", "first", "last"),
	"open":      storetest.Numbered(openQuery, "ids"),
	"finished":  storetest.Numbered(finishedQuery, "ids", "first", "last"),
	"missed":    storetest.Numbered(missedQuery, "webhook", "low", "since", "limit"),
	"release": storetest.Numbered(store.Fill(batchQuery, "sources", redelivery{Missed: true}.batchSources()),
		"webhook", "begin", "after", "before", "limit", "record", "missed", "status", "code", "none", "kind"),
	"hour": countHourQuery,
}

// CountsOfHour is the number of counts in an hour of deliveries.
var CountsOfHour = countsOfHour

// PublishStatement publishes an event of a work order.
var PublishStatement = storetest.Numbered(effects.PublishWorkOrder, "event", "type", "record", "at", "organization", "actor", "data", "trace_parent")
