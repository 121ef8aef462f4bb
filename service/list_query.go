package service

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// narrowLimit is the number of visible nodes up to which a list is read node by
// node. Above it, the list is read in its own order and each record's node is
// checked. The condition is the same, only the plan differs.
const narrowLimit = 300

// listQuery builds the SQL of a list, which is the union of its sources. {w} is the
// table's row.
type listQuery struct {
	table   string
	columns string
	// showsNodes is true if the records show the node that they are on.
	showsNodes bool
	// positions is a table of the rows' places in the list of changes, "" if the table
	// itself has an index of them.
	positions string
	actor     Actor
	args      pgx.NamedArgs
	// filters are ANDed to every source. hasValues is true if one of them has a value of which
	// there may be few or many.
	filters   []string
	hasValues bool
	// scans are conditions on {w}, each of which is read by index in the list's order. In
	// a list of changes {w} is a row of positions, which has the columns that decide who may
	// read a record.
	scans []string
	// sources are rows read otherwise: what follows SELECT, without its order and limit.
	sources []func(o pageOrder) string
	// only is the only source of the list by ids, nil if it has those above. In a list of
	// changes, and in one of ids, onlyIf is a filter instead.
	only   func(o pageOrder) string
	onlyIf string
	// grant makes a node's rows visible, "" if nodes do not matter. node is the column that
	// names the node.
	grant models.Grant
	node  string
	// create lets an actor see the rows that it created on a node, without grant: created is
	// the condition. Rows of an actor that always has both are found by their nodes.
	create  models.Grant
	created string
	// below restricts the visible nodes to this one and those below it.
	below string
	// all makes every row of the actor's organization visible: to operators.
	all bool
	// statuses are those requested. Indexes have each of them in the order of ids, but not
	// several together.
	statuses []string
	// creator restricts the list to what it created; an index has that in the order of ids.
	creator string
	// readable is the condition that the actor may read {w}.
	readable string
	// ids are those requested, nil for all.
	ids []string
	// digest identifies the list in its tokens.
	digest string
}

// newListQuery begins a list of the table's rows. filter holds the request's
// filters, to which cursors and sync tokens belong.
func newListQuery(table, columns string, actor Actor, filter any) *listQuery {
	return &listQuery{
		table: table, columns: columns, actor: actor, digest: digestOf(table, cmp.Or(actor.IdentityID, actor.OrganizationID), filter),
		args: pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID},
	}
}

// where adds a filter with one named argument.
func (q *listQuery) where(condition, name string, value any) {
	q.filters, q.hasValues = append(q.filters, condition), true
	q.args[name] = value
}

// scan makes the rows that meet the condition readable: an index has them in the list's order.
func (q *listQuery) scan(condition string) {
	q.scans, q.readable = append(q.scans, condition), condition
}

// source adds rows: what follows SELECT, without its order and limit. It must not return
// a row twice: duplicates are removed only after each source was cut to the page size.
func (q *listQuery) source(rows func(o pageOrder) string) { q.sources = append(q.sources, rows) }

// narrowBy adds the records of the nodes on which the actor has the grant, for an operator
// all of the organization. They show their nodes.
func (q *listQuery) narrowBy(grant models.Grant, below string) {
	q.showsNodes, q.readable = true, "{w}.organization_id = @organization"
	if q.all = q.actor.isOperator(); !q.all {
		q.grant, q.below, q.node, q.readable = grant, below, "{w}.inventory_id", onNode(grant)
	}
}

// createdBy adds the records that the actor created on nodes where it has the grant.
func (q *listQuery) createdBy(grant models.Grant) {
	q.create, q.created = grant, onNode(grant)
}

// anyGrant is the grant that an actor has on a node with any other.
const anyGrant models.Grant = "any"

// visibleNodes adds the nodes that the actor sees.
func (q *listQuery) visibleNodes() { q.grant, q.node, q.readable = anyGrant, "{w}.id", visibleNode }

// ofStatuses restricts the list to the statuses, if any.
func (q *listQuery) ofStatuses(statuses []string) {
	if len(statuses) > 0 {
		q.statuses = statuses
		q.filters = append(q.filters, "{w}.status = ANY (@statuses)")
		q.args["statuses"] = statuses
	}
}

// ofCreator restricts the list to what the identity created, unless it is "".
func (q *listQuery) ofCreator(id string) {
	if id != "" {
		q.creator = id
		q.where("{w}.created_by = @creator", "creator", id)
	}
}

// ofIDs restricts the list to these records. They are looked up by their ids, and each is
// checked as a single read checks it, so the nodes that the actor sees do not matter.
func (q *listQuery) ofIDs(ids []string) {
	q.ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	q.args["ids"] = q.ids
	q.grant, q.create = "", ""
	q.digest = digestOf(q.table, q.digest, q.ids)
}

const viewQuery = `
	SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin_horizon,
		coalesce((SELECT access_epoch FROM integrations WHERE id = @actor), 0) AS access_epoch,
		CASE WHEN @grant <> '' THEN (
			SELECT CASE WHEN count(*) <= @narrow::bigint THEN coalesce(array_agg(seen.node_id::text), '{}') END
			FROM (SELECT r.node_id FROM node_rights r
				WHERE r.actor_id = @actor AND (@grant = '` + string(anyGrant) + `' OR @grant = ANY (r.grants))
					AND (@below = '' OR r.node_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @below))
				LIMIT @narrow::bigint + 1) seen) END AS nodes,
		EXISTS (SELECT FROM actor_identities a
			JOIN assignments g ON g.identity_id = a.identity_id AND g.organization_id = a.organization_id
			JOIN permission_definitions d ON d.id = g.definition_id
			WHERE a.actor_id = @actor AND @create = ANY (d.grants) AND @grant <> ALL (d.grants)) AS only_creates,
		coalesce(newest.nonce::text, '') AS watermark_nonce,
		coalesce(newest.xid, '0') AS watermark_xid,
		coalesce(newest.at < clock_timestamp() - @interval::interval, true) AS watermark_is_old,
		(SELECT xid FROM watermarks WHERE nonce = @token::uuid) AS token_xid,
		coalesce((SELECT xid FROM watermarks WHERE at <= @before::timestamptz ORDER BY at DESC LIMIT 1), '0') AS since_xid
	FROM (SELECT) one LEFT JOIN LATERAL (SELECT * FROM watermarks ORDER BY xid DESC LIMIT 1) newest ON true`

// queueVisibility adds the query of what must be known before the page.
func (q *listQuery) queueVisibility(pipeline *pgx.Batch, into *visibility, start *pageStart) {
	args := pgx.NamedArgs{
		"actor": q.actor.IdentityID, "grant": string(q.grant), "create": string(q.create), "below": q.below, "narrow": narrowLimit,
		"interval": watermarkInterval, "token": nil, "before": nil,
	}
	if start.token != nil && start.token.Watermark != "" {
		args["token"] = start.token.Watermark
	}
	if start.since != nil {
		args["before"] = start.since.Add(-watermarkMargin)
	}
	sql, values := numbered(viewQuery, args)
	queueOne(pipeline, into, pgx.ErrNoRows, sql, values...)
}

// pageOrder is what the sources of a page have in common.
type pageOrder struct {
	// keys are the columns that the order needs.
	keys, order string
	// inPage is the order of the columns of the page.
	inPage string
	// changes is true if the order is the order of changes.
	changes bool
	// rows is the table that is scanned.
	rows string
	// scanned restricts {w}, a row of rows, to the page.
	scanned string
	// after is the part of scanned about {w}.id, if the order is the order of ids.
	after string
}

// maxID sorts after every id.
const maxID = "~"

// order returns the order of the page's list and where the page begins.
func (q *listQuery) order(v visibility, start *pageStart) pageOrder {
	conditions, filters := q.filters, ""
	if q.onlyIf != "" && (start.changes || q.ids != nil) {
		conditions = append(slices.Clip(conditions), q.onlyIf)
	}
	if len(conditions) > 0 {
		filters = " AND " + strings.Join(conditions, " AND ")
	}
	if !start.changes {
		begin := " AND {w}.id < @after"
		q.args["after"] = cmp.Or(start.at.ID, maxID)
		return pageOrder{keys: "{w}.id", order: "{w}.id DESC", inPage: "id DESC", rows: q.table, scanned: filters + begin, after: begin}
	}
	begin := " AND {w}.changed_xid < @horizon AND ({w}.changed_xid, {w}.id) > (@xid, @after)"
	q.args["horizon"], q.args["xid"], q.args["after"] = v.XminHorizon, start.at.Xid, start.at.ID
	const key = "{w}.changed_xid, {w}.id"
	o := pageOrder{keys: key, order: key, inPage: "xid, id", changes: true, rows: q.table, scanned: filters + begin}
	if q.positions != "" && q.ids == nil {
		o.rows = q.positions
		if filters != "" { // positions lacks their columns
			filters = ` AND (SELECT true FROM ` + q.table + ` r WHERE r.id = {w}.id` + fill(filters, "w", "r") + ` LIMIT 1)`
		}
		o.scanned = begin + filters
	}
	return o
}

// along is the condition that the columns have the values, for rows that an index of them
// has in the page's order. In the order of ids it compares the id with them, which says
// nothing new: otherwise Postgres might read the ids of all organizations, which looks as
// cheap if the statistics know only one value.
func (o pageOrder) along(columns, values string) string {
	same := `(` + columns + `) = (` + values + `)`
	if o.changes {
		return same
	}
	return same + ` AND (` + columns + `, {w}.id) < (` + values + `, @after)`
}

// sourceRows are to how many rows a source is cut: of one more than the sizes of most
// pages and of the largest. Postgres does not know how many a parameter asks for.
var sourceRows = []int{51, models.MaxPageSize + 1}

// sql builds the query of a page of at most limit rows and one more, if there is one.
// Each source is cut before the union, so that none is read to its end.
func (q *listQuery) sql(v visibility, start *pageStart, limit int) string {
	q.args["rows"] = limit + 1
	size, _ := slices.BinarySearch(sourceRows, limit+1)
	o := q.order(v, start)
	sources := q.sourcesOf(v, o)
	for i, rows := range sources {
		sources[i] = `(SELECT ` + rows + ` ORDER BY ` + o.order + ` LIMIT {cut})`
	}
	// LIMIT 1 makes Postgres look each row up by its id, even in a table that was empty
	// when it made the plan.
	page := `
		SELECT ` + q.columns + `
		FROM (` + strings.Join(sources, "\n\t\tUNION\n\t\t") + `) page
		CROSS JOIN LATERAL (SELECT * FROM ` + q.table + ` WHERE id = page.id LIMIT 1) {w}
		ORDER BY ` + o.order + `
		LIMIT @rows`
	var first []string
	if q.grant != "" && v.Nodes == nil {
		first = append(first, `granted AS MATERIALIZED (`+q.granted()+`)`)
	}
	if q.showsNodes {
		first = append(first, `page AS MATERIALIZED (`+strings.Replace(page, inventoryOf, "NULL::bytea AS inventory", 1)+`)`)
		page = ` SELECT page.*, ` + nodesOfPage + ` FROM page ORDER BY ` + o.inPage
	}
	if len(first) > 0 {
		page = `WITH ` + strings.Join(first, ", ") + page
	}
	return fill(page, "w", "w", "actor", "@actor", "people", strconv.FormatBool(q.actor.ShowPeople), "cut", strconv.Itoa(sourceRows[size]))
}

// granted selects the nodes on which the actor was assigned the list's grant.
func (q *listQuery) granted() string { return grantedNodes(q.grant) }

// grantedNodes selects the nodes on which @actor was assigned the grant.
func grantedNodes(grant models.Grant) string {
	granted := `SELECT node_id, applies_below FROM assigned_rights WHERE actor_id = @actor`
	if grant != anyGrant {
		granted += ` AND '` + string(grant) + `' = ANY (grants)`
	}
	return granted
}

// amongGranted is the condition that the actor has the list's grant on the node {node}, as
// node_rights says, by the rows of granted. IS TRUE makes Postgres look them up in hash tables
// that it makes once.
const amongGranted = `({node} IN (SELECT node_id FROM granted) OR (SELECT true FROM inventory_closure c
			WHERE c.node_id = {node} AND (c.ancestor_id IN (SELECT node_id FROM granted WHERE applies_below)) IS TRUE LIMIT 1) IS TRUE)`

// sourcesOf returns the sources of the page, without their order and limit.
func (q *listQuery) sourcesOf(v visibility, o pageOrder) []string {
	if q.ids != nil {
		return []string{o.keys + ` FROM unnest(@ids::text[]) requested
			CROSS JOIN LATERAL (SELECT * FROM ` + q.table + ` WHERE id = requested LIMIT 1) {w} WHERE ` + q.readable + o.scanned}
	}
	if q.only != nil && !o.changes {
		return []string{q.only(o)}
	}
	var sources []string
	switch {
	case q.all:
		sources = q.organizationSources("true", o)
	case q.grant != "":
		sources = q.nodeSources(v, o)
	}
	scans := q.scans
	if v.OnlyCreates {
		scans = append(slices.Clip(scans), o.along("{w}.created_by", "@actor")+" AND "+q.created)
	}
	for _, condition := range scans {
		sources = append(sources, o.keys+` FROM `+o.rows+` {w} WHERE `+condition+o.scanned)
	}
	for _, rows := range q.sources {
		sources = append(sources, rows(o))
	}
	return sources
}

// nodeSources are the sources of the visible nodes' records: read from the nodes if
// they are few, in the list's order otherwise.
func (q *listQuery) nodeSources(v visibility, o pageOrder) []string {
	byStatus := len(q.statuses) > 0 && !o.changes
	if v.Nodes != nil {
		q.args["nodes"] = slices.Compact(slices.Clone(v.Nodes))
		each, ofStatus := `unnest(@nodes::text[]) visible`, ""
		if byStatus {
			each, ofStatus = each+` CROSS JOIN unnest(@statuses::text[]) requested`, ` AND {w}.status = requested`
		}
		return []string{o.keys + ` FROM ` + each + ` CROSS JOIN LATERAL (
			SELECT {w}.* FROM ` + o.rows + ` {w} WHERE ` + q.node + ` = visible` + ofStatus + o.scanned + `
			ORDER BY ` + o.order + ` LIMIT {cut}) {w}`}
	}
	return q.organizationSources(strings.ReplaceAll(amongGranted, "{node}", q.node), o)
}

// organizationSources are the sources of the organization's records that meet the condition,
// read in the list's order.
func (q *listQuery) organizationSources(visible string, o pageOrder) []string {
	all := o.keys + ` FROM ` + o.rows + ` {w} WHERE ` + visible + o.scanned + ` AND `
	if q.creator != "" && !o.changes {
		return []string{all + o.along(`{w}.organization_id, {w}.created_by`, `@organization, @creator`)}
	}
	if len(q.statuses) == 0 || o.changes {
		return []string{all + o.along(`{w}.organization_id`, `@organization`)}
	}
	var sources []string
	for i, status := range q.statuses {
		name := fmt.Sprintf("status%d", i)
		q.args[name] = status
		sources = append(sources, all+o.along(`{w}.organization_id, {w}.status`, `@organization, @`+name))
	}
	return sources
}
