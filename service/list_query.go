package service

import (
	"fmt"
	"slices"
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
	// positions is a table of the rows' places in the list of changes, "" if the table
	// itself has an index of them.
	positions string
	actor     Actor
	args      pgx.NamedArgs
	// filters are ANDed to every source.
	filters []string
	// scans are conditions on {w}, each of which is read along an index in the list's
	// order. sources are those read otherwise: a FROM with its WHERE.
	scans, sources []string
	// grant makes a node's records visible, "" if nodes do not matter.
	grant models.Grant
	// below restricts the visible nodes to this one and those below it.
	below string
	// statuses are those requested. An index has each of them in the order of ids, but
	// not several together.
	statuses []string
	// digest identifies the list in its tokens.
	digest string
}

// newListQuery begins a list of the table's rows. filter holds the request's
// filters, to which cursors and sync tokens belong.
func newListQuery(table, columns string, actor Actor, filter any) *listQuery {
	return &listQuery{
		table: table, columns: columns, actor: actor, digest: digestOf(table, actor.IdentityID, filter),
		args: pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "people": actor.ShowPeople},
	}
}

// where adds a filter with one named argument.
func (q *listQuery) where(condition, name string, value any) {
	q.filters = append(q.filters, condition)
	q.args[name] = value
}

// scan adds the rows that an index has in the list's order. In a list of changes {w} is
// a row of positions, which has the columns that say who may read a record.
func (q *listQuery) scan(condition string) { q.scans = append(q.scans, condition) }

// source adds the text of a SELECT after FROM. It must not return a row twice:
// duplicates are removed only after each source was cut to the page size.
func (q *listQuery) source(from string) { q.sources = append(q.sources, from) }

// narrowBy adds the records of the nodes on which the actor has the grant.
func (q *listQuery) narrowBy(grant models.Grant, below string) { q.grant, q.below = grant, below }

// ofStatuses restricts the list to the statuses, if any.
func (q *listQuery) ofStatuses(statuses []string) {
	if len(statuses) > 0 {
		q.statuses = statuses
		q.where("{w}.status = ANY (@statuses)", "statuses", statuses)
	}
}

// view is what must be known before a page is read.
type view struct {
	// Horizon is the oldest transaction still running. All earlier ones have ended, so
	// no change can appear below a position below it.
	Horizon     uint64
	AccessEpoch int
	// Nodes are the visible nodes, at most narrowLimit + 1.
	Nodes []string
	// BeatNonce and BeatXid are the newest beat, "" and 0 without one.
	BeatNonce string
	BeatXid   uint64
	BeatIsOld bool
	// TokenXid is the xid of the beat that the request's token names, nil if the
	// database does not have it.
	TokenXid *uint64
	// SinceXid is where the changes since the request's time begin.
	SinceXid uint64
}

const viewQuery = `
	SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon,
		coalesce((SELECT access_epoch FROM integrations WHERE id = @actor), 0) AS access_epoch,
		CASE WHEN @grant <> '' THEN ARRAY(SELECT r.node_id FROM node_rights r
			WHERE r.actor_id = @actor AND @grant = ANY (r.grants)
				AND (@below = '' OR r.node_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @below))
			LIMIT @narrow) END AS nodes,
		coalesce(newest.nonce::text, '') AS beat_nonce,
		coalesce(newest.xid, '0') AS beat_xid,
		coalesce(newest.at < clock_timestamp() - @interval::interval, true) AS beat_is_old,
		(SELECT xid FROM beats WHERE nonce = @token::uuid) AS token_xid,
		coalesce((SELECT xid FROM beats WHERE at <= @before::timestamptz ORDER BY at DESC LIMIT 1), '0') AS since_xid
	FROM (SELECT) one LEFT JOIN LATERAL (SELECT * FROM beats ORDER BY xid DESC LIMIT 1) newest ON true`

// queueView adds the query of what must be known before the page.
func (q *listQuery) queueView(pipeline *pgx.Batch, into *view, start *pageStart) {
	args := pgx.NamedArgs{
		"actor": q.actor.IdentityID, "grant": string(q.grant), "below": q.below, "narrow": narrowLimit + 1,
		"interval": beatInterval, "token": nil, "before": nil,
	}
	if start.token != nil && start.token.Beat != "" {
		args["token"] = start.token.Beat
	}
	if start.since != nil {
		args["before"] = start.since.Add(-beatMargin)
	}
	queueOne(pipeline, into, pgx.ErrNoRows, viewQuery, args)
}

// pageOrder is what the sources of a page have in common.
type pageOrder struct {
	// keys are the columns that the order needs.
	keys, order string
	// rows is the table that is scanned.
	rows string
	// scanned restricts {w} to the page if it is a row of rows, read if it is one of the
	// list's table.
	scanned, read string
}

// order returns the order of the page's list and where the page begins.
func (q *listQuery) order(v view, start *pageStart) pageOrder {
	filters, begin := "", ""
	if len(q.filters) > 0 {
		filters = " AND " + strings.Join(q.filters, " AND ")
	}
	if !start.changes {
		if start.at.ID != "" {
			begin = " AND {w}.id < @after"
			q.args["after"] = start.at.ID
		}
		return pageOrder{keys: "{w}.id", order: "{w}.id DESC", rows: q.table, scanned: filters + begin, read: filters + begin}
	}
	begin = " AND {w}.changed_xid < @horizon AND ({w}.changed_xid, {w}.id) > (@xid, @after)"
	q.args["horizon"], q.args["xid"], q.args["after"] = v.Horizon, start.at.Xid, start.at.ID
	const key = "{w}.changed_xid, {w}.id"
	o := pageOrder{keys: key, order: key, rows: q.table, scanned: filters + begin, read: filters + begin}
	if q.positions != "" {
		o.rows = q.positions
		if filters != "" { // positions lacks their columns
			filters = ` AND (SELECT true FROM ` + q.table + ` r WHERE r.id = {w}.id` + with(filters, "w", "r") + ` LIMIT 1)`
		}
		o.scanned = begin + filters
	}
	return o
}

// sql builds the page's query. Each source is cut to the page size before the
// union, so that none is read to its end.
func (q *listQuery) sql(v view, start *pageStart, rows int) string {
	q.args["rows"] = rows
	o := q.order(v, start)
	var sources []string
	if q.grant != "" {
		sources = q.nodeSources(v, start, o)
	}
	for _, condition := range q.scans {
		sources = append(sources, o.rows+` {w} WHERE `+condition+o.scanned)
	}
	for _, from := range q.sources {
		sources = append(sources, from+o.read)
	}
	for i, from := range sources {
		sources[i] = `(SELECT ` + o.keys + ` FROM ` + from + ` ORDER BY ` + o.order + ` LIMIT @rows)`
	}
	// LIMIT 1 makes Postgres look each row up by its id, even in a table that was empty
	// when it made the plan.
	return with(`
		SELECT `+q.columns+`
		FROM (`+strings.Join(sources, "\n\t\tUNION\n\t\t")+`) page
		CROSS JOIN LATERAL (SELECT * FROM `+q.table+` WHERE id = page.id LIMIT 1) {w}
		ORDER BY `+o.order+`
		LIMIT @rows`, "w", "w", "actor", "@actor", "people", "@people::boolean")
}

// nodeSources are the sources of the visible nodes' records: read from the nodes if
// they are few, in the list's order otherwise.
func (q *listQuery) nodeSources(v view, start *pageStart, o pageOrder) []string {
	if len(v.Nodes) <= narrowLimit {
		slices.Sort(v.Nodes)
		q.args["nodes"] = slices.Compact(v.Nodes)
		return []string{`unnest(@nodes::text[]) visible CROSS JOIN LATERAL (
			SELECT {w}.* FROM ` + o.rows + ` {w} WHERE {w}.inventory_id = visible` + o.scanned + `
			ORDER BY ` + o.order + ` LIMIT @rows) {w}`}
	}
	all := o.rows + ` {w} WHERE {w}.organization_id = @organization
			AND ` + onNode(q.grant) + o.scanned
	if len(q.statuses) == 0 || start.changes {
		return []string{all}
	}
	var sources []string
	for i, status := range q.statuses {
		name := fmt.Sprintf("status%d", i)
		q.args[name] = status
		sources = append(sources, all+` AND {w}.status = @`+name)
	}
	return sources
}
