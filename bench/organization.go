package main

import (
	"cmp"
	"context"
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
	events                  string
	// failing makes the receiver reject its deliveries.
	failing bool
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
// subscribe to changes.
func changeSubscription(addresses int) organization {
	return organization{key: "bench", integrations: 1, addresses: addresses, events: "work_order.updated"}
}

// client returns the n-th integration's client id, counted from 1.
func (o organization) client(n int) string { return fmt.Sprintf("%s-%d", o.key, n) }

func (o organization) yaml(r *receiver, secret string) string {
	scopes, grants := `"work_orders:read", "work_orders:write"`, "inventory.read, work_orders.read, work_orders.create, work_orders.update"
	if o.feedback {
		scopes += `, "issues:read", "issues:write"`
		grants += ", feedback.read, feedback.create"
	}
	var b strings.Builder
	if o.person {
		grants += ", work_orders.delete, work_orders.forward"
	}
	if o.questions > 0 {
		scopes += `, "forms:read"`
		b.WriteString("forms:\n  - key: long\n    name: Long\n    questions:\n")
		for n := range o.questions {
			fmt.Fprintf(&b, "      - {key: q%d, label: Question %d, type: single_choice, required: false, options: [", n, n)
			for option := range 10 {
				fmt.Fprintf(&b, "{key: q%do%d, label: Option %d}, ", n, option, option)
			}
			b.WriteString("]}\n")
		}
	}
	fmt.Fprintf(&b, `
organization: {key: %s, name: Bench, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: %d, integrations: 1000}}
permission_definitions:
  - {key: full, name: Full, applies_below: true, grants: [%[3]s]}
  - {key: manager, name: Manager, applies_below: true, inventory_manager: true, grants: [%[3]s]}
inventory: [{key: top, kind: location, name: Top}]
`, o.key, cmp.Or(o.callsPerMinute, 1_000_000_000), grants)
	if o.person {
		fmt.Fprintf(&b, "people: [{key: ann, name: Ann, email: %s}]\n", o.email())
	}
	b.WriteString("assignments:\n")
	if o.person {
		b.WriteString("  - {node: top, identity: ann, definition: manager}\n")
	}
	definition := "manager" // the first integration is the worker of new work orders
	for n := range o.integrations {
		fmt.Fprintf(&b, "  - {node: top, identity: i%d, definition: %s}\n", n+1, definition)
		definition = "full"
	}
	b.WriteString("integrations:\n")
	for n := range o.integrations {
		client := o.client(n + 1)
		fmt.Fprintf(&b, `  - key: i%d
    name: Integration %d
    scopes: [%s]
    client_id: %s
    client_secret: %s
    webhooks:
`, n+1, n+1, scopes, client, clientSecretOf(client))
		for a := range o.addresses {
			path := fmt.Sprintf("/%s/%d", client, a+1)
			if o.failing {
				path = rejectedPath + path
			}
			fmt.Fprintf(&b, "      - {key: hook%d, url: %q, secret: %q, events: [%s]}\n", n*o.addresses+a+1, r.url(path), secret, o.events)
		}
	}
	return b.String()
}

// imported is what `millwright import` prints.
type imported struct {
	IDs          map[string]string `json:"ids"`
	Integrations map[string]struct {
		Webhooks map[string]struct {
			ID string `json:"id"`
		} `json:"webhooks"`
	} `json:"integrations"`
}

// subscribe imports the first organization, if necessary again, and makes its
// integration the one that calls.
func (in *installation) subscribe(ctx context.Context, o organization) error {
	made, err := in.importOrganization(ctx, o)
	if err != nil {
		return err
	}
	in.webhookID = made.Integrations["i1"].Webhooks["hook1"].ID
	if in.erp == nil {
		in.erp = &tenant{address: in.settings["MILLWRIGHT_ADDR"], node: made.IDs["top"]}
	}
	return nil
}

func (in *installation) importOrganization(ctx context.Context, o organization) (made imported, err error) {
	if err := os.WriteFile(in.organizationFile(), []byte(o.yaml(in.receiver, in.secret)), 0o600); err != nil {
		return made, err
	}
	printed, err := in.run(ctx, nil, "import", in.organizationFile())
	if err != nil {
		return made, err
	}
	return made, json.Unmarshal(printed, &made)
}

// organizationFile is the file of the organization that was imported last.
func (in *installation) organizationFile() string { return filepath.Join(in.dir, "organization.yaml") }

// tenantOf imports another organization and returns its first integration, with some
// work orders.
func (in *installation) tenantOf(ctx context.Context, o organization, workOrders int) (*tenant, error) {
	made, err := in.importOrganization(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &tenant{address: in.settings["MILLWRIGHT_ADDR"], node: made.IDs["top"]}
	if t.token, err = in.tokenOf(ctx, o.client(1)); err != nil {
		return nil, err
	}
	return t, t.createWorkOrders(ctx, workOrders)
}

// clientSecretOf returns the client secret of an integration of the bench.
func clientSecretOf(clientID string) string { return "secret-of-" + clientID + "-in-the-bench" }

// tokenOf gets an access token.
func (in *installation) tokenOf(ctx context.Context, clientID string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {clientSecretOf(clientID)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, in.settings["MILLWRIGHT_PUBLIC_URL"]+"/v1/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var response struct {
		AccessToken string `json:"access_token"`
	}
	body, err := do(r)
	if err != nil {
		return "", err
	}
	err = json.Unmarshal(body, &response)
	return response.AccessToken, err
}
