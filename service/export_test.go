package service

import (
	"context"
	"strconv"
	"strings"

	"millwright/models"
)

// The query of Backlog, for tests that explain it.
var (
	BacklogQuery = backlogQuery
	BacklogArgs  = backlogArgs
)

// DeliveryID is the SQL of a delivery's id, given that of its event's id and of 16 random bytes.
func DeliveryID(event, random string) string {
	return fill(deliveryID, "event", event, "random", random)
}

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
	"redeliver": numberedNames(redeliverSelectedQuery, "ids"),
	"release": numberedNames(fill(redeliverBatchQuery, "sources", redelivery{Missed: true}.batchSources(), "e", "e"),
		"webhook", "after", "until", "limit", "low", "high", "record", "status", "code", "none", "kind"),
	"hour": countHourQuery,
}

// OpenRecordStatements are the pages of OpenRecords, which a test explains.
var OpenRecordStatements = map[string]string{
	"work_orders": openRecords[TargetWorkOrder].query, "feedback": openRecords[TargetFeedback].query,
}

// ManagerStatements are reads of managers of integrations that a test explains, with
// ManagerArguments.
var (
	ManagerStatements = map[string]string{
		"can see work order":  visibleQueries[VisibleWorkOrder],
		"can see feedback":    visibleQueries[VisibleFeedback],
		"can see node":        visibleQueries[VisibleNode],
		"nodes above":         wayNodesQuery,
		"nodes":               fill(assignedNodesQuery, "visible", "true"),
		"nodes that one sees": assignedToSeen,
		"effects":             numberedNames(integrationEffectsQuery, "id", "max"),
		"webhook":             managedWebhookQuery,
		"list":                numberedNames(fill(integrationSummaryQuery, "condition", "true"), "organization", "window", "limit"),
		"missed":              numberedNames(countReleasableQuery, "webhook", "since", "after", "limit"),
	}
	ManagerArguments = map[string]string{
		"can see work order": "'wo_1', 'idn_1', 'idn_2'", "can see feedback": "'iss_1', 'idn_1', 'idn_2'", "can see node": "'loc_1', 'idn_1', 'idn_2'",
		"nodes above": "'loc_1', 'idn_1'", "nodes": "'idn_1', 10", "nodes that one sees": "'idn_1', 10, 'idn_2', 'idn_3'", "effects": "'idn_1', 10", "webhook": "'whk_1', 'idn_1', now()",
		"list": "'idn_1', now(), 10", "missed": "'whk_1', now(), 0, 10",
	}
)

func numberedNames(sql string, names ...string) string {
	for n, name := range names {
		sql = strings.ReplaceAll(sql, "@"+name, "$"+strconv.Itoa(n+1))
	}
	return sql
}

// PublishStatement publishes events of work orders.
var PublishStatement = publishWorkOrder.SQL

// Expiries is the number of tables and works that housekeeping looks at.
var Expiries = len(expiries)

// HashesComputed returns how many passwords the service has hashed.
func (s *Service) HashesComputed() int {
	s.passwords.mu.Lock()
	defer s.passwords.mu.Unlock()
	return s.passwords.computed
}

// CountsOfHour is the number of counts in an hour of deliveries.
var CountsOfHour = countsOfHour

// NotifySecurity calls notifySecurity in a transaction, or notifyEmailChanged if
// there is a former e-mail address.
func (s *Service) NotifySecurity(ctx context.Context, actor Actor, organizationID string, kind models.NoticeKind, aboutID, formerEmail string, people ...string) error {
	return s.transaction(ctx, organizationID, func(t *ormTx) error {
		if formerEmail != "" {
			return t.notifyEmailChanged(actor, organizationID, aboutID, formerEmail)
		}
		return t.notifySecurity(actor, organizationID, kind, aboutID, people...)
	})
}
