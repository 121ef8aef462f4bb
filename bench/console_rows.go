package main

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// consoleDeliveries are the first address's deliveries, over the time that they are kept.
const consoleDeliveries = 1_000_000

// The records whose pages are measured, besides those that plantConsole finds. consoleNode is a
// room on which every person of the bench has permissions; the work orders are there. The people
// have permissions on fifty nodes and on one; the member is in every team.
const (
	consoleBuilding   = "loc_00000000000000000000000001" // of 100, with 200 rooms
	consoleNode       = "loc_000000000000000000000003e9" // room 1001
	consoleLevel      = "loc_30000000000000000000000000" // of 1,000 halls
	consoleChild      = "loc_30000000000000000000000003"
	consoleMember     = "idn_20000000000000000000000001"
	fewNodesPerson    = "idn_20000000000000000000000002"
	oneNodePerson     = "idn_20000000000000000000000003"
	consoleTeam       = "idn_30000000000000000000000001"
	consoleSmallTeam  = "idn_30000000000000000000000002"
	consoleDefinition = "def_30000000000000000000000001"
	consoleForm       = "frm_30000000000000000000000001"
)

// Tokens of the sessions: of the administrator, of people with permissions on fifty nodes and
// on one, and of one in all teams.
var consoleToken, fewNodesToken, oneNodeToken, memberToken = benchSession("the-bench"), benchSession("few-nodes"), benchSession("one-node"), benchSession("all-teams")

// benchSession returns the token of a session with a MAC of the installation's keys. After the ~ it
// names its person, who the session's row shows.
func benchSession(name string) string {
	return must(store.NewVault(sealingKeys)).SessionToken(name + "~" + name)
}

// addSession adds the session with the token, of the person with the id or e-mail address.
func (in *installation) addSession(token, person string) {
	hash := sha256.Sum256([]byte(token))
	in.exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent, authenticated_at, recent_until)
		SELECT $1, 'ses_' || $2, id, 'password', now(), now(), '127.0.0.1', 'bench', now(), now() + interval '1 day'
		FROM people WHERE id = $3 OR email = $3`, hash[:], hex.EncodeToString(hash[:13]), person)
}

// addPeople adds people to the organization of the person with the e-mail address.
func (in *installation) addPeople(email string, n int) {
	const made = `SELECT p.organization_id, 'idn_' || lpad(to_hex(n), 26, '0') AS id, md5(n::text) AS name FROM people p, generate_series(1, $2::integer) n WHERE p.email = $1`
	in.exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT id, organization_id, 'person', left(name, 8) || ' ' || right(name, 12), now(), now() FROM (`+made+`) m`, email, n)
	in.exec(`INSERT INTO people (id, organization_id, email, folded_email) SELECT id, organization_id, name || '@example.com', lower(name || '@example.com') FROM (`+made+`) m`, email, n)
	check(store.FoldTables(in.ctx, in.pool, "identities", "people"))
}

// consoleRecords are the records whose pages are measured.
type consoleRecords struct {
	integration, webhook string
	// delivered and failed are deliveries of the webhook, changed is a work order with some.
	delivered, failed, changed string
	person                     string
	// workOrder is in progress with answers, feedback is open; everyone may read them.
	workOrder, feedback string
}

// plantConsole creates what the pages of a big customer show, next to the work orders and nodes
// of growth, and sessions.
func (in *installation) plantConsole() (found consoleRecords) {
	var organization, creator string
	check(in.pool.QueryRow(in.ctx, `SELECT organization_id, integration_id FROM webhooks WHERE id = $1`,
		in.webhookID).Scan(&organization, &creator))
	now := time.Now().UTC()
	from := now.Add(6*time.Hour - models.EventRetention)
	in.makePartitions(from.Add(-day), now)
	args := arguments{
		"organization": organization, "creator": creator, "webhook": in.webhookID, "from": from, "to": now,
		"nodes": benchNodes, "records": in.options.records, "deliveries": consoleDeliveries,
		"level": consoleLevel, "few": fewNodesPerson, "one": oneNodePerson, "member": consoleMember,
		"team": consoleTeam, "definition": consoleDefinition, "form": consoleForm,
	}
	check(in.execFile(in.ctx, "console.sql", args, ""))
	check(in.execFile(in.ctx, "console_records.sql", args, ""))
	check(store.FoldTables(in.ctx, in.pool))
	in.exec(store.RebuildPositions)
	in.bulkLoad([]string{"events", "deliveries", "open_deliveries", "attempts", "log"}, func() {
		in.plant(consoleDeliveries, "console_deliveries.sql", args)
	})
	in.exec(`DROP TABLE console_events`)
	administrator := changeSubscription(1).email()
	for token, person := range map[string]string{consoleToken: administrator, fewNodesToken: fewNodesPerson, oneNodeToken: oneNodePerson, memberToken: consoleMember} {
		in.addSession(token, person)
	}
	found.webhook = in.webhookID
	check(in.pool.QueryRow(in.ctx, `
		SELECT w.integration_id, d.id, f.id, d.record_id, (SELECT id FROM people WHERE NOT admin ORDER BY id LIMIT 1),
			(SELECT id FROM work_orders WHERE inventory_id = $2 AND status = 'in_progress' AND form_id IS NOT NULL ORDER BY id DESC LIMIT 1),
			(SELECT id FROM feedback WHERE inventory_id = $2 AND status = 'open' ORDER BY id DESC LIMIT 1)
		FROM webhooks w,
			LATERAL (SELECT id, record_id FROM deliveries WHERE webhook_id = w.id AND status = 'delivered' ORDER BY id DESC LIMIT 1) d,
			LATERAL (SELECT id FROM deliveries WHERE webhook_id = w.id AND status = 'failed' ORDER BY id DESC LIMIT 1) f
		WHERE w.id = $1`, in.webhookID, consoleNode).
		Scan(&found.integration, &found.delivered, &found.failed, &found.changed, &found.person, &found.workOrder, &found.feedback))
	return found
}
