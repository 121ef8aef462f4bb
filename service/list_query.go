package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// narrowLimit is up to how many visible nodes a list is driven by the nodes.
// Above it, the list is read in its own order and each record's node is
// checked. Both ask the same condition; only the way to the rows differs.
const narrowLimit = 300

// listQuery builds the SQL of a list. A list is the union of its sources; each
// is a FROM with its condition, in which {w} is the table's row.
type listQuery struct {
	table   string
	columns string
	actor   Actor
	args    pgx.NamedArgs
	// filters are ANDed to every source.
	filters []string
	sources []string
	// grant is what makes a node's records visible, "" where nodes do not matter.
	grant models.Grant
	// below restricts the visible nodes to those at or below it.
	below string
	// statuses are those asked for; an index serves each in the list's order, not all at once.
	statuses []string
	digest   string
}

// newListQuery begins a list of the table's rows. filter is whatever the list
// was asked with: cursors and sync tokens belong to it.
func newListQuery(table, columns string, actor Actor, filter any) *listQuery {
	return &listQuery{
		table: table, columns: columns, actor: actor, digest: digestOf(table, actor.IdentityID, filter),
		args: pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "people": actor.ShowPeople},
	}
}

// where adds a filter.
func (q *listQuery) where(condition, name string, value any) {
	q.filters = append(q.filters, condition)
	q.args[name] = value
}

// source adds a way to rows, as the rest of a SELECT behind FROM. It must find
// no row twice: a page is cut before rows found twice are thrown away.
func (q *listQuery) source(from string) { q.sources = append(q.sources, from) }

// narrowBy makes the records of nodes with the grant a source.
func (q *listQuery) narrowBy(grant models.Grant, below string) { q.grant, q.below = grant, below }

// ofStatuses restricts the list to the statuses; none restrict nothing.
func (q *listQuery) ofStatuses(statuses []string) {
	if len(statuses) > 0 {
		q.statuses = statuses
		q.where("{w}.status = ANY (@statuses)", "statuses", statuses)
	}
}

// view is what a list is read through: everything that must be known before its page is.
type view struct {
	// Horizon is the oldest transaction still running: every one before it is
	// visible to whoever reads later, so a position below it is never passed by.
	Horizon     uint64
	Cluster     int64
	AccessEpoch int
	// Nodes are visible nodes, more than narrowLimit when there are too many to name.
	Nodes []string
	// Begin is where the changes since a time begin.
	Begin *uint64
}

const viewQuery = `
	SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon,
		(SELECT system_identifier FROM pg_control_system()) AS cluster,
		coalesce((SELECT access_epoch FROM integrations WHERE id = @actor), 0) AS access_epoch,
		CASE WHEN @grant <> '' THEN ARRAY(SELECT r.node_id FROM node_rights r
			WHERE r.actor_id = @actor AND @grant = ANY (r.grants)
				AND (@below = '' OR r.node_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @below))
			LIMIT @narrow) END AS nodes,
		%s AS begin`

// beginQuery finds the first change at or after a time. Transactions take their
// ids in nearly the order of their times; the lowest of the first few is safe
// against clocks that differ.
const beginQuery = `(SELECT min(changed_xid) FROM (
			SELECT changed_xid FROM %s WHERE changed_at >= @since ORDER BY changed_at, changed_xid LIMIT 1000) first)`

// begin is the position of a time in the list. Where nodes say what is visible,
// a node moved since then takes its records along: they count as changed.
func (q *listQuery) begin() string {
	begin := fmt.Sprintf(beginQuery, q.table)
	if q.grant == "" {
		return begin
	}
	return `least(` + begin + `, ` + fmt.Sprintf(beginQuery, "inventory_nodes") + `)`
}

func (s *Service) view(ctx context.Context, q *listQuery, start *pageStart) (view, error) {
	begin := "NULL::xid8"
	args := pgx.NamedArgs{"actor": q.actor.IdentityID, "grant": string(q.grant), "below": q.below, "narrow": narrowLimit + 1}
	if start.since != nil {
		begin = q.begin()
		args["since"] = *start.since
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf(viewQuery, begin), args)
	if err != nil {
		return view{}, s.translate(err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[view])
	return v, s.translate(err)
}

// sql builds the page's query. Every source is cut to the page's size in its
// own order before they are united, so that no list is read to its end.
func (q *listQuery) sql(v view, start *pageStart, rows int) string {
	order := "{w}.id DESC"
	conditions := slices.Clone(q.filters)
	q.args["rows"] = rows
	if start.changes {
		order = "{w}.changed_xid, {w}.id"
		conditions = append(conditions, "{w}.changed_xid < @horizon", "({w}.changed_xid, {w}.id) > (@xid, @after)")
		q.args["horizon"], q.args["xid"], q.args["after"] = v.Horizon, start.at.Xid, start.at.ID
	} else if start.at.ID != "" {
		conditions = append(conditions, "{w}.id < @after")
		q.args["after"] = start.at.ID
	}
	and := ""
	if len(conditions) > 0 {
		and = " AND " + strings.Join(conditions, " AND ")
	}
	sources := q.sources
	if q.grant != "" {
		sources = append(q.nodeSources(v, and, order), sources...)
	}
	var selects []string
	for _, from := range sources {
		selects = append(selects, `(SELECT {w}.id, {w}.changed_xid FROM `+from+and+` ORDER BY `+order+` LIMIT @rows)`)
	}
	return with(`
		SELECT `+q.columns+`
		FROM (`+strings.Join(selects, "\n\t\tUNION\n\t\t")+`) page
		JOIN `+q.table+` {w} ON {w}.id = page.id
		ORDER BY `+order+`
		LIMIT @rows`, "w", "w", "actor", "@actor", "people", "@people::boolean")
}

// nodeSources are the ways to the records of visible nodes: from the nodes when
// they are few, along the list's order otherwise.
func (q *listQuery) nodeSources(v view, and, order string) []string {
	if len(v.Nodes) <= narrowLimit {
		slices.Sort(v.Nodes)
		q.args["nodes"] = slices.Compact(v.Nodes)
		return []string{`unnest(@nodes::text[]) visible CROSS JOIN LATERAL (
			SELECT {w}.* FROM ` + q.table + ` {w} WHERE {w}.inventory_id = visible` + and + `
			ORDER BY ` + order + ` LIMIT @rows) {w} WHERE true`}
	}
	along := q.table + ` {w} WHERE {w}.organization_id = @organization
			AND ` + onNode(q.grant)
	if len(q.statuses) == 0 {
		return []string{along}
	}
	var sources []string
	for i, status := range q.statuses {
		name := fmt.Sprintf("status%d", i)
		q.args[name] = status
		sources = append(sources, along+` AND {w}.status = @`+name)
	}
	return sources
}
