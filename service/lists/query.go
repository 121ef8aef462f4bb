package lists

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// narrowLimit is the number of visible nodes up to which a list is read node by
// node. Above it, the list is read in its own order and each record's node is
// checked. The condition is the same, only the plan differs.
const narrowLimit = 300

// Query builds the SQL of a list, which is the union of its sources. In conditions w is the
// table's row.
type Query struct {
	table   string
	columns string
	// showsNodes is true if the records show the node that they are on.
	showsNodes bool
	// named selects the ids of all people of page.
	named string
	// Positions is a table of the rows' places in the list of changes, "" if the table
	// itself has an index of them.
	Positions string
	Actor     store.Actor
	Args      pgx.NamedArgs
	// filters are ANDed to every source. hasValues is true if one of them has a value of which
	// there may be few or many.
	filters   []func(w string) string
	hasValues bool
	// scans are conditions on w, each of which is read by index in the list's order. In
	// a list of changes w is a row of positions, which has the columns that decide who may
	// read a record.
	scans []string
	// sources are rows read otherwise: what follows SELECT, without its order and limit.
	sources []func(o PageOrder) string
	// Only is the only source of the list by ids, nil if it has those above. In a list of
	// changes, and in one of ids, OnlyIf is a filter instead.
	Only   func(o PageOrder) string
	OnlyIf func(w string) string
	// grant makes a node's rows visible, "" if nodes do not matter. node is the column that
	// names the node.
	grant models.Grant
	node  string
	// create lets an actor see the rows that it created on a node, without grant: created is
	// the condition. Rows of an actor that always has both are found by their nodes.
	create  models.Grant
	Created string
	// Below restricts the visible nodes to this one and those below it.
	Below string
	// All makes every row of the actor's organization visible: to operators.
	All bool
	// statuses are those requested. Indexes have each of them in the order of ids, but not
	// several together.
	statuses []string
	// creator restricts the list to what it created; an index has that in the order of ids.
	creator string
	// Readable is the condition that the actor may read w.
	Readable string
	// ids are those requested, nil for all.
	ids []string
	// Digest identifies the list in its tokens.
	Digest string
}

// NewQuery begins a list of the table's rows. filter holds the request's
// filters, to which cursors and sync tokens belong.
func NewQuery(table, columns string, actor store.Actor, filter any) *Query {
	return &Query{
		table: table, columns: columns, Actor: actor, Digest: digestOf(table, cmp.Or(actor.IdentityID, actor.OrganizationID), filter),
		Args: pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID},
	}
}

func (q *Query) filter(column, condition string) {
	q.filters = append(q.filters, func(w string) string { return w + "." + column + " " + condition })
}

// Where adds a filter, the condition that follows the column, with one named argument.
func (q *Query) Where(column, condition, name string, value any) {
	q.filter(column, condition)
	q.hasValues, q.Args[name] = true, value
}

// WhereText is Where if the text is not empty. Text is stored in normal form C.
func (q *Query) WhereText(column, condition, name, value string) {
	if value != "" {
		q.Where(column, condition, name, norm.NFC.String(value))
	}
}

// Scan makes the rows that meet the condition readable: an index has them in the list's order.
func (q *Query) Scan(condition string) {
	q.scans, q.Readable = append(q.scans, condition), condition
}

// Source adds rows: what follows SELECT, without its order and limit. It must not return
// a row twice: duplicates are removed only after each source was cut to the page size.
func (q *Query) Source(rows func(o PageOrder) string) { q.sources = append(q.sources, rows) }

// NarrowBy adds the records of the nodes on which the actor has the grant, for an operator
// all of the organization. They show their nodes.
func (q *Query) NarrowBy(grant models.Grant, below string) {
	q.showsNodes, q.Readable = true, "w.organization_id = @organization"
	if q.All = q.Actor.IsOperator(); !q.All {
		q.grant, q.Below, q.node, q.Readable = grant, below, "w.inventory_id", access.OnNode(grant, "w.inventory_id", "@actor")
	}
}

// SharedColumns replace the node and the people of each record of a page, which are read once for all.
const SharedColumns = `NULL::json AS inventory, NULL::json AS people`

// ShowsPeople has the list, whose columns are SharedColumns and others, read the people of a page. named selects the
// ids of all people of page.
func (q *Query) ShowsPeople(named string) { q.named = named }

// CreatedBy adds the records that the actor created on nodes where it has the grant.
func (q *Query) CreatedBy(grant models.Grant) {
	q.create, q.Created = grant, access.OnNode(grant, "w.inventory_id", "@actor")
}

// AnyGrant is the grant that an actor has on a node with any other.
const AnyGrant models.Grant = "any"

// VisibleNodes adds the nodes that the actor sees.
func (q *Query) VisibleNodes() {
	q.grant, q.node, q.Readable = AnyGrant, "w.id", access.VisibleNode("w.id", "@actor")
}

// OfStatuses restricts the list to the statuses, if any.
func (q *Query) OfStatuses(statuses []string) {
	if len(statuses) > 0 {
		q.statuses = statuses
		q.filter("status", "= ANY (@statuses)")
		q.Args["statuses"] = statuses
	}
}

// OfCreator restricts the list to what the identity created, unless it is "".
func (q *Query) OfCreator(id string) {
	q.creator = id
	q.WhereText("created_by", "= @creator", "creator", id)
}

// ofIDs restricts the list to these records. They are looked up by their ids, and each is
// checked as a single read checks it, so the nodes that the actor sees do not matter.
func (q *Query) ofIDs(ids []string, found bool) {
	q.ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	q.Args["ids"] = q.ids
	q.grant, q.create = "", ""
	if !found {
		q.Digest = digestOf(q.table, q.Digest, q.ids)
	}
}

const viewQuery = `
	SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin_horizon,
		coalesce((SELECT access_epoch FROM integrations WHERE id = @actor), 0) AS access_epoch,
		CASE WHEN @grant <> '' THEN (
			SELECT CASE WHEN count(*) <= @narrow::bigint THEN coalesce(array_agg(seen.node_id::text), '{}') END
			FROM (SELECT r.node_id FROM node_rights r
				WHERE r.actor_id = @actor AND (@grant = '` + string(AnyGrant) + `' OR @grant = ANY (r.grants))
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

// QueueVisibility adds the query of what must be known before the page.
func (q *Query) QueueVisibility(pipeline *pgx.Batch, into *store.Visibility, start *PageStart) {
	args := pgx.NamedArgs{
		"actor": q.Actor.IdentityID, "grant": string(q.grant), "create": string(q.create), "below": q.Below, "narrow": narrowLimit,
		"interval": watermarkInterval, "token": nil, "before": nil,
	}
	if start.token != nil && start.token.Watermark != "" {
		args["token"] = start.token.Watermark
	}
	if start.since != nil {
		args["before"] = start.since.Add(-watermarkMargin)
	}
	store.QueueOne(pipeline, into, pgx.ErrNoRows, viewQuery, args)
}

// PageOrder is what the sources of a page have in common.
type PageOrder struct {
	// Keys are the columns that the order needs.
	Keys, Order string
	// inPage is the order of the columns of the page.
	inPage string
	// Changes is true if the order is the order of changes.
	Changes bool
	// rows is the table that is scanned.
	rows string
	// Scanned restricts w, a row of rows, to the page.
	Scanned string
	// Unfiltered is true if Scanned is w.id < @after alone.
	Unfiltered bool
	// Cut ends a source that is cut to the page size.
	Cut string
}

// MaxID sorts after every id.
const MaxID = "~"

// order returns the order of the page's list and where the page begins.
func (q *Query) order(v store.Visibility, start *PageStart) PageOrder {
	conditions := q.filters
	if q.OnlyIf != nil && (start.changes || q.ids != nil) {
		conditions = append(slices.Clip(conditions), q.OnlyIf)
	}
	filters := func(row string) string {
		var all string
		for _, condition := range conditions {
			all += " AND " + condition(row)
		}
		return all
	}
	if !start.changes {
		begin := " AND w.id < @after"
		q.Args["after"] = cmp.Or(start.At.ID, MaxID)
		return PageOrder{Keys: "w.id", Order: "w.id DESC", inPage: "id DESC", rows: q.table, Scanned: filters("w") + begin, Unfiltered: len(conditions) == 0}
	}
	begin := " AND w.changed_xid < @horizon AND (w.changed_xid, w.id) > (@xid, @after)"
	q.Args["horizon"], q.Args["xid"], q.Args["after"] = v.XminHorizon, start.At.Xid, start.At.ID
	const key = "w.changed_xid, w.id"
	o := PageOrder{Keys: key, Order: key, inPage: "xid, id", Changes: true, rows: q.table, Scanned: filters("w") + begin}
	if q.Positions != "" && q.ids == nil {
		o.rows = q.Positions
		o.Scanned = begin
		if len(conditions) > 0 { // positions lacks their columns
			o.Scanned += ` AND (SELECT true FROM ` + q.table + ` r WHERE r.id = w.id` + filters("r") + ` LIMIT 1)`
		}
	}
	return o
}

// Along is the condition that the columns have the values, for rows that an index of them
// has in the page's order. In the order of ids it compares the id with them, which says
// nothing new: otherwise Postgres might read the ids of all organizations, which looks as
// cheap if the statistics know only one value.
func (o PageOrder) Along(columns, values string) string {
	same := `(` + columns + `) = (` + values + `)`
	if o.Changes {
		return same
	}
	return same + ` AND (` + columns + `, w.id) < (` + values + `, @after)`
}

// sourceRows are to how many rows a source is cut: of one more than the sizes of most
// pages and of the largest. Postgres does not know how many a parameter asks for.
var sourceRows = []int{51, models.MaxPageSize + 1}

// sql builds the query of a page of at most limit rows and one more, if there is one.
// Each source is cut before the union, so that none is read to its end.
func (q *Query) sql(v store.Visibility, start *PageStart, limit int) string {
	q.Args["rows"] = limit + 1
	size, _ := slices.BinarySearch(sourceRows, limit+1)
	o := q.order(v, start)
	o.Cut = ` LIMIT ` + strconv.Itoa(sourceRows[size])
	sources := q.sourcesOf(v, o)
	for i, rows := range sources {
		sources[i] = `(SELECT ` + rows + ` ORDER BY ` + o.Order + o.Cut + `)`
	}
	// LIMIT 1 makes Postgres look each row up by its id, even in a table that was empty
	// when it made the plan.
	page := `
		SELECT ` + q.columns + `
		FROM (` + strings.Join(sources, "\n\t\tUNION\n\t\t") + `) page
		CROSS JOIN LATERAL (SELECT * FROM ` + q.table + ` WHERE id = page.id LIMIT 1) w
		ORDER BY ` + o.Order + `
		LIMIT @rows`
	var first []string
	if q.grant != "" && v.Nodes == nil {
		first = append(first, `granted AS MATERIALIZED (`+q.Granted()+`)`)
	}
	if q.showsNodes {
		first = append(first, `page AS MATERIALIZED (`+page+`)`)
		page = ` SELECT page.*, ` + NodesOfPage + `, ` + PeopleOfPage(strconv.FormatBool(q.Actor.ShowPeople), q.named) + ` FROM page ORDER BY ` + o.inPage
	}
	if len(first) > 0 {
		page = `WITH ` + strings.Join(first, ", ") + page
	}
	return page
}

// Granted selects the nodes on which the actor was assigned the list's grant.
func (q *Query) Granted() string { return GrantedNodes(q.grant) }

// GrantedNodes selects the nodes on which @actor was assigned the grant.
func GrantedNodes(grant models.Grant) string {
	granted := `SELECT node_id, applies_below FROM assigned_rights WHERE actor_id = @actor`
	if grant != AnyGrant {
		granted += ` AND '` + string(grant) + `' = ANY (grants)`
	}
	return granted
}

// AmongGranted is the condition that the actor has the list's grant on the node, as
// node_rights says, by the rows of granted. IS TRUE makes Postgres look them up in hash tables
// that it makes once.
func AmongGranted(node string) string {
	return `(` + node + ` IN (SELECT node_id FROM granted) OR (SELECT true FROM inventory_closure c
			WHERE c.node_id = ` + node + ` AND (c.ancestor_id IN (SELECT node_id FROM granted WHERE applies_below)) IS TRUE LIMIT 1) IS TRUE)`
}

// sourcesOf returns the sources of the page, without their order and limit.
func (q *Query) sourcesOf(v store.Visibility, o PageOrder) []string {
	if q.ids != nil {
		return []string{o.Keys + ` FROM unnest(@ids::text[]) requested
			CROSS JOIN LATERAL (SELECT * FROM ` + q.table + ` WHERE id = requested LIMIT 1) w WHERE ` + q.Readable + o.Scanned}
	}
	if q.Only != nil && !o.Changes {
		return []string{q.Only(o)}
	}
	var sources []string
	switch {
	case q.All:
		sources = q.organizationSources("true", o)
	case q.grant != "":
		sources = q.nodeSources(v, o)
	}
	scans := q.scans
	if v.OnlyCreates {
		scans = append(slices.Clip(scans), o.Along("w.created_by", "@actor")+" AND "+q.Created)
	}
	for _, condition := range scans {
		sources = append(sources, o.Keys+` FROM `+o.rows+` w WHERE `+condition+o.Scanned)
	}
	for _, rows := range q.sources {
		sources = append(sources, rows(o))
	}
	return sources
}

// nodeSources are the sources of the visible nodes' records: read from the nodes if
// they are few, in the list's order otherwise.
func (q *Query) nodeSources(v store.Visibility, o PageOrder) []string {
	byStatus := len(q.statuses) > 0 && !o.Changes
	if v.Nodes != nil {
		q.Args["nodes"] = slices.Compact(slices.Clone(v.Nodes))
		each, ofStatus := `unnest(@nodes::text[]) visible`, ""
		if byStatus {
			each, ofStatus = each+` CROSS JOIN unnest(@statuses::text[]) requested`, ` AND w.status = requested`
		}
		return []string{o.Keys + ` FROM ` + each + ` CROSS JOIN LATERAL (
			SELECT w.* FROM ` + o.rows + ` w WHERE ` + q.node + ` = visible` + ofStatus + o.Scanned + `
			ORDER BY ` + o.Order + o.Cut + `) w`}
	}
	return q.organizationSources(AmongGranted(q.node), o)
}

// organizationSources are the sources of the organization's records that meet the condition,
// read in the list's order.
func (q *Query) organizationSources(visible string, o PageOrder) []string {
	all := o.Keys + ` FROM ` + o.rows + ` w WHERE ` + visible + o.Scanned + ` AND `
	if q.creator != "" && !o.Changes {
		return []string{all + o.Along(`w.organization_id, w.created_by`, `@organization, @creator`)}
	}
	if len(q.statuses) == 0 || o.Changes {
		return []string{all + o.Along(`w.organization_id`, `@organization`)}
	}
	var sources []string
	for i, status := range q.statuses {
		name := fmt.Sprintf("status%d", i)
		q.Args[name] = status
		sources = append(sources, all+o.Along(`w.organization_id, w.status`, `@organization, @`+name))
	}
	return sources
}
