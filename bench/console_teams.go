package main

import "fmt"

const (
	// consoleTeams are teams; the first has everyone, the others a few people each.
	consoleTeams = 500
	// consoleTeamNodes are those on which each of a hundred teams has permissions.
	consoleTeamNodes = 50
	// consoleForms have consoleQuestions each; the first is that of the newest work orders.
	consoleForms, consoleQuestions, consoleFormUses = 200, 40, 1000
)

// The records of plantTeams whose pages are measured. The member is in every team.
const (
	consoleTeam       = "idn_30000000000000000000000001"
	consoleSmallTeam  = "idn_30000000000000000000000002"
	consoleMember     = "idn_20000000000000000000000001"
	consoleDefinition = "def_30000000000000000000000001"
	consoleForm       = "frm_30000000000000000000000001"
)

// plantTeams are statements that create teams with members and permissions, permission
// definitions and forms in the console's organization, after its people.
func plantTeams() []string {
	const organization = `(SELECT organization_id FROM people WHERE id = '` + consoleMember + `') o`
	numbered := func(prefix, n string) string { return `'` + prefix + `_3' || lpad(to_hex(` + n + `), 25, '0')` }
	return []string{
		fmt.Sprintf(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
			SELECT `+numbered("idn", "n")+`, o.organization_id, 'team', 'Team ' || substr(md5(n::text), 1, 12), now(), now() FROM generate_series(1, %d) n, `+organization, consoleTeams),
		`INSERT INTO team_members (team_id, member_id, organization_id) SELECT '` + consoleTeam + `', id, organization_id FROM people WHERE id LIKE 'idn_2%'`,
		fmt.Sprintf(`INSERT INTO team_members (team_id, member_id, organization_id)
			SELECT `+numbered("idn", "2 + ('x' || right(id, 4))::bit(16)::integer %% %d")+`, id, organization_id FROM people WHERE id LIKE 'idn_2%%' AND id NOT IN ('`+consoleMember+`', '`+fewNodesPerson+`', '`+oneNodePerson+`')`, consoleTeams-1),
		fmt.Sprintf(`INSERT INTO team_members (team_id, member_id, organization_id)
			SELECT `+numbered("idn", "n")+`, '`+consoleMember+`', o.organization_id FROM generate_series(2, %d) n, `+organization, consoleTeams),
		fmt.Sprintf(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			SELECT v.id, `+numbered("idn", "n")+`, d.id, v.organization_id FROM generate_series(2, 101) n,
				(SELECT * FROM inventory_nodes WHERE name LIKE 'Room %%' ORDER BY id LIMIT %d) v, permission_definitions d WHERE d.name = 'Full' ON CONFLICT DO NOTHING`, consoleTeamNodes),
		`INSERT INTO organization_permission_definitions (id, organization_id, name, grants)
			SELECT ` + numbered("def", "n") + `, o.organization_id, 'Definition ' || n, '{people,log_records}' FROM generate_series(1, 50) n, ` + organization,
		`UPDATE people SET organization_definition_id = '` + consoleDefinition + `' WHERE id LIKE 'idn_2%'`,
		fmt.Sprintf(`INSERT INTO forms (id, organization_id, name, created_at, changed_at)
			SELECT `+numbered("frm", "n")+`, o.organization_id, 'Form ' || substr(md5(n::text), 1, 12), now(), now() FROM generate_series(1, %d) n, `+organization, consoleForms),
		fmt.Sprintf(`INSERT INTO questions (id, form_id, position, label, type, required)
			SELECT `+numbered("qst", "n * 1000 + q")+`, `+numbered("frm", "n")+`, q, 'Is part ' || q || ' in order?', 'text', q %% 2 = 0 FROM generate_series(1, %d) n, generate_series(1, %d) q`, consoleForms, consoleQuestions),
		fmt.Sprintf(`UPDATE work_orders SET form_id = '`+consoleForm+`' WHERE id IN (SELECT w.id FROM work_orders w, `+organization+`
			WHERE w.organization_id = o.organization_id ORDER BY w.id DESC LIMIT %d)`, consoleFormUses),
	}
}
