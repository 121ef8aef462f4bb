package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// organization is an organization to import. Its integrations see everything, and
// each has the given number of addresses, all of them the receiver's.
type organization struct {
	key                     string
	integrations, addresses int
	events                  []string
	// callsPerMinute limits its integrations, 0 for no limit that matters.
	callsPerMinute int
	// feedback lets its integrations also read and create feedback.
	feedback bool
	// questions is the number of questions of its form, 0 for no form.
	questions int
	// person makes a person, whose e-mail address is email, a worker of new work orders.
	person bool
}

// email is the address of the organization's person.
func (o organization) email() string { return o.key + "@example.com" }

// changeSubscription is the organization of most measurements: its addresses
// subscribe to changes, and its work orders have a person as worker, who is notified.
func changeSubscription(addresses int) organization {
	return organization{key: "bench", integrations: 1, addresses: addresses, events: []string{"work_order.updated"}, person: true}
}

// client returns the n-th integration's client id, counted from 1.
func (o organization) client(n int) string { return fmt.Sprintf("%s-%d", o.key, n) }

// file returns the file to import: JSON, which is YAML.
func (o organization) file(r *receiver, secret string) []byte {
	type object map[string]any
	scopes := []string{"work_orders:read", "work_orders:write"}
	grants := []string{"inventory.read", "work_orders.read", "work_orders.create", "work_orders.update"}
	if o.feedback {
		scopes = append(scopes, "issues:read", "issues:write")
		grants = append(grants, "feedback.read", "feedback.create")
	}
	if o.questions > 0 {
		scopes = append(scopes, "forms:read")
	}
	if o.person {
		grants = append(grants, "work_orders.delete", "work_orders.forward")
	}
	var people, assignments, integrations, forms, questions []object
	if o.person {
		people = []object{{"key": "ann", "name": "Ann", "email": o.email()}}
		assignments = []object{{"node": "top", "identity": "ann", "definition": "manager"}}
	}
	for n := range o.integrations {
		key, client, definition := fmt.Sprintf("i%d", n+1), o.client(n+1), "full"
		if n == 0 {
			definition = "manager" // it is the worker of new work orders
		}
		assignments = append(assignments, object{"node": "top", "identity": key, "definition": definition})
		var webhooks []object
		for a := range o.addresses {
			path := fmt.Sprintf("/%s/%d", client, a+1)
			webhooks = append(webhooks, object{"key": fmt.Sprintf("hook%d", n*o.addresses+a+1), "url": r.url(path), "secret": secret, "events": o.events})
		}
		integrations = append(integrations, object{
			"key": key, "name": fmt.Sprintf("Integration %d", n+1), "scopes": scopes,
			"client_id": client, "client_secret": clientSecretOf(client), "webhooks": webhooks,
		})
	}
	for n := range o.questions {
		var options []object
		for option := range 10 {
			options = append(options, object{"key": fmt.Sprintf("q%do%d", n, option), "label": fmt.Sprintf("Option %d", option)})
		}
		questions = append(questions, object{
			"key": fmt.Sprintf("q%d", n), "label": fmt.Sprintf("Question %d", n), "type": "single_choice", "required": false, "options": options,
		})
		forms = []object{{"key": "long", "name": "Long", "questions": questions}}
	}
	return must(json.Marshal(object{
		"organization": object{"key": o.key, "name": "Bench", "plan": object{
			"name": "pro", "api": true, "manual_work_orders": true, "calls_per_minute": cmp.Or(o.callsPerMinute, 1_000_000_000), "integrations": 1000,
		}},
		"permission_definitions": []object{
			{"key": "full", "name": "Full", "applies_below": true, "grants": grants},
			{"key": "manager", "name": "Manager", "applies_below": true, "inventory_manager": true, "grants": grants},
		},
		"inventory": []object{{"key": "top", "kind": "location", "name": "Top"}},
		"people":    people, "assignments": assignments, "integrations": integrations, "forms": forms,
	}))
}

// subscribe imports the first organization, if necessary again, and makes its
// integration the one that calls.
func (in *installation) subscribe(o organization) {
	ids := in.importOrganization(o)
	in.webhookID = ids["hook1"]
	if in.erp == nil {
		in.erp = &tenant{Address: in.settings["MILLWRIGHT_ADDR"], Node: ids["top"]}
	}
}

// importOrganization returns the ids of the organization's keys.
func (in *installation) importOrganization(o organization) map[string]string {
	var made struct {
		IDs map[string]string `json:"ids"`
	}
	check(os.WriteFile(in.organizationFile(), o.file(in.receiver, in.secret), 0o600))
	check(json.Unmarshal(must(in.run(nil, "import", in.organizationFile())), &made))
	return made.IDs
}

// organizationFile is the file of the organization that was imported last.
func (in *installation) organizationFile() string { return filepath.Join(in.dir, "organization.yaml") }

// tenantOf imports another organization and returns its first integration, with some
// work orders.
func (in *installation) tenantOf(o organization, workOrders int) *tenant {
	ids := in.importOrganization(o)
	t := &tenant{Address: in.settings["MILLWRIGHT_ADDR"], Token: in.tokenOf(o.client(1)), Node: ids["top"], Form: ids["long"]}
	check(t.createWorkOrders(in.ctx, workOrders))
	return t
}

// clientSecretOf returns the client secret of an integration of the bench.
func clientSecretOf(clientID string) string { return "secret-of-" + clientID + "-in-the-bench" }

// tokenOf gets an access token.
func (in *installation) tokenOf(clientID string) string {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {clientSecretOf(clientID)}}
	r := must(http.NewRequestWithContext(in.ctx, http.MethodPost, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/v1/oauth/token", strings.NewReader(form.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var response struct {
		AccessToken string `json:"access_token"`
	}
	check(json.Unmarshal(must(do(r)), &response))
	return response.AccessToken
}
