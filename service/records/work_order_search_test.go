package records_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// searchCase is a search with its condition on the row r of work_orders, for an actor.
type searchCase struct {
	search records.WorkOrderSearch
	only   string
	// named is true if it names someone of the fixture's organization.
	named bool
}

// mine are the actor @actor and its teams.
const mine = `(SELECT '@actor' UNION SELECT team_id FROM team_members WHERE member_id = '@actor')`

// withWords is the condition that r or the nodes of its path have all words: patterns of LIKE.
func withWords(words ...string) string {
	all := make([]string, len(words))
	for i, word := range words {
		has := func(text string) string {
			return `EXISTS (SELECT FROM regexp_split_to_table(lower(` + text + `), '[^a-z0-9]+') word WHERE word LIKE '` + word + `')`
		}
		all[i] = `(` + has(`r.number || ' ' || r.title || ' ' || coalesce(r.external_id, '')`) + ` OR EXISTS (SELECT FROM inventory_closure c
			JOIN inventory_nodes a ON a.id = c.ancestor_id WHERE c.node_id = r.inventory_id AND ` + has(`a.name || ' ' || coalesce(a.external_id, '')`) + `))`
	}
	return strings.Join(all, " AND ")
}

func searchCases(f *servicetest.Fixture, random *rand.Rand, nodes []string) []searchCase {
	// With most of the others below, or few, but an open work order.
	node := servicetest.Value[string](f, `SELECT id FROM unnest($1::text[]) WITH ORDINALITY n (id, at) WHERE EXISTS (
		SELECT FROM inventory_closure c JOIN work_orders w ON w.inventory_id = c.node_id WHERE c.ancestor_id = n.id AND w.status = 'open')
		ORDER BY at = $2 DESC, at LIMIT 1`, nodes[:3], 1+random.IntN(3))
	busy := servicetest.Value[string](f, `SELECT inventory_id FROM work_orders ORDER BY id LIMIT 1`)
	below := `r.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = '` + node + `')`
	assigned := func(who string) string {
		return `EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = r.id AND x.identity_id IN ` + who + `)`
	}
	inProcess := `r.status IN ('open', 'in_progress', 'back_from_inspection', 'sent_to_inspection', 'on_hold')`
	return []searchCase{
		{records.WorkOrderSearch{}, `true`, false},
		{records.WorkOrderSearch{Status: models.StatusOpen}, `r.status = 'open'`, false},
		{records.WorkOrderSearch{Priority: models.PriorityHigh}, `r.priority = 'high'`, false},
		{records.WorkOrderSearch{Priority: models.PriorityHigh, Status: models.StatusOnHold}, `r.priority = 'high' AND r.status = 'on_hold'`, false},
		{records.WorkOrderSearch{Node: node}, below, false},
		{records.WorkOrderSearch{Node: node, Status: models.StatusOpen}, `r.status = 'open' AND ` + below, false},
		{records.WorkOrderSearch{Node: busy, OnlyNode: true}, `r.inventory_id = '` + busy + `'`, false},
		{records.WorkOrderSearch{Assignee: records.SearchMe}, assigned(mine), false},
		{records.WorkOrderSearch{Assignee: f.ID("crew")}, assigned(`('` + f.ID("crew") + `')`), true},
		{records.WorkOrderSearch{Assignee: "crew", Status: models.StatusInProgress}, `r.status = 'in_progress' AND ` + assigned(`('`+f.ID("crew")+`')`), true},
		{records.WorkOrderSearch{Assignee: "polar"}, assigned(`('` + f.ID("polar") + `')`), false},
		{records.WorkOrderSearch{Creator: records.SearchMe}, `r.created_by IN ` + mine, false},
		{records.WorkOrderSearch{Creator: "erp"}, `r.created_by = '` + f.ID("erp") + `'`, true},
		{records.WorkOrderSearch{Creator: "erp", Assignee: "crew"}, `r.created_by = '` + f.ID("erp") + `' AND ` + assigned(`('`+f.ID("crew")+`')`), true},
		{records.WorkOrderSearch{CreatorKind: models.KindPerson}, `false`, false},
		{records.WorkOrderSearch{CreatorKind: models.KindIntegration}, `true`, false},
		{records.WorkOrderSearch{Due: records.DueOverdue}, inProcess + ` AND r.target_date < '2026-03-02 12:00Z'`, false},
		{records.WorkOrderSearch{Due: records.DueToday, Zone: "Asia/Tokyo"}, inProcess + ` AND r.target_date >= '2026-03-02 12:00Z' AND r.target_date < '2026-03-02 15:00Z'`, false},
		{records.WorkOrderSearch{Due: records.DueWeek, Zone: "Asia/Tokyo"}, inProcess + ` AND r.target_date >= '2026-03-02 15:00Z' AND r.target_date < '2026-03-08 15:00Z'`, false},
		{records.WorkOrderSearch{Due: records.DueLater}, inProcess + ` AND coalesce(r.target_date, 'infinity') >= '2026-03-09'`, false},
		{records.WorkOrderSearch{Due: records.DueLater, Assignee: records.SearchMe}, inProcess + ` AND coalesce(r.target_date, 'infinity') >= '2026-03-09' AND ` + assigned(mine), false},
		{records.WorkOrderSearch{ToDo: true, Node: node}, `r.status IN ('open', 'in_progress', 'back_from_inspection') AND ` + below, false},
		{records.WorkOrderSearch{ToDo: true, Text: "valve"}, `r.status IN ('open', 'in_progress', 'back_from_inspection') AND r.title ILIKE '%valve%'`, false},
		{records.WorkOrderSearch{ToDo: true, Creator: "erp"}, `r.status IN ('open', 'in_progress', 'back_from_inspection') AND r.created_by = '` + f.ID("erp") + `'`, true},
		{records.WorkOrderSearch{Review: records.ReviewByAnyone}, `r.status = 'sent_to_inspection'`, false},
		{
			records.WorkOrderSearch{Review: records.ReviewByMe},
			`r.status = 'sent_to_inspection' AND EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = r.id AND x.role = 'consultant' AND x.identity_id IN ` + mine + `)`, false,
		},
		{records.WorkOrderSearch{ExternalID: "ERP-7/3"}, `r.external_id = 'ERP-7/3'`, false},
		{records.WorkOrderSearch{Text: "valve"}, `r.title ILIKE '%valve%'`, false},
		{records.WorkOrderSearch{Text: "val PUMP re", Status: models.StatusOpen}, `false`, false},
		{records.WorkOrderSearch{Text: "PUMP re", Status: models.StatusOpen}, `r.status = 'open' AND r.title ILIKE '%pump%' AND r.title ILIKE '%re%'`, false},
		{records.WorkOrderSearch{Text: "#17"}, `r.number = 17`, false},
		{records.WorkOrderSearch{Text: "erp 7 4"}, `r.external_id = 'ERP-7/4'`, false},
		{records.WorkOrderSearch{Text: "valve", Assignee: "crew"}, `r.title ILIKE '%valve%' AND ` + assigned(`('`+f.ID("crew")+`')`), true},
		{records.WorkOrderSearch{Text: "ahu 1 pump"}, withWords("ahu%", "1", "pump%"), false},
		{records.WorkOrderSearch{Text: "HQ, valve"}, withWords("hq%", "valve%"), false},
		{records.WorkOrderSearch{Text: "hall"}, withWords("hall%"), false},
		{records.WorkOrderSearch{Text: "1 hall", Status: models.StatusOpen}, `r.status = 'open' AND ` + withWords("1", "hall%"), false},
		{records.WorkOrderSearch{Text: "erp x", Assignee: records.SearchMe}, withWords("erp%", "x%") + ` AND ` + assigned(mine), false},
		{records.WorkOrderSearch{Text: "headq", ExternalID: "ERP-7/3"}, `false`, false},
		{records.WorkOrderSearch{Text: "?!"}, `false`, false},
		{records.WorkOrderSearch{Assignee: "no one of this name"}, `false`, false},
		{records.WorkOrderSearch{Node: "NO-SUCH-CODE"}, `false`, false},
	}
}

// A search shows exactly the records that single reads return and that match,
// for readers of few nodes and of many.
func TestSearchesShowWhatSingleReadsShow(t *testing.T) {
	t.Parallel()
	for round := range 2 {
		t.Run(fmt.Sprintf("tree %d", round), func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			random := servicetest.Seeded(t)
			nodes := servicetest.PlantTree(t, f, random, 330)
			f.Exec(`UPDATE inventory_nodes SET name = (ARRAY['Hall', 'Pump 1', 'AHU', 'x'])[1 + ascii(right(id, 1)) % 4], external_id = 'AHU-' || ascii(right(id, 2)) % 3 WHERE name = 'x'`)
			actors := servicetest.HandOutRights(f, random, nodes)
			servicetest.WriteRecords(t, f, random, nodes, actors, 250)
			f.Exec(`UPDATE work_orders SET priority = (ARRAY['none', 'low', 'medium', 'high'])[1 + number % 4],
				title = (ARRAY['Repair the pump', 'Check the valve', 'Pump: replacement', 'Lamp'])[1 + number / 4 % 4],
				status = CASE number % 5 WHEN 0 THEN 'sent_to_inspection' ELSE status END,
				external_id = CASE number % 9 WHEN 0 THEN 'ERP-7/' || number % 5 END,
				target_date = CASE number % 3 WHEN 0 THEN NULL ELSE '2026-03-02 13:00Z'::timestamptz + (number % 7 - 3) * interval '2 days' + number % 2 * interval '300 ms' END`)
			// Enough for the cases with the team, whatever the seed.
			f.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
				SELECT id, $1, 'worker', 5 FROM work_orders WHERE number % 3 = 0 ON CONFLICT DO NOTHING`, f.ID("crew"))
			f.WaitForOpenTransactions()
			matched, cases := map[int]int{}, searchCases(f, random, nodes)
			for _, key := range actors {
				actor := f.Actor(key)
				actor.Kind = models.KindPerson // what an identity may read does not depend on its kind
				readable, _ := servicetest.RecordKind{Table: "work_orders", One: f.Records.WorkOrder, Only: "true"}.Naive(t, f, actor, "r.id DESC", map[string]string{})
				for i, c := range cases {
					only := strings.ReplaceAll(c.only, "@actor", actor.IdentityID)
					if actor.OrganizationID != f.Acme.OrganizationID && c.named { // names of another organization
						only = "false"
					}
					var want []string
					for _, row := range servicetest.RowsOf(t, f, `SELECT json_build_object('id', r.id) FROM work_orders r WHERE (`+only+`) AND r.id = ANY ($1) ORDER BY r.id DESC`, readable) {
						want = append(want, servicetest.Read[servicetest.Identified](t, row).ID)
					}
					got := searched(t, f, actor, c.search, []int{7, 30, 100}[random.IntN(3)])
					if !slices.Equal(got, want) {
						t.Fatalf("%+v of %s: %d found, %d readable\n%v\n%v", c.search, key, len(got), len(want), got, want)
					}
					if byDue := c.search; byDue.InProcess() {
						byDue.ByDue = true
						sorted := servicetest.Value[[]string](f, `SELECT coalesce(array_agg(id ORDER BY due_key(target_date, priority, id)), '{}') FROM work_orders WHERE id = ANY ($1)`, want)
						if found := searched(t, f, actor, byDue, []int{7, 30, 100}[random.IntN(3)]); !slices.Equal(found, sorted) {
							t.Fatalf("%+v of %s by due: %d found\n%v\n%v", c.search, key, len(found), found, sorted)
						}
					}
					matched[i] += len(got)
				}
			}
			sections := 0
			for _, key := range actors {
				actor := f.Actor(key)
				actor.Kind = models.KindPerson
				sections += wantQueued(t, f, actor)
				wantLoad(t, f, actor)
			}
			if sections < 10 {
				t.Errorf("the queues have %d sections", sections)
			}
			for i, c := range cases {
				if matched[i] == 0 && c.only != "false" {
					t.Errorf("nothing matches %+v: the case tries nothing", c.search)
				}
			}
		})
	}
}

func TestSearchesThatAreRejected(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE inventory_nodes SET external_id = 'TWICE' WHERE id = ANY ($1)`, s.IDs("roof", "mast"))
	s.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'idn_' || lpad(n::text, 26, '0'), $1, 'team', 'Shift ' || n, now(), now() FROM generate_series(1, 21) n`, s.ID("acme"))
	long := strings.Repeat("é", 401)
	for want, search := range map[string]records.WorkOrderSearch{
		`There is no status "lost"`:                       {Status: "lost"},
		`There is no priority "urgent"`:                   {Priority: "urgent"},
		`by a person or an integration, not by "team"`:    {CreatorKind: models.KindTeam},
		`today, in the week or later, not "someday"`:      {Due: "someday"},
		`Only work orders in process are sorted by due`:   {ByDue: true, Status: models.StatusComplete},
		`from anyone or from me, not from "you"`:          {Review: "you"},
		`A text to search for has at most 400 characters`: {ExternalID: long},
		`A search has at most 40 words`:                   {Text: strings.Repeat("a ", 41)},
		`have "shift" in their name`:                      {Assignee: "shift"},
		`have "Shift" in their name`:                      {Creator: "Shift"},
		`Enter the id`:                                    {Node: "TWICE"},
	} {
		_, err := s.Records.SearchWorkOrders(t.Context(), s.As("ann"), search, "", 50)
		if models.CodeOf(err) != models.CodeInvalidRequest || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, text := range []string{"é" + long[2:len(long)-2], strings.Repeat("a ", 40), "?!"} {
		if _, err := s.Records.SearchWorkOrders(t.Context(), s.As("ann"), records.WorkOrderSearch{Text: text}, "", 50); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// searched returns the ids of all pages of a search, which are the same on the way back.
func searched(t *testing.T, f *servicetest.Fixture, actor store.Actor, search records.WorkOrderSearch, limit int) (ids []string) {
	t.Helper()
	var pages [][]string
	read := func(at string) records.WorkOrderPage {
		t.Helper()
		page, err := f.Records.SearchWorkOrders(t.Context(), actor, search, at, limit)
		if err != nil {
			t.Fatalf("%+v: %v", search, err)
		}
		if page.Stopped {
			t.Fatalf("%+v: the search stops at %s", search, page.SearchedTo)
		}
		return page
	}
	idsOf := func(page records.WorkOrderPage) []string {
		return servicetest.Each(page.Items, func(item records.WorkOrderItem) string { return item.ID })
	}
	page := read("")
	for {
		pages = append(pages, idsOf(page))
		ids = append(ids, idsOf(page)...)
		if page.Next == "" {
			break
		}
		next := read(page.Next)
		if len(next.Items) == 0 {
			break
		}
		page = next
	}
	if counted, err := f.Records.CountWorkOrders(t.Context(), actor, search); err != nil || counted != (records.WorkOrderCount{N: len(ids)}) {
		t.Errorf("%+v: %+v counted, %d found, %v", search, counted, len(ids), err)
	}
	for i := len(pages) - 2; i >= 0; i-- {
		if page.Previous == "" {
			t.Fatalf("%+v: page %d has no previous one", search, i+1)
		}
		if page = read(page.Previous); !slices.Equal(idsOf(page), pages[i]) {
			t.Fatalf("%+v: page %d on the way back has %v, not %v", search, i, idsOf(page), pages[i])
		}
	}
	if page.Previous != "" && len(idsOf(read(page.Previous))) > 0 {
		t.Errorf("%+v: there is something before the first page", search)
	}
	return ids
}

// wantQueued fails the test unless each section of the queue has what its search finds, and
// returns the number of sections.
func wantQueued(t *testing.T, f *servicetest.Fixture, actor store.Actor) int {
	t.Helper()
	queue, err := f.Records.WorkOrderQueue(t.Context(), actor, "Asia/Tokyo")
	servicetest.Must(t, err)
	shown := map[string]bool{}
	for _, section := range queue.Sections {
		found := searched(t, f, actor, section.Search, 100)
		want := slices.DeleteFunc(slices.Clone(found), func(id string) bool { return shown[id] })
		for _, id := range found {
			shown[id] = true
		}
		var got []string
		for _, item := range section.Items {
			got = append(got, item.ID)
			if !slices.Contains(want, item.ID) {
				t.Errorf("the section %+v of %s has %s, want some of %v", section.Search, actor.Name, item.ID, want)
			}
		}
		if len(got) != min(len(want), records.MaxQueued) || section.Count != len(found) || section.More {
			t.Errorf("the section %+v of %s: %d (more: %t), %v, want of %v", section.Search, actor.Name, section.Count, section.More, got, found)
		}
	}
	return len(queue.Sections)
}

// wantLoad fails the test unless the lists have as many work orders as the load says.
func wantLoad(t *testing.T, f *servicetest.Fixture, actor store.Actor) {
	t.Helper()
	load, err := f.Records.WorkOrderLoad(t.Context(), actor, "Asia/Tokyo")
	if code := models.CodeOf(err); err != nil && code != models.CodePermissionDenied {
		t.Fatal(err)
	}
	for _, row := range load.Rows {
		for due, n := range map[records.Due]int{records.DueOverdue: row.Overdue, records.DueToday: row.Today, records.DueWeek: row.Week, "": row.All} {
			search := records.LoadSearch(row.IdentityID, due)
			search.Zone = "Asia/Tokyo"
			if found := searched(t, f, actor, search, 100); len(found) != n {
				t.Errorf("%s has %d %q for %s, the list %v", row.Name, n, due, actor.Name, found)
			}
		}
	}
}

// Someone in more teams than a name may stand for still finds what is assigned to them.
func TestMemberOfManyTeamsFindsAssigned(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'idn_' || lpad(n::text, 26, '0'), $1, 'team', 'Team ' || n, now(), now() FROM generate_series(1, 30) n`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO team_members (team_id, member_id, organization_id)
		SELECT id, $2, organization_id FROM identities WHERE name LIKE 'Team %' AND organization_id = $1`, f.Acme.OrganizationID, f.ID("bob"))
	order := servicetest.Create(t, f)
	f.Exec(`UPDATE work_order_assignees SET identity_id = 'idn_' || lpad('29', 26, '0') WHERE work_order_id = $1 AND role = 'worker'`, order)
	bob := store.Actor{IdentityID: f.ID("bob"), OrganizationID: f.Acme.OrganizationID, Kind: models.KindPerson}
	for _, search := range []records.WorkOrderSearch{{Assignee: records.SearchMe}, {Assignee: records.SearchMe, ToDo: true, ByDue: true}, {Assignee: records.SearchMe, Creator: f.ID("erp")}} {
		if got := searched(t, f, bob, search, 10); !slices.Equal(got, []string{order}) {
			t.Errorf("%+v finds %v, want %s", search, got, order)
		}
	}
	if got := searched(t, f, bob, records.WorkOrderSearch{Creator: records.SearchMe}, 10); got != nil {
		t.Errorf("created by bob: %v", got)
	}
}

// Words that many places share find their work orders together with rare words of titles or
// places. Alone, they are searched for in titles only.
func TestWordsThatManyPlacesHave(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'Room ' || n, 'R-' || n, now(), now() FROM generate_series(1001, 3000) n`, f.Acme.OrganizationID, f.ID("mast"))
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, 'eqp_' || lpad(n::text, 26, '0'), CASE n WHEN 1500 THEN 'Leak' WHEN 1700 THEN 'Leak in the room' ELSE 'Replace' END, 'none', 'open', $2, now(), now()
		FROM generate_series(1001, 3000) n`, f.Acme.OrganizationID, f.ID("erp"))
	f.WaitForOpenTransactions()
	ann := servicetest.Person(t, f, "ann")
	for text, want := range map[string]string{
		"room 1234": "[2234 1234]", "roof mast r 1234": "[2234 1234]", "room leak": "[1700 1500]", "roof leak 1500": "[1500]", "leak": "[1700 1500]",
		"room": "[1700]", "room nowhere": "[]",
	} {
		page, err := f.Records.SearchWorkOrders(t.Context(), ann, records.WorkOrderSearch{Text: text}, "", 50)
		servicetest.Must(t, err)
		got := servicetest.Each(page.Items, func(item records.WorkOrderItem) string { return strings.TrimLeft(item.ID, "wo_0") })
		servicetest.Expect(t, text, fmt.Sprint(got), want)
	}
}

// Who changes a title changes the words by which the work order is found.
func TestAWorkOrderIsFoundByItsNewTitle(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"bob"}, nil)
	servicetest.Must(t, updates(s, "erp", id, records.WorkOrderPatch{Title: sent("Oil the door")}))
	for text, want := range map[string][]string{"oil": {id}, "filter": nil} {
		if got := searched(t, s.Fixture, s.As("ann"), records.WorkOrderSearch{Text: text}, 10); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", text, got, want)
		}
	}
}
