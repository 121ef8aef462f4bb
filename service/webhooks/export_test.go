package webhooks

import (
	"millwright/service/effects"
	"millwright/service/store"
	"millwright/service/storetest"
)

// DeliveryStatements are statements that a test explains.
var DeliveryStatements = map[string]string{
	"claim":   claimPendingQuery,
	"events":  claimedEventsQuery,
	"retry":   claimRetriesQuery,
	"deliver": deliveredQuery,
	"fail":    failedQuery,
	"late":    lateQuery,
	"skip":    skipQuery,
	"next":    nextRetryQuery,
	"address": addressStateQuery,
	"shown":   shownQuery,
	"quota":   quotaQuery,
	"poll":    pollQuery,
	"state":   deliveryStateQuery,
	// GORM's parameters are numbered here.
	"redeliver": storetest.Numbered(redeliverSelectedQuery, "ids"),
	"release": storetest.Numbered(store.Fill(redeliverBatchQuery, "sources", redelivery{Missed: true}.batchSources()),
		"webhook", "after", "until", "limit", "low", "high", "record", "status", "code", "none", "kind"),
	"hour": countHourQuery,
}

// CountsOfHour is the number of counts in an hour of deliveries.
var CountsOfHour = countsOfHour

// PublishStatement publishes an event of a work order.
var PublishStatement = storetest.Numbered(effects.PublishWorkOrder, "event", "type", "record", "at", "organization", "actor", "data", "trace_parent")
