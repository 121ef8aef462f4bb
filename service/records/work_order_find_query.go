package records

import (
	"cmp"
	"math"
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

// candidateRows selects rows of a source: source and status name it, from has x.id, x.key and
// others.
func candidateRows(source, status, how string, cut int, from string) string {
	return `SELECT ` + source + ` AS source, ` + status + ` AS st, '` + how + `' AS how, ` + strconv.Itoa(cut) + ` AS cut, x.id, x.key FROM ` + from
}

// collected limits the candidates of a source whose index has no due_key: by due the newest of
// them are sorted.
func (f *workOrderFinder) collected(looked int) int {
	if f.search.ByDue {
		return maxSorted
	}
	return looked
}

// byID selects rows by index in the order of ids, from the position of the page; by due they are
// the newest, without keys. id is the column.
func (f *workOrderFinder) byID(id, rows, past string, cut int) string {
	if f.search.ByDue {
		return `(SELECT ` + id + ` AS id, NULL::text AS key FROM ` + rows + ` ORDER BY ` + id + ` DESC LIMIT ` + strconv.Itoa(cut) + `) x`
	}
	_, direction := f.order()
	return `(SELECT ` + id + ` AS id, ` + id + ` AS key FROM ` + rows + past + ` ORDER BY ` + id + ` ` + direction + ` LIMIT ` + strconv.Itoa(cut) + `) x`
}

// firstOf selects the first work orders whose columns have the values. An index has them in
// the order of ids. A comparison of the id with them says nothing new: otherwise Postgres might
// read the ids of all organizations, which looks as cheap if the statistics know only one value.
func (f *workOrderFinder) firstOf(columns, values string, cut int) string {
	past, _ := f.order()
	return f.byID(`w.id`, `work_orders w WHERE (`+columns+`) = (`+values+`)`, ` AND (`+columns+`, w.id) `+past+` (`+values+`, @after)`, cut)
}

// assignedTo selects the first work orders of the identity. The condition names the index.
func (f *workOrderFinder) assignedTo(identity string, cut int) string {
	past, _ := f.order()
	some := `position >= 0`
	if f.search.InProcess() {
		some = `NOT closed`
	}
	return f.byID(`work_order_id`, `work_order_assignees WHERE identity_id = `+identity+` AND `+some+` AND `+relationHolds("work_order_id"), ` AND work_order_id `+past+` @after`, cut)
}

// dueRanges are the ranges of due_key that a page is about.
const dueRanges = ` CROSS JOIN unnest(@lows::text[], @highs::text[]) due (low, high)`

// dueFirst selects the work orders in process of the range due that are due first. column has
// the value, and an index has them in this order.
func (f *workOrderFinder) dueFirst(column, value string, cut int) string {
	_, direction := f.order()
	key := column + ` || ` + dueKey
	return `(SELECT id, ` + dueKey + ` AS key FROM work_orders w
		WHERE ` + inProcess + ` AND ` + key + ` > ` + value + ` || due.low AND ` + key + ` < ` + value + ` || due.high
		ORDER BY ` + key + ` ` + direction + ` LIMIT ` + strconv.Itoa(cut) + `) x`
}

// sources select the candidates of the search, of each source at most looked.
func (f *workOrderFinder) sources(looked int, statuses []string) []string {
	const mine = `actor_identities a CROSS JOIN LATERAL `
	some := f.collected(looked)
	inactive := candidateRows(`i.id`, `''`, isOther, some, `(`+inactiveIdentities+`) i CROSS JOIN LATERAL `+f.assignedTo("i.id", some))
	switch {
	case f.queued && !f.manages:
		return []string{f.assignedToActor(some)}
	case f.searchesWords() && !f.words.many:
		return f.wordCandidates(looked, statuses)
	case f.queued || f.search.NoOneCan:
		return append(f.readableCandidates(looked, statuses), inactive)
	case f.search.Incoming:
		return []string{candidateRows(`'incoming'`, `''`, isReadable, some, f.assignedTo("@organization", some)) + ` WHERE ` + access.IncomingWorkOrders("@actor")}
	case f.search.Assignee == SearchMe || f.search.Assignee == "" && f.search.Review == ReviewByMe:
		return []string{candidateRows(`a.identity_id`, `''`, isReadable, some, mine+f.assignedTo("a.identity_id", some)) +
			` WHERE a.actor_id = @actor AND a.identity_id <> a.organization_id`}
	case f.search.Assignee != "":
		return []string{candidateRows(`i`, `''`, isOther, some, `unnest(@assignees::text[]) i CROSS JOIN LATERAL `+f.assignedTo("i", some))}
	case f.search.Creator != "" && !f.search.ByDue:
		return []string{candidateRows(`i`, `''`, isOther, some, `unnest(@creators::text[]) i CROSS JOIN LATERAL `+f.firstOf("w.created_by", "i", some))}
	}
	return f.readableCandidates(looked, statuses)
}

// assignedToActor selects the candidates that are assigned to what the actor reads as.
func (f *workOrderFinder) assignedToActor(cut int) string {
	return candidateRows(`a.identity_id`, `''`, isReadable, cut, `actor_identities a CROSS JOIN LATERAL `+f.assignedTo("a.identity_id", cut)) + ` WHERE a.actor_id = @actor AND ` + access.ReadsAs("@actor")
}

// ownCandidates select the candidates that the actor may read wherever they are.
func (f *workOrderFinder) ownCandidates(looked int) []string {
	some := f.collected(looked)
	sources := []string{f.assignedToActor(some)}
	if f.access.OnlyCreates {
		sources = append(sources, candidateRows(`'created'`, `''`, wasCreated, some, f.firstOf("w.created_by", "@actor", some)))
	}
	return sources
}

// readableCandidates select the candidates of all that the actor may read.
func (f *workOrderFinder) readableCandidates(looked int, statuses []string) []string {
	return append(f.ownCandidates(looked), f.nodeCandidates(looked, statuses)...)
}

// nodeCandidates select the candidates of the nodes that the actor may read: node by node if
// they are few, else of the organization.
func (f *workOrderFinder) nodeCandidates(looked int, statuses []string) []string {
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
		return []string{f.each(`'all'`, isOnNode, looked, statuses, `(SELECT) one`, `w.organization_id`, `@organization`)}
	}
	return []string{f.onNodes(nodes, how, looked, models.DefaultPageSize, statuses)}
}

// onNodes selects the candidates of each node. The nodes share what may be looked at, but each
// has least.
func (f *workOrderFinder) onNodes(nodes []string, how string, looked, least int, statuses []string) string {
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	f.Args["sourcenodes"] = nodes
	if f.counts {
		least = looked
	}
	// Nodes that were not cut before have little: the others share what may be looked at.
	cut, busy := looked, cmp.Or(f.cuts, len(nodes))
	for cut > least && cut*busy > 2*looked { // by halves, so that queries differ little
		cut /= 2
	}
	return f.each(`visible`, how, cut, statuses, `unnest(@sourcenodes::text[]) visible`, `w.inventory_id`, `visible`)
}

// each selects the first candidates whose column has the value of each row of from, of each
// requested status or of each range of dates.
func (f *workOrderFinder) each(source, how string, cut int, statuses []string, from, column, value string) string {
	switch {
	case f.search.ByDue:
		return candidateRows(source, `due.low`, how, cut, from+dueRanges+` CROSS JOIN LATERAL `+f.dueFirst(column, value, cut))
	case statuses != nil:
		f.Args["statuses"] = statuses
		return candidateRows(source, `requested`, how, cut, from+` CROSS JOIN unnest(@statuses::text[]) requested CROSS JOIN LATERAL `+
			f.firstOf(column+`, w.status`, value+`, requested`, cut))
	}
	return candidateRows(source, `''`, how, cut, from+` CROSS JOIN LATERAL `+f.firstOf(column, value, cut))
}

// readable is the condition that the actor may read the candidate c, whose work order is w.
func (f *workOrderFinder) readable() string {
	onReadNode := lists.AmongGranted("w.inventory_id")
	if f.access.Nodes != nil {
		f.Args["nodes"] = f.access.Nodes
		onReadNode = `w.inventory_id = ANY (@nodes)`
	}
	created := access.CreatedReadably("w", "@actor", access.OnNode(models.GrantWorkOrdersCreate, "w.inventory_id", "@actor"))
	inAnyWay := `(` + onReadNode + ` OR ` + created + ` OR ` + access.ReadableByAssignment("w", "@actor") + `)`
	return `(c.` + isReadable + ` OR c.` + wasCreated + ` AND ` + f.Created + ` OR c.` + isOnNode + ` AND ` + onReadNode + ` OR c.` + isOther + ` AND ` + inAnyWay + `)`
}

// conditions are what a work order w of the search meets.
func (f *workOrderFinder) conditions(statuses []string) string {
	return strings.Join(append(f.filters(statuses), f.readable()), "\n\t\tAND ")
}

// filters are the conditions of the search on w.
func (f *workOrderFinder) filters(statuses []string) []string {
	var all []string
	add := func(condition, name string, value any) {
		all = append(all, condition)
		if name != "" {
			f.Args[name] = value
		}
	}
	if statuses != nil {
		add(`w.status = ANY (@statuses`+f.section+`)`, "statuses"+f.section, statuses)
	}
	if f.search.Priority != "" {
		add(`w.priority = @priority`, "priority", string(f.search.Priority))
	}
	if f.node != "" && f.search.OnlyNode {
		add(`w.inventory_id = @node`, "", nil)
	} else if f.node != "" {
		add(`(SELECT true FROM inventory_closure b WHERE b.node_id = w.inventory_id AND b.ancestor_id = @node LIMIT 1)`, "", nil)
	}
	if f.search.Due != "" {
		add(f.dates(), "", nil)
	}
	if f.search.NoOneCan {
		add(noOneCan, "", nil)
	}
	if f.search.Incoming {
		add(Incoming, "", nil)
	}
	if f.search.Assignee != "" {
		role := ``
		if f.search.ToDo {
			role = ` AND x.role = 'worker'`
		}
		add(`(SELECT true FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = ANY (@assignees)`+role+` LIMIT 1)`, "", nil)
	}
	if f.search.Review == ReviewByMe {
		add(`(SELECT true FROM work_order_assignees x JOIN actor_identities a ON a.identity_id = x.identity_id AND a.actor_id = @actor
			WHERE x.work_order_id = w.id AND x.role = 'consultant' AND a.identity_id <> a.organization_id LIMIT 1)
			AND w.completed_by IS DISTINCT FROM @actor`, "", nil)
	}
	if f.search.Creator != "" {
		add(`w.created_by = ANY (@creators)`, "", nil)
	}
	if f.search.Customer != "" {
		add(`w.organization_id IN (SELECT s.customer_id FROM service_companies s JOIN identities i ON i.id = s.customer_id
			WHERE s.company_id = @organization AND i.words @@ @customer::tsquery) AND `+access.IncomingWorkOrders("@actor"),
			"customer", models.WordQuery(models.SearchWords(f.search.Customer), ""))
	}
	if f.search.CreatorKind != "" {
		add(`(SELECT i.kind FROM identities i WHERE i.id = w.created_by) = @kind`, "kind", string(f.search.CreatorKind))
	}
	if f.searchesWords() {
		add(f.haveWords(), "", nil)
	}
	return all
}

// with begins a query of the search.
func (f *workOrderFinder) with() string {
	if f.access.Nodes == nil {
		return `WITH granted AS MATERIALIZED (` + f.Granted() + `), `
	}
	return "WITH "
}

// candidatesOf are the common table expressions that pages begin with.
func (f *workOrderFinder) candidatesOf(looked int, statuses []string) string {
	first, rows := f.with(), strings.Join(f.sources(looked, statuses), unionAll)
	if !f.search.ByDue {
		return first + `scanned AS MATERIALIZED (
		` + rows + `
	)`
	}
	// Rows without a key are all that their source has: they cut nothing off.
	return first + `gathered AS MATERIALIZED (
		` + rows + `
	), scanned AS MATERIALIZED (
		SELECT * FROM gathered WHERE key IS NOT NULL
		UNION ALL
		SELECT g.source, g.st, g.how, ` + strconv.Itoa(math.MaxInt32) + `, g.id, w.key FROM gathered g
		CROSS JOIN LATERAL (SELECT ` + dueKey + ` AS key, ` + inProcess + ` AS open FROM ` + lookedUp(`g.id`) + ` w) w
		WHERE g.key IS NULL AND w.open AND w.key > (@lows::text[])[1] AND w.key < (@highs::text[])[cardinality(@highs::text[])]
	)`
}

// lookedUp selects a work order by its id. Only the primary key has a range of ids in their
// order: in a plan made while the table was empty, an equal id looked as cheap in an index
// that has it after other columns, all of which was then read for each.
func lookedUp(id string) string {
	return `(SELECT * FROM work_orders WHERE id >= ` + id + ` AND id <= ` + id + ` ORDER BY work_orders.id LIMIT 1)`
}

const unionAll = "\n\t\tUNION ALL\n\t\t"

// waysOf are the columns of a candidate that decide how it is checked.
const waysOf = `bool_or(how = '` + isReadable + `') AS ` + isReadable + `, bool_or(how = '` + wasCreated + `') AS ` + wasCreated +
	`, bool_or(how = '` + isOnNode + `') AS ` + isOnNode + `, bool_or(how = '` + isOther + `') AS ` + isOther

// shownWorkOrders selects what lists show of the work orders of the query of, which has their
// ids and more columns.
func shownWorkOrders(of, more string) string {
	return `, page AS MATERIALIZED (
		SELECT ` + listedWorkOrderColumns + `,
			` + access.CustomerOf("w", "@actor", "@organization") + ` AS customer` + more + `
		FROM ` + of + ` f CROSS JOIN LATERAL ` + lookedUp(`f.id`) + ` w
	)
	SELECT page.*, ` + lists.NodesOfPage + `, ` + lists.PeopleOfPage("true", peopleOfPage) + ` FROM page`
}

// foundSQL begins a query with the first matches of the search: at most limit, until where a
// source was cut.
func (f *workOrderFinder) foundSQL(looked, limit int) string {
	statuses := f.search.statuses()
	nearest, furthest, end, within := `max`, `min`, `''`, `>=`
	if f.ascends() {
		nearest, furthest, end, within = `min`, `max`, `'`+lastKey+`'`, `<=`
	}
	_, direction := f.order()
	return f.candidatesOf(looked, statuses) + `, frontier AS (
		SELECT coalesce(` + nearest + `(reach), ` + end + `) AS key, count(*) AS cuts FROM (SELECT ` + furthest + `(key) AS reach FROM scanned GROUP BY source, st HAVING count(*) >= min(cut)) reached
	), found AS MATERIALIZED (
		SELECT c.id, c.key FROM (
			SELECT id, min(key) AS key, ` + waysOf + ` FROM scanned WHERE key ` + within + ` (SELECT key FROM frontier) GROUP BY id ORDER BY min(key) ` + direction + ` OFFSET 0) c
		CROSS JOIN LATERAL ` + lookedUp(`c.id`) + ` w
		WHERE ` + f.conditions(statuses) + `
		ORDER BY c.key ` + direction + ` LIMIT ` + strconv.Itoa(limit) + `
	)`
}

// pageSQL builds the query of a page of at most limit rows and one more, if there is one, and
// a last one where a source was cut.
func (f *workOrderFinder) pageSQL(looked, limit int) string {
	id := `key`
	if f.search.ByDue {
		id = `substr(key, ` + strconv.Itoa(dueKeyPrefix+1) + `)`
	}
	_, direction := f.order()
	return f.foundSQL(looked, limit+1) +
		shownWorkOrders(`(SELECT id, key, 0 AS cuts FROM found UNION ALL SELECT `+id+`, key, cuts FROM frontier WHERE cuts > 0)`, `, f.cuts, f.key`) + `
	ORDER BY cuts, key ` + direction
}

// queueFound adds a query of rows of the search, unless nothing can match.
func queueFound[Row any](pipeline *pgx.Batch, f *workOrderFinder, into *[]Row, sql string) {
	if !f.nothing {
		store.QueueAll(pipeline, into, sql, f.Args)
	}
}
