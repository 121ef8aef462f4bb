package records

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// How a candidate is checked.
const (
	isReadable = "seen"    // its source has only what the actor may read
	wasCreated = "created" // by the actor, who may create some there
	isOnNode   = "node"    // on a node that the actor may read
	isOther    = "other"   // in any of the ways
)

// candidateRows selects rows of a source: source and status name it, from has x.id and others.
func candidateRows(source, status, how string, cut int, from string) string {
	return `SELECT ` + source + ` AS source, ` + status + ` AS st, '` + how + `' AS how, ` + strconv.Itoa(cut) + ` AS cut, x.id FROM ` + from
}

// newest selects the newest work orders whose columns have the values, after the position of
// the page. An index has them in this order.
func newest(columns, values string, cut int) string {
	return `(SELECT id FROM work_orders {w} WHERE ` + lists.PageOrder{}.Along(columns, values) + ` ORDER BY {w}.id DESC LIMIT ` + strconv.Itoa(cut) + `) x`
}

// newestOf selects the newest work orders of the identity, after the position of the page.
func newestOf(identity string, cut int) string {
	return `(SELECT work_order_id AS id FROM work_order_assignees WHERE identity_id = ` + identity + ` AND position >= 0 AND ` + relationHolds("work_order_id") + ` AND work_order_id < @after
		ORDER BY work_order_id DESC LIMIT ` + strconv.Itoa(cut) + `) x`
}

// sources select the candidates of the search, of each source at most looked.
func (f *workOrderFinder) sources(looked int, statuses []string) []string {
	const mine = `actor_identities a CROSS JOIN LATERAL `
	switch {
	case f.matches != nil:
		f.Args["matches"] = f.matches
		return []string{candidateRows(`'words'`, `''`, isOther, 2*maxWordMatches, `unnest(@matches::text[]) x (id) WHERE x.id < @after`)}
	case f.search.NoOneCan:
		return []string{candidateRows(`i.id`, `''`, isOther, looked, `(`+inactiveIdentities+`) i CROSS JOIN LATERAL `+newestOf("i.id", looked))}
	case f.search.Incoming:
		return []string{candidateRows(`'incoming'`, `''`, isReadable, looked, newestOf("@organization", looked)) + ` WHERE ` + access.IncomingWorkOrders}
	case f.search.Assignee == SearchMe || f.search.Assignee == "" && f.search.Review == ReviewByMe:
		return []string{candidateRows(`a.identity_id`, `''`, isReadable, looked, mine+newestOf("a.identity_id", looked)) +
			` WHERE a.actor_id = @actor AND a.identity_id <> a.organization_id`}
	case f.search.Assignee != "":
		return []string{candidateRows(`i`, `''`, isOther, looked, `unnest(@assignees::text[]) i CROSS JOIN LATERAL `+newestOf("i", looked))}
	case f.search.Creator != "":
		return []string{candidateRows(`i`, `''`, isOther, looked, `unnest(@creators::text[]) i CROSS JOIN LATERAL `+newest("{w}.created_by", "i", looked))}
	}
	sources := []string{candidateRows(`a.identity_id`, `''`, isReadable, looked, mine+newestOf("a.identity_id", looked)) + ` WHERE a.actor_id = @actor AND ` + access.ReadsAs}
	if f.access.OnlyCreates {
		sources = append(sources, candidateRows(`'created'`, `''`, wasCreated, looked, newest("{w}.created_by", "@actor", looked)))
	}
	return append(sources, f.nodeCandidates(looked, statuses)...)
}

// nodeCandidates select the candidates of the nodes that the actor may read: node by node if
// they are few, else of the organization.
func (f *workOrderFinder) nodeCandidates(looked int, statuses []string) []string {
	status, each, more, requested := `''`, ``, ``, ``
	if statuses != nil {
		f.Args["statuses"] = statuses
		status, each, more, requested = `requested`, ` CROSS JOIN unnest(@statuses::text[]) requested`, `, {w}.status`, `, requested`
	}
	nodes, how := f.access.Nodes, isReadable
	if f.search.OnlyNode && f.node != "" {
		if nodes == nil {
			how = isOnNode
		} else if !slices.Contains(nodes, f.node) {
			return nil
		}
		nodes = []string{f.node}
	}
	if nodes == nil {
		return []string{candidateRows(`'all'`, status, isOnNode, looked, `(SELECT) one`+each+` CROSS JOIN LATERAL `+newest(`{w}.organization_id`+more, `@organization`+requested, looked))}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	f.Args["sourcenodes"] = nodes
	// Nodes that were not cut before have little: the others share what may be looked at.
	cut, busy := looked, cmp.Or(f.cuts, len(nodes))
	for cut > models.DefaultPageSize && cut*busy > 2*looked { // by halves, so that queries differ little
		cut /= 2
	}
	return []string{candidateRows(`visible`, status, how, cut, `unnest(@sourcenodes::text[]) visible`+each+` CROSS JOIN LATERAL `+newest(`{w}.inventory_id`+more, `visible`+requested, cut))}
}

// readable is the condition that the actor may read the candidate c, whose work order is {w}.
func (f *workOrderFinder) readable() string {
	onReadNode := strings.ReplaceAll(lists.AmongGranted, "{node}", "{w}.inventory_id")
	if f.access.Nodes != nil {
		f.Args["nodes"] = f.access.Nodes
		onReadNode = `{w}.inventory_id = ANY (@nodes)`
	}
	inAnyWay := access.WorkOrderReadable(func(grant models.Grant) string {
		if grant == models.GrantWorkOrdersRead {
			return onReadNode
		}
		return access.OnNode(grant)
	})
	return `(c.` + isReadable + ` OR c.` + wasCreated + ` AND ` + f.Created + ` OR c.` + isOnNode + ` AND ` + onReadNode + ` OR c.` + isOther + ` AND ` + inAnyWay + `)`
}

// conditions are the filters of the search on {w}.
func (f *workOrderFinder) conditions(statuses []string) string {
	var all []string
	add := func(condition, name string, value any) {
		all = append(all, condition)
		if name != "" {
			f.Args[name] = value
		}
	}
	if statuses != nil {
		add(`{w}.status = ANY (@statuses)`, "statuses", statuses)
	}
	if f.search.Priority != "" {
		add(`{w}.priority = @priority`, "priority", string(f.search.Priority))
	}
	if f.node != "" && f.search.OnlyNode {
		add(`{w}.inventory_id = @node`, "", nil)
	} else if f.node != "" {
		add(`(SELECT true FROM inventory_closure b WHERE b.node_id = {w}.inventory_id AND b.ancestor_id = @node LIMIT 1)`, "", nil)
	}
	if f.search.Overdue {
		add(`{w}.target_date < @now`, "now", f.now)
	}
	if f.search.NoOneCan {
		add(noOneCan, "", nil)
	}
	if f.search.Incoming {
		add(Incoming, "", nil)
	}
	if f.search.ExternalID != "" {
		add(`{w}.external_id = @external`, "external", f.search.ExternalID)
	}
	if f.search.Assignee != "" {
		role := ``
		if f.search.ToDo {
			role = ` AND x.role = 'worker'`
		}
		add(`(SELECT true FROM work_order_assignees x WHERE x.work_order_id = {w}.id AND x.identity_id = ANY (@assignees)`+role+` LIMIT 1)`, "", nil)
	}
	if f.search.Review == ReviewByMe {
		add(`(SELECT true FROM work_order_assignees x JOIN actor_identities a ON a.identity_id = x.identity_id AND a.actor_id = @actor
			WHERE x.work_order_id = {w}.id AND x.role = 'consultant' AND a.identity_id <> a.organization_id LIMIT 1)`, "", nil)
	}
	if f.search.Creator != "" {
		add(`{w}.created_by = ANY (@creators)`, "", nil)
	}
	if f.search.CreatorKind != "" {
		add(`(SELECT i.kind FROM identities i WHERE i.id = {w}.created_by) = @kind`, "kind", string(f.search.CreatorKind))
	}
	if f.searchesWords() && f.matches == nil {
		add(`(SELECT x.words FROM work_order_words x WHERE x.id = {w}.id) @@ @words::tsquery`, "", nil)
	}
	return strings.Join(append(all, f.readable()), "\n\t\tAND ")
}

// candidatesOf are the common table expressions that all queries of the search begin with.
func (f *workOrderFinder) candidatesOf(looked int, statuses []string) string {
	first := "WITH "
	if f.access.Nodes == nil {
		first += `granted AS MATERIALIZED (` + f.Granted() + `), `
	}
	return first + `scanned AS MATERIALIZED (
		` + strings.Join(f.sources(looked, statuses), "\n\t\tUNION ALL\n\t\t") + `
	)`
}

// lookedUp selects a work order by its id. Only the primary key has a range of ids in their
// order: in a plan made while the table was empty, an equal id looked as cheap in an index
// that has it after other columns, all of which was then read for each.
func lookedUp(id string) string {
	return `(SELECT * FROM work_orders WHERE id >= ` + id + ` AND id <= ` + id + ` ORDER BY work_orders.id LIMIT 1)`
}

// waysOf are the columns of a candidate that decide how it is checked.
const waysOf = `bool_or(how = '` + isReadable + `') AS ` + isReadable + `, bool_or(how = '` + wasCreated + `') AS ` + wasCreated +
	`, bool_or(how = '` + isOnNode + `') AS ` + isOnNode + `, bool_or(how = '` + isOther + `') AS ` + isOther

// shownWorkOrders selects what lists show of the work orders of the query of, which has their
// ids and more columns.
func shownWorkOrders(of, more string) string {
	return `, page AS MATERIALIZED (
		SELECT ` + strings.Replace(WorkOrderColumns, store.InventoryOf, "NULL::bytea AS inventory", 1) + `,
			` + store.Fill(access.CustomerOf, "organization", "@organization") + ` AS customer` + more + `
		FROM ` + of + ` f CROSS JOIN LATERAL ` + lookedUp(`f.id`) + ` {w}
	)
	SELECT page.*, ` + lists.NodesOfPage + ` FROM page`
}

// pageSQL builds the query of a page of at most limit rows and one more, if there is one, and
// a last one where a source was cut.
func (f *workOrderFinder) pageSQL(looked, limit int) string {
	statuses := f.search.statuses()
	return f.candidatesOf(looked, statuses) + `, frontier AS (
		SELECT coalesce(max(low), '') AS id, count(*) AS cuts FROM (SELECT min(id) AS low FROM scanned GROUP BY source, st HAVING count(*) >= min(cut)) reached
	), found AS MATERIALIZED (
		SELECT c.id FROM (
			SELECT id, ` + waysOf + ` FROM scanned WHERE id >= (SELECT id FROM frontier) GROUP BY id ORDER BY id DESC OFFSET 0) c
		CROSS JOIN LATERAL ` + lookedUp(`c.id`) + ` {w}
		WHERE ` + f.conditions(statuses) + `
		ORDER BY c.id DESC LIMIT ` + strconv.Itoa(limit+1) + `
	)` + shownWorkOrders(`(SELECT id, 0 AS cuts FROM found UNION ALL SELECT id, cuts FROM frontier WHERE cuts > 0)`, `, f.cuts`) + `
	ORDER BY cuts, id DESC`
}

// queueFound adds a query of rows of the search, unless nothing can match.
func queueFound[Row any](pipeline *pgx.Batch, f *workOrderFinder, into *[]Row, sql string) {
	if f.nothing {
		return
	}
	query, args := store.Numbered(store.Fill(sql, "w", "w", "actor", "@actor", "people", "true"), f.Args)
	store.QueueAll(pipeline, into, query, args...)
}
