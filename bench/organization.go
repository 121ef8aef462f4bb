package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"millwright/service/store"
)

// organization is an organization to import: the values of organization.yaml.
type organization struct {
	Key string
	// Each of the integrations has the number of addresses, which subscribe to the events.
	Integrations, Addresses int
	Events                  string
	CallsPerMinute          int
	// Questions is the number of questions of its form, 0 for no form.
	Questions int
}

// changeSubscription is the organization of most measurements: its addresses
// subscribe to changes, and no limit of its calls matters.
func changeSubscription(addresses int) organization {
	return organization{Key: "bench", Integrations: 1, Addresses: addresses, Events: "work_order.updated", CallsPerMinute: 1_000_000_000}
}

// Email is the address of the organization's person.
func (o organization) Email() string { return o.Key + "@example.com" }

// client returns the n-th integration's client id, counted from 1.
func (o organization) client(n int) string { return fmt.Sprintf("%s-%d", o.Key, n) }

// clientSecretOf returns the client secret of an integration of the bench.
func clientSecretOf(clientID string) string { return "secret-of-" + clientID + "-in-the-bench" }

//go:embed organization.yaml
var organizationFile string

// fileOf is the organization's file.
func (in *installation) fileOf(o organization) string { return filepath.Join(in.dir, o.Key+".yaml") }

// importFile writes an organization to its file and imports it. It returns the ids of its keys.
func (in *installation) importFile(o organization) map[string]string {
	file := template.Must(template.New("organization").Funcs(template.FuncMap{
		"numbers": func(most int) (all []int) {
			for n := range most {
				all = append(all, n+1)
			}
			return all
		},
		"client":   o.client,
		"secretOf": clientSecretOf,
		"receiver": func() string { return in.receiver.server.URL },
		"secret":   func() string { return in.secret },
	}).Parse(organizationFile))
	var text bytes.Buffer
	check(file.Execute(&text, o))
	check(os.WriteFile(in.fileOf(o), text.Bytes(), 0o600))
	var made struct {
		IDs map[string]string `json:"ids"`
	}
	check(json.Unmarshal(in.run(nil, "import", in.fileOf(o)), &made))
	return made.IDs
}

// subscribe imports the first organization, if necessary again, and makes its
// integration the one that calls.
func (in *installation) subscribe(o organization) {
	ids := in.importFile(o)
	in.webhookID = ids["hook1-1"]
	check(in.pool.QueryRow(in.ctx, `SELECT organization_id, integration_id FROM webhooks WHERE id = $1`, in.webhookID).Scan(&in.organization, &in.integration))
	if in.erp == nil {
		in.erp = &tenant{Address: in.address, Node: ids["top"]}
	}
}

// startWith creates the first organization, starts the API server, and creates the work orders of
// the organization through it.
func (in *installation) startWith(o organization) {
	in.subscribe(o)
	in.startAPI()
	in.erp.createWorkOrders(benchWorkOrders)
}

// tokenOf gets an access token.
func (in *installation) tokenOf(clientID string) string {
	c := newCaller(&tenant{Address: in.address})
	defer c.close()
	check(c.token(clientID))
	return textAfter(c.body.Bytes(), `"access_token":"`)
}

// newSession returns the token of a new session of the person with the id or e-mail address, with a MAC of
// the installation's keys. After the ~ it names its person, who the session's row shows.
func (in *installation) newSession(name string, person any) (token string) {
	token = must(store.NewVault(sealingKeys)).SessionToken(name + "~" + name)
	hash := sha256.Sum256([]byte(token))
	in.exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent, authenticated_at, recent_until)
		SELECT $1, 'ses_' || $2, id, 'password', now(), now(), '127.0.0.1', 'bench', now(), now() + interval '1 day'
		FROM people WHERE id = $3 OR email = $3`, hash[:], hex.EncodeToString(hash[:13]), person)
	return token
}
