package pages

import (
	"millwright/service/integrations"
	"millwright/service/records"
	"millwright/service/storetest"
	"millwright/service/webhooks"
)

// ManagerStatements are reads of managers of integrations that a test explains, with
// ManagerArguments.
var (
	ManagerStatements = map[string]string{
		"can see work order":  visibleQueries[VisibleWorkOrder],
		"can see feedback":    visibleQueries[VisibleFeedback],
		"can see node":        visibleQueries[VisibleNode],
		"nodes above":         wayNodesQueries[VisibleWorkOrder],
		"nodes that one sees": records.AssignedNodesQuery,
		"effects":             storetest.Numbered(integrationEffectsQuery, "id", "max"),
		"webhook":             webhooks.ManagedWebhookQuery,
		"list":                storetest.Numbered(integrations.SummaryQuery("true"), "organization", "window", "limit"),
	}
	ManagerArguments = map[string]string{
		"can see work order": "'wo_1', '{idn_1}', 'idn_2'", "can see feedback": "'iss_1', '{idn_1}', 'idn_2'", "can see node": "'loc_1', '{idn_1}', 'idn_2'",
		"nodes above": "'wo_1', '{idn_1}', 'idn_2', 'idn_3'", "nodes that one sees": "'idn_1', 10, 'idn_2', 'idn_3'", "effects": "'idn_1', 10", "webhook": "'whk_1', 'idn_1', now()",
		"list": "'idn_1', now(), 10",
	}
)
