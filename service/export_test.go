package service

import "millwright/service/batch"

// The query of Backlog, for tests that explain it.
var (
	BacklogQuery = backlogQuery
	BacklogArgs  = backlogArgs
)

// DeliveryID is the SQL of a delivery's id, given that of its event's id and of 16 random bytes.
func DeliveryID(event, random string) string {
	return with(deliveryID, "event", event, "random", random)
}

// IndexPlans are the settings of the statements of deliveries.
const IndexPlans = batch.IndexPlans

// DeliveryStatements are statements that a test explains.
var DeliveryStatements = map[string]string{
	"claim":   claimPendingQuery,
	"retry":   claimRetryQuery,
	"deliver": deliveredQuery,
	"fail":    failedQuery,
	"late":    lateQuery,
	"skip":    skipQuery,
	"stop":    stopQuery,
	"requeue": requeueQuery,
	"poll":    pollQuery,
}

// PublishStatement publishes events of work orders.
var PublishStatement = publishWorkOrder.SQL
