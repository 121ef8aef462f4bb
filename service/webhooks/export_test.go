package webhooks

import (
	"millwright/service/effects"
	"millwright/service/storetest"
)

// DeliveryStatements are statements that a test explains.
var DeliveryStatements = map[string]string{
	"claim":    storetest.Numbered(claimQuery, "webhook", "in_flight", "records", "limit", "now"),
	"events":   claimedEventsQuery,
	"retry":    storetest.Numbered(retryQuery, "id", "now", "waits"),
	"skip":     skipQuery,
	"overdue":  storetest.Numbered(overdueQuery, "overdue", "of_address", "most", "limit", "now"),
	"places":   storetest.Numbered(placesQuery, "webhook", "most"),
	"given_up": giveUpQuery,
	"address":  storetest.Numbered(addressStateQuery, "webhook", "now", "counted", "period"),
	"poll":     storetest.Numbered(pollQuery, "ids", "now"),
	"state":    deliveryStateQuery,
	// GORM's parameters are numbered here.
	"redeliver": storetest.Numbered(redeliverQuery, "ids", "first", "last"),
	"open":      storetest.Numbered(openQuery, "ids"),
	"finished":  storetest.Numbered(finishedQuery, "ids", "first", "last"),
	"missed":    storetest.Numbered(missedQuery, "webhook", "low", "since", "limit"),
	"release": storetest.Numbered(batchQuery(redelivery{Missed: true}.batchSources()),
		"webhook", "begin", "after", "before", "limit", "record", "missed", "status", "code", "none", "kind"),
	"hour": countHourQuery,
}

// CountsOfHour is the number of counts in an hour of deliveries.
var CountsOfHour = countsOfHour

// PublishStatement publishes an event of a work order.
var PublishStatement = storetest.Numbered(effects.PublishWorkOrder, "event", "type", "record", "at", "organization", "actor", "data", "trace_parent")
