package main

import (
	"net/url"
	"time"
)

// consolePages are the pages of the console, including part two's, for people who see all,
// few and one of the nodes.
func consolePages(found consoleRecords, now time.Time) []consolePage {
	pages := append(organizationPages(found), deliveryPages(found, now)...)
	pages = append(pages, inventoryPages()...)
	for _, person := range []struct {
		prefix, token, node string
	}{{"", consoleToken, consoleBuilding}, {"few nodes: ", fewNodesToken, consoleNode}, {"one node: ", oneNodeToken, consoleNode}} {
		of := append(append(personPages(found, person.node), workOrderPages(person.node)...), feedbackPages(found)...)
		for _, page := range of {
			page.name, page.token = person.prefix+page.name, person.token
			pages = append(pages, page)
		}
	}
	for _, page := range []consolePage{
		{name: "start", aim: aimList}, {name: "work orders: mine", path: "/work-orders?assignee=me", aim: aimList},
		{name: "work orders: mine, to be done", path: "/work-orders?assignee=me&status=to_do", aim: aimList},
		{name: "work orders: all", path: "/work-orders", aim: aimList},
	} {
		page.name, page.token = "all teams: "+page.name, memberToken
		pages = append(pages, page)
	}
	return pages
}

// prefixed returns the pages below the path, with the prefix before their names.
func prefixed(prefix, path string, pages []consolePage) []consolePage {
	for i := range pages {
		pages[i].name, pages[i].path = prefix+pages[i].name, path+pages[i].path
	}
	return pages
}

// personPages are pages that each person opens first, of what it may read.
func personPages(found consoleRecords, node string) []consolePage {
	workOrder, at := "/work-orders/"+found.workOrder, "/inventory/"+node
	return []consolePage{
		{name: "start", aim: aimList},
		{name: "notices", path: "/notices", aim: aimList},
		{name: "account", path: "/account", aim: aimRecord},
		{name: "work order", path: workOrder, aim: aimRecord},
		{name: "work order: edit", path: workOrder + "/edit", aim: aimRecord},
		{name: "work order: answers", path: workOrder + "/answers", aim: aimRecord},
		{name: "work order: assign", path: workOrder + "/assign", aim: aimRecord},
		{name: "work order: assign, search", path: workOrder + "/assign?find=abc", aim: aimSearch},
		{name: "work order: before it is cancelled", path: workOrder + "/cancel", aim: aimRecord},
		{name: "new work order: choosing a node", path: "/work-orders/new", aim: aimLevel},
		{name: "new work order: search of a node", path: "/work-orders/new?q=room+10", aim: aimSearch},
		{name: "new work order: form", path: "/work-orders/new?node=" + consoleNode, aim: aimRecord},
		{name: "new work order of feedback", path: "/work-orders/new?feedback=" + found.feedback, aim: aimRecord},
		{name: "inventory: its top", path: "/inventory", aim: aimLevel},
		{name: "inventory: search, a word that most have", path: "/inventory?q=room", aim: aimSearch},
		{name: "inventory: search, some", path: "/inventory?q=room+10", aim: aimSearch},
		{name: "inventory: search, a code", path: "/inventory?q=FAN-0077", aim: aimSearch},
		{name: "inventory: search, two letters", path: "/inventory?q=al", aim: aimSearch},
		{name: "inventory: search without a match", path: "/inventory?q=nowhere", aim: aimSearch},
		{name: "search of everything, a place and a word", path: "/search?q=hall+0003+boiler", aim: aimSearch},
		{name: "search of everything, a word that most places have", path: "/search?q=room", aim: aimSearch},
		{name: "search of everything, a number", path: "/search?q=123456", aim: aimSearch},
		{name: "node", path: at, aim: aimLevel},
		{name: "node: work orders", path: at + "?tab=work-orders", aim: aimList},
		{name: "node: feedback", path: at + "?tab=feedback", aim: aimList},
		{name: "node: assignees", path: at + "?tab=assignees", aim: aimList},
		{name: "node: label", path: at + "/label", aim: aimRecord},
		{name: "people", path: "/people", aim: aimList},
		{name: "teams", path: "/teams", aim: aimList},
		{name: "forms", path: "/forms", aim: aimList},
		{name: "form", path: "/forms/" + consoleForm, aim: aimRecord},
		{name: "person", path: "/people/" + found.person, aim: aimRecord},
		{name: "team", path: "/teams/" + consoleSmallTeam, aim: aimRecord},
	}
}

// workOrderPages are the lists and files of work orders.
func workOrderPages(node string) []consolePage {
	return prefixed("work orders: ", "/work-orders", []consolePage{
		{name: "to be done", aim: aimList}, {name: "to be done, newest first", path: "?status=to_do&sort=newest", aim: aimList},
		{name: "due today", path: "?due=today", aim: aimList}, {name: "due this week", path: "?due=week", aim: aimList}, {name: "no one can do", path: "?who=no_one", aim: aimSearch},
		{name: "mine, due today", path: "?assignee=me&due=today&status=to_do", aim: aimList},
		{name: "all", path: "?status=any", aim: aimList}, {name: "all of a status", path: "?status=in_progress", aim: aimList}, {name: "open", path: "?status=open", aim: aimList},
		{name: "cancelled", path: "?status=cancelled", aim: aimSearch},
		{name: "mine", path: "?assignee=me", aim: aimList}, {name: "mine, to be done", path: "?assignee=me&status=to_do", aim: aimList},
		{name: "waiting for my review", path: "?review=me", aim: aimList},
		{name: "a node and below", path: "?node=" + node, aim: aimSearch}, {name: "a quiet node and below", path: "?node=" + consoleChild, aim: aimSearch},
		{name: "one node", path: "?only=yes&node=" + consoleNode, aim: aimSearch}, {name: "a node by its code", path: "?node=HALL-0003", aim: aimSearch},
		{name: "overdue", path: "?due=overdue", aim: aimSearch}, {name: "high priority", path: "?priority=high", aim: aimSearch},
		{name: "high priority, closed", path: "?priority=high&status=complete", aim: aimSearch},
		{name: "high priority, on hold, overdue", path: "?priority=high&status=on_hold&due=overdue", aim: aimSearch},
		{name: "waiting for a review", path: "?review=any", aim: aimSearch}, {name: "assigned to an integration", path: "?assignee=Integration+1", aim: aimSearch},
		{name: "assigned to a person", path: "?assignee=" + oneNodePerson, aim: aimSearch}, {name: "assigned to a name that no one has", path: "?assignee=nowhere", aim: aimSearch},
		{name: "created by a person", path: "?kind=person", aim: aimSearch}, {name: "created by an integration", path: "?by=Integration+1", aim: aimSearch},
		{name: "created by one person", path: "?by=" + oneNodePerson, aim: aimSearch}, {name: "created by me", path: "?by=me", aim: aimSearch},
		{name: "an external id", path: "?external=ERP-77770", aim: aimSearch}, {name: "an external id that is not there", path: "?external=ERP-1", aim: aimSearch},
		{name: "a number", path: "?q=123456", aim: aimSearch}, {name: "a recent number", path: "?q=1077700", aim: aimSearch},
		{name: "the text of an external id", path: "?q=erp-77770", aim: aimSearch},
		{name: "a rare word", path: "?q=boiler", aim: aimSearch}, {name: "the beginning of a rare word", path: "?q=boil", aim: aimSearch},
		{name: "a rare word of today", path: "?q=legionella", aim: aimSearch}, {name: "a word that is not there", path: "?q=nowhere", aim: aimSearch},
		{name: "a word that all but the new ones have", path: "?q=work", aim: aimSearch}, {name: "two letters that almost all have", path: "?q=wo", aim: aimSearch},
		{name: "a word that only old ones have", path: "?q=imported", aim: aimSearch}, {name: "a common and a rare word", path: "?q=order+boiler", aim: aimSearch},
		{name: "words of a place", path: "?q=room+10", aim: aimSearch}, {name: "a code and a word", path: "?q=hall-0003+order", aim: aimSearch},
		{name: "a frequent word of today", path: "?q=replace", aim: aimSearch}, {name: "two frequent words of today", path: "?q=kitchen+lift", aim: aimSearch},
		{name: "frequent words that none has together", path: "?q=kitchen+cellar", aim: aimSearch},
		{name: "a frequent word, overdue", path: "?q=replace&due=overdue", aim: aimSearch},
		{name: "CSV of all", path: ".csv?status=any", aim: noAim}, {name: "CSV of the overdue", path: ".csv?due=overdue", aim: noAim},
	})
}

// feedbackPages are the lists of feedback, and one.
func feedbackPages(found consoleRecords) []consolePage {
	return append(prefixed("feedback: ", "/feedback", []consolePage{
		{name: "all", aim: aimList}, {name: "open", path: "?state=open", aim: aimSearch}, {name: "a node", path: "?node=" + consoleNode, aim: aimSearch},
		{name: "a quiet node", path: "?node=" + consoleChild, aim: aimSearch}, {name: "another creator", path: "?by=" + found.person, aim: aimSearch},
		{name: "an external id", path: "?external_id=TICKET-77700", aim: aimSearch}, {name: "an external id that is not there", path: "?external_id=TICKET-1", aim: aimSearch},
		{name: "giving some: choosing a node", path: "/new", aim: aimRecord}, {name: "giving some", path: "/new?node=" + consoleNode, aim: aimRecord},
	}), consolePage{name: "feedback", path: "/feedback/" + found.feedback, aim: aimRecord})
}

// inventoryPages are the pages of large parts of the inventory, and of people's permissions there.
func inventoryPages() []consolePage {
	return []consolePage{
		{name: "inventory: a level of 200", path: "/inventory?open=" + consoleBuilding, aim: aimLevel},
		{name: "inventory: a level of 1,000", path: "/inventory?open=" + consoleLevel, aim: aimLevel},
		{name: "inventory: a level of 1,000, its middle", path: "/inventory?open=" + consoleLevel + "&after_name=Hall+5&after=loc_3", aim: aimLevel},
		{name: "node with 1,000 directly below", path: "/inventory/" + consoleLevel, aim: aimLevel},
		{name: "node deep down", path: "/inventory/eqp_30000000000000000000000003", aim: aimLevel},
		{name: "node: before someone is assigned", path: "/inventory/" + consoleNode + "/assign", aim: aimRecord},
		{name: "node: what assigning does", path: "/inventory/" + consoleNode + "/assign?identity=" + oneNodePerson, aim: aimRecord},
		{name: "node: before someone is taken off", path: "/inventory/" + consoleNode + "/unassign?identity=" + oneNodePerson, aim: aimRecord},
		{name: "new work order: a level of 1,000", path: "/work-orders/new?below=" + consoleLevel, aim: aimLevel},
	}
}

// organizationPages are the pages of integrations, people, teams, forms and the log.
func organizationPages(found consoleRecords) []consolePage {
	address, integration := "/webhooks/"+found.webhook, "/integrations/"+found.integration
	return []consolePage{
		{name: "integrations", path: "/integrations", aim: aimList},
		{name: "integration", path: integration, aim: aimRecord},
		{name: "integration: can it see a work order?", path: integration + "?see=" + found.changed, aim: aimRecord},
		{name: "integration: before it is deleted", path: integration + "/delete", aim: aimRecord},
		{name: "integration: before it is assigned", path: integration + "/assign?q=room+77", aim: aimSearch},
		{name: "address", path: address, aim: aimRecord},
		{name: "address: sending what was missed", path: address + "/missed", aim: aimRecord},
		{name: "address: before it is deleted", path: address + "/delete", aim: aimRecord},
		{name: "delivery", path: "/deliveries/" + found.delivered, aim: aimRecord},
		{name: "delivery that failed", path: "/deliveries/" + found.failed, aim: aimRecord},
		{name: "people: next page", path: "/people?after=idn_20000000000000000000000100&after_name=8", aim: aimList},
		{name: "people: search", path: "/people?q=abc", aim: aimSearch},
		{name: "people: search without a match", path: "/people?q=nowhere", aim: aimSearch},
		{name: "people: deactivated", path: "/people?deactivated=yes", aim: aimSearch},
		{name: "people with a permission definition", path: "/people?definition=" + consoleDefinition, aim: aimList},
		{name: "permission definitions", path: "/people/definitions", aim: aimList},
		{name: "person: before access ends", path: "/people/" + found.person + "/deactivate", aim: aimRecord},
		{name: "person in all teams", path: "/people/" + consoleMember, aim: aimRecord},
		{name: "teams: search", path: "/teams?q=abc", aim: aimSearch},
		{name: "teams: search without a match", path: "/teams?q=nowhere", aim: aimSearch},
		{name: "team of everyone", path: "/teams/" + consoleTeam, aim: aimRecord},
		{name: "team of everyone: search", path: "/teams/" + consoleTeam + "?q=abc", aim: aimSearch},
		{name: "team: people to add", path: "/teams/" + consoleSmallTeam + "/members", aim: aimList},
		{name: "team: before it is deleted", path: "/teams/" + consoleTeam + "/delete", aim: aimRecord},
	}
}

// deliveryPages are the lists and charts of deliveries, the log, and counts.
func deliveryPages(found consoleRecords, now time.Time) []consolePage {
	at := func(ago time.Duration) string { return url.QueryEscape(now.Add(-ago).Format("2006-01-02T15:04")) }
	address, hour := "/webhooks/"+found.webhook, "from="+at(10*day)+"&to="+at(10*day-time.Hour)
	pages := []consolePage{
		{name: "log", path: "/log", aim: aimList},
		{name: "log: a rare action", path: "/log?what=person", aim: aimSearch},
		{name: "log: an action that is not there", path: "/log?what=issue", aim: aimSearch},
		{name: "log: another person", path: "/log?who=" + found.person, aim: aimSearch},
		{name: "log: a record", path: "/log?record=" + found.changed, aim: aimSearch},
		{name: "log: an hour ten days ago", path: "/log?" + hour, aim: aimSearch},
		{name: "number of all work orders", path: "/work-orders/count?status=any", aim: aimChart},
		{name: "number of work orders to be done", path: "/work-orders/count", aim: aimChart},
		{name: "number of work orders that no one can do", path: "/work-orders/count?who=no_one", aim: aimChart},
		{name: "number of complete work orders of high priority", path: "/work-orders/count?priority=high&status=complete", aim: aimChart},
		{name: "charts of all deliveries, 30 days", path: "/charts/deliveries?time=30d", aim: aimChart},
		{name: "charts of the address, 30 days", path: address + "/charts?time=30d", aim: aimChart},
	}
	for _, list := range []struct{ of, path string }{{"deliveries", "/deliveries"}, {"deliveries of the address", address + "/deliveries"}} {
		of := []consolePage{{name: "all", aim: aimList}, {name: "from the failed one on", path: "?before=" + found.failed, aim: aimList}}
		for _, filter := range []struct{ name, query string }{
			{"failed", "status=failed"}, {"pending", "status=pending"}, {"skipped", "status=skipped"}, {"delivered", "status=delivered"},
			{"2xx", "response=2xx"}, {"5xx", "response=5xx"}, {"4xx", "response=4xx"}, {"no response", "response=none"},
			{"a type that is not there", "type=issue.created"}, {"a type that all have", "type=work_order.updated"},
			{"a record", "record=" + found.changed}, {"an hour ten days ago", hour},
			{"failed with 5xx, an hour ten days ago", "status=failed&response=5xx&" + hour},
		} {
			of = append(of, consolePage{name: filter.name, path: "?" + filter.query, aim: aimSearch})
		}
		pages = append(pages, prefixed(list.of+": ", list.path, of)...)
	}
	return append(pages,
		consolePage{name: "redelivery of all that failed: its count", path: "/deliveries/redeliver-matching?status=failed", aim: aimSearch},
		consolePage{name: "redelivery of all with 5xx at the address: its count", path: "/deliveries/redeliver-matching?response=5xx&webhook=" + found.webhook, aim: aimSearch})
}
