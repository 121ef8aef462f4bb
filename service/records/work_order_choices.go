package records

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// WorkOrderChoices are what a person can choose from to create a work order on a node.
type WorkOrderChoices struct {
	Node models.NodeReference
	// Forbidden is why the person may not create one there, nil if it may: read_only,
	// plan_restricted, permission_denied, or validation_failed for sub-equipment.
	Forbidden error
	// Forms are the organization's, by name, and Candidates the identities that are connected
	// to the node, the teams first: at most MaxFormChoices and MaxCandidates of them.
	Forms                     []FormChoice
	Candidates                []Candidate
	MoreForms, MoreCandidates bool
	// Managers are the names of those who get the work order if no worker is chosen and no
	// consultant is one of them.
	Managers []string
}

// FormChoice is a form that a work order can have.
type FormChoice struct {
	ID, Name  string
	Questions int
}

// Candidate is an identity that can be a worker or a consultant.
type Candidate struct {
	ID, Name string
	Kind     models.IdentityKind
	// Open counts the open work orders of a person or a team, up to MaxOpenCounted.
	Open int
}

// The most forms and candidates of WorkOrderChoices.
const (
	MaxFormChoices = 200
	MaxCandidates  = 100
	// MaxOpenCounted bounds the count of a candidate's open work orders.
	MaxOpenCounted = 100
)

// creatableNodeQuery reads what decides whether the actor may create a work order on the node.
var creatableNodeQuery = `
	SELECT o.read_only, o.suspended, p.manual_work_orders, n.kind AS node_kind, n.retired_at IS NOT NULL AS node_retired, ` + store.NodeReference("n.id") + ` AS inventory,
		` + access.GrantsOn("n.id", "$1") + ` AS grants,
		ARRAY(SELECT i.name FROM unnest(` + nearestManagers("n.id", "'{}'::text[]") + `) m
			CROSS JOIN LATERAL (SELECT name, sort_key FROM identities WHERE id = m LIMIT 1) i ORDER BY i.sort_key, i.name) AS managers
	FROM inventory_nodes n JOIN organizations o ON o.id = n.organization_id JOIN plans p ON p.organization_id = o.id
	WHERE n.id = $3 AND n.organization_id = $2`

const formChoicesQuery = `
	SELECT f.id, f.name, (SELECT count(*) FROM (SELECT FROM questions q WHERE q.form_id = f.id AND NOT q.retired LIMIT 1000) q) AS questions
	FROM forms f WHERE f.organization_id = $1 AND NOT f.retired ORDER BY f.sort_key, f.id LIMIT $2`

// byKind orders the identities i by kind, teams first.
const byKind = `array_position(ARRAY['team', 'person', 'organization', 'integration'], i.kind::text)`

// leastLoaded sorts candidates for a picker, the first ones by name: the chosen ones, then by kind, and of a kind those first
// who have the least to do.
func leastLoaded(candidates string) string {
	return `SELECT i.id, i.name, i.kind, o.open FROM (` + candidates + `) i CROSS JOIN LATERAL (
			SELECT count(*) AS open FROM (SELECT FROM work_order_assignees
				WHERE identity_id = i.id AND NOT closed AND i.kind IN ('person', 'team') LIMIT ` + strconv.Itoa(MaxOpenCounted) + `) x) o
		ORDER BY i.chosen DESC, ` + byKind + `, o.open, i.sort_key, i.id`
}

// candidatesQuery reads the identities that are connected to the node $1. Their names have the
// words $3, unless they are among $4; integrations are left out if there is no text, and who is gone
// in any case.
var candidatesQuery = leastLoaded(`
	SELECT i.id, i.name, i.kind, i.sort_key, i.id = ANY ($4::text[]) AS chosen
	FROM (` + connectedTo("$1") + `) connected
	CROSS JOIN LATERAL (SELECT * FROM identities WHERE id = connected.identity_id LIMIT 1) i
	WHERE ` + access.CanAct("i.id") + `
		AND (($3 = '' OR i.words @@ $3::tsquery) AND (i.kind <> 'integration' OR $3 <> '') OR i.id = ANY ($4::text[]))
	ORDER BY i.id = ANY ($4::text[]) DESC, ` + byKind + `, i.sort_key, i.id
	LIMIT $2`)

// WorkOrderChoices returns what the actor, a person, can choose from to create a work order
// on the node: of the candidates those whose name has the text, after the chosen ones.
// Errors: not_found (no such node, or one that the actor does not see), permission_denied
// for an integration, unavailable.
func (s *Records) WorkOrderChoices(ctx context.Context, actor store.Actor, nodeID, text string, chosen []string) (WorkOrderChoices, error) {
	if err := access.RequirePerson(actor, "Choosing people for a work order"); err != nil {
		return WorkOrderChoices{}, err
	}
	var node struct {
		creationPlace
		Inventory models.NodeReference
		Managers  []string
	}
	var choices WorkOrderChoices
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &node, models.NotFound(), creatableNodeQuery, actor.IdentityID, actor.OrganizationID, nodeID)
		store.QueueAll(pipeline, &choices.Forms, formChoicesQuery, actor.OrganizationID, MaxFormChoices+1)
		store.QueueAll(pipeline, &choices.Candidates, candidatesQuery, nodeID, MaxCandidates+1, models.WordQuery(models.SearchWords(text), ""), append([]string{}, chosen...))
		return nil
	}, func() (WorkOrderChoices, error) {
		if len(node.Grants) == 0 {
			return WorkOrderChoices{}, models.NotFound()
		}
		choices.Forbidden, choices.Managers = node.forbids(actor), node.Managers
		choices.MoreForms, choices.MoreCandidates = len(choices.Forms) > MaxFormChoices, len(choices.Candidates) > MaxCandidates
		choices.Forms = choices.Forms[:min(len(choices.Forms), MaxFormChoices)]
		choices.Candidates = choices.Candidates[:min(len(choices.Candidates), MaxCandidates)]
		choices.Node = node.Inventory
		return choices, nil
	})
}
