package records

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// Kind is what a record is that has a page.
type Kind string

// The kinds of records. Identities have models.IdentityKind.
const (
	KindWorkOrder   Kind = "work_order"
	KindFeedback    Kind = "feedback"
	KindNode        Kind = "node"
	KindPerson      Kind = Kind(models.KindPerson)
	KindTeam        Kind = Kind(models.KindTeam)
	KindIntegration Kind = Kind(models.KindIntegration)
	KindWebhook     Kind = "webhook"
)

// Readable is what a link to a record shows.
type Readable struct {
	ID   string
	Kind Kind
	// Number is a work order's, 0 for other records.
	Number int64
	Name   string
}

// FullName is the name, after the number of a work order.
func (r Readable) FullName() string {
	if r.Number == 0 {
		return r.Name
	}
	return strconv.FormatInt(r.Number, 10) + " " + r.Name
}

// readableQueries select the records of the ids $1 that the person $2 of the organization $3
// may read, or sees in the lists of the organization.
var readableQueries = []struct {
	prefixes []models.IDPrefix
	sql      string
}{
	{[]models.IDPrefix{models.PrefixWorkOrder}, `SELECT w.id, '` + string(KindWorkOrder) + `' AS kind, w.number, w.title AS name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = u.id LIMIT 1) w WHERE $3 <> '' AND ` + access.ReadableWorkOrder("w", "$2")},
	{[]models.IDPrefix{models.PrefixFeedback}, `SELECT w.id, '` + string(KindFeedback) + `' AS kind, 0 AS number, w.subject AS name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT * FROM feedback WHERE id = u.id LIMIT 1) w WHERE $3 <> '' AND ` + access.ReadableFeedback("w", "$2")},
	{slices.Collect(maps.Values(models.NodePrefixes)), `SELECT w.id, '` + string(KindNode) + `' AS kind, 0 AS number, w.name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT id, organization_id, name FROM inventory_nodes WHERE id = u.id LIMIT 1) w
		WHERE w.organization_id = $3 AND ` + access.PersonSees("w.id", "$2", "$3")},
	{[]models.IDPrefix{models.PrefixIdentity}, `SELECT i.id, i.kind::text AS kind, 0 AS number, i.name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT * FROM identities WHERE id = u.id LIMIT 1) i
		WHERE $2 <> '' AND i.organization_id = $3 AND i.kind IN ('person', 'team', 'integration') AND i.deleted_at IS NULL
			AND NOT EXISTS (SELECT FROM integrations WHERE id = i.id AND deleted_at IS NOT NULL)`},
	{[]models.IDPrefix{models.PrefixWebhook}, `SELECT h.id, '` + string(KindWebhook) + `' AS kind, 0 AS number, h.url AS name FROM webhooks h
		JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
		WHERE h.id = ANY ($1) AND $2 <> '' AND h.organization_id = $3`},
}

// Readable returns the records that the person may read, by their ids,
// for pages that link to them: work orders, feedback, nodes, and the organization's
// people, teams, integrations and webhook addresses. At most models.MaxPageSize ids are looked at. Errors:
// unavailable.
func (s *Records) Readable(ctx context.Context, actor store.Actor, ids []string) (map[string]Readable, error) {
	readable := map[string]Readable{}
	if !slices.ContainsFunc(ids, hasPage) {
		return readable, nil
	}
	found := make([][]Readable, len(readableQueries))
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		queueReadableRecords(pipeline, found, actor, ids)
		return nil
	}, func() (map[string]Readable, error) {
		for _, record := range slices.Concat(found...) {
			readable[record.ID] = record
		}
		return readable, nil
	})
}

// hasPage reports whether the id is of a kind that readableQueries read.
func hasPage(id string) bool {
	for _, of := range readableQueries {
		if models.IsID(id, of.prefixes...) {
			return true
		}
	}
	return false
}

// queueReadableRecords adds the queries of the records that the actor may read, to the found ones of each
// of readableQueries.
func queueReadableRecords(pipeline *pgx.Batch, found [][]Readable, actor store.Actor, ids []string) {
	for i, of := range readableQueries {
		var asked []string
		for _, id := range ids[:min(len(ids), models.MaxPageSize)] {
			if models.IsID(id, of.prefixes...) {
				asked = append(asked, id)
			}
		}
		if len(asked) > 0 {
			store.QueueAll(pipeline, &found[i], of.sql, asked, actor.IdentityID, actor.OrganizationID)
		}
	}
}

// namedQuery selects the ids of what has the number, the external id or the code: in the organization, and work
// orders in those whose service company it is. No index has numbers, but their words are found by one.
const namedQuery = `
	(SELECT id FROM work_order_words WHERE words @@ @codes::tsquery ORDER BY id DESC LIMIT @limit)
	UNION ALL
	(SELECT w.id FROM (SELECT id FROM work_order_words WHERE @number::bigint > 0 AND words @@ @numbers::tsquery LIMIT 10000) m
		CROSS JOIN LATERAL (SELECT id, number FROM work_orders WHERE id = m.id LIMIT 1) w
		WHERE w.number = @number::bigint LIMIT @limit)
	UNION ALL
	(SELECT id FROM feedback WHERE words @@ @code::tsquery LIMIT @limit)
	UNION ALL
	(SELECT id FROM inventory_nodes WHERE words @@ @code::tsquery LIMIT @limit)`

// maxNamed limits the records of each kind that a number, an external id or a code names.
const maxNamed = 20

// Named returns the records that the person may read and that the text names: with its id
// or a URL that has it, a work order's number (also as #17), an external id or a node's code.
// Errors: unavailable.
func (s *Records) Named(ctx context.Context, actor store.Actor, text string) ([]Readable, error) {
	text = models.Trim(text)
	var ids []string
	if id := models.FirstIDIn(text); id != "" {
		ids = []string{id}
	} else if text == "" || utf8.RuneCountInString(text) > maxSearchText || !models.IsText(text) {
		return nil, nil
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(text, "#"), 10, 64)
	if err != nil {
		number = 0
	}
	var owners []string
	code := []models.SearchedWord{models.CodeWord(text)}
	found := make([][]Readable, len(readableQueries))
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		store.QueueValues(pipeline, &owners, ownersQuery, pgx.NamedArgs{"organization": actor.OrganizationID, "customers": maxCustomers})
		return nil
	}, func(pipeline *pgx.Batch) error {
		if ids == nil {
			store.QueueValues(pipeline, &ids, namedQuery, pgx.NamedArgs{
				"code": models.WordQuery(code, actor.OrganizationID), "codes": models.WordQuery(code, owners...),
				"numbers": models.WordQuery(models.SearchWords(strconv.FormatInt(number, 10)), owners...), "number": number, "limit": maxNamed,
			})
		}
		return nil
	}, func(pipeline *pgx.Batch) error {
		slices.Sort(ids)
		queueReadableRecords(pipeline, found, actor, slices.Compact(ids))
		return nil
	}}, func() ([]Readable, error) { return slices.Concat(found...), nil })
}
