package records

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/store"
)

// FeedbackPlaces are where a person may give feedback.
type FeedbackPlaces struct {
	// Nodes are the uppermost nodes on which the person may, at most 200.
	Nodes []inventory.AssignableNode
	// Chosen is the node that was asked for, nil if the person may give no feedback there.
	Chosen *models.NodeReference
}

// feedbackNodesQuery selects the nodes on which @actor was assigned the permission to give
// feedback.
var feedbackNodesQuery = `
	SELECT n.id, n.name, n.kind, n.external_id
	FROM (SELECT DISTINCT node_id FROM assigned_rights WHERE actor_id = @actor AND '` + string(models.GrantFeedbackCreate) + `' = ANY (grants) ORDER BY node_id LIMIT @limit) r
	CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = r.node_id LIMIT 1) n
	WHERE n.organization_id = @organization AND n.retired_at IS NULL ORDER BY ` + store.Fill(inventory.InNameOrder, "n", "n")

// givesFeedback is the condition that {actor} may give feedback on the node {node}.
const givesFeedback = `EXISTS (SELECT FROM ` + access.RightsOn + ` AND '` + string(models.GrantFeedbackCreate) + `' = ANY (d.grants))`

// FeedbackPlaces returns where the actor may give feedback. node is the id or the code of the
// node that it chose, "" if none is chosen yet. Errors: unavailable.
func (s *Records) FeedbackPlaces(ctx context.Context, actor store.Actor, node string) (FeedbackPlaces, error) {
	places, chosen, err := s.feedbackPlaces(ctx, actor, node)
	if err == nil && len(chosen) == 1 {
		places.Chosen = &chosen[0]
	}
	return places, err
}

func (s *Records) feedbackPlaces(ctx context.Context, actor store.Actor, node string) (places FeedbackPlaces, chosen []models.NodeReference, err error) {
	chosen, err = store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &places.Nodes, feedbackNodesQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "limit": inventory.MaxChoices})
		if node != "" {
			inventory.QueueNamedNodes(pipeline, &chosen, actor, node, `n.organization_id = @organization AND n.retired_at IS NULL AND `+givesFeedback)
		}
		return nil
	}, func() ([]models.NodeReference, error) { return chosen, nil })
	return places, chosen, err
}

// GiveFeedback is CreateFeedback for people, who name the node by its id or its code. Errors:
// CreateFeedback's; validation_failed with /node if that names no node, or several.
func (s *Records) GiveFeedback(ctx context.Context, actor store.Actor, key store.Key, node string, in NewFeedback) (store.WriteResult, error) {
	in.InventoryID = node
	if !inventory.IsNodeID(node) {
		_, chosen, err := s.feedbackPlaces(ctx, actor, node)
		if err != nil {
			return store.WriteResult{}, err
		}
		if in.InventoryID, err = inventory.OnlyNode(chosen, errNoFeedbackNode()); err != nil {
			return store.WriteResult{}, err
		}
	}
	result, err := s.CreateFeedback(ctx, actor, key, in)
	if known, ok := errors.AsType[*models.Error](err); ok && len(known.Fields) > 0 {
		fields := slices.Clone(known.Fields)
		for i := range fields {
			if fields[i].Pointer == "/inventory_id" {
				fields[i].Pointer = "/node"
				if fields[i].Code == "unknown" {
					fields[i] = errNoFeedbackNode().Fields[0]
				}
			}
		}
		err = models.Invalid(fields...)
	}
	return result, err
}

func errNoFeedbackNode() *models.Error {
	return models.Invalid(models.FieldError{Pointer: "/node", Code: "unknown", Detail: "No place on which you may give feedback has this id or code."})
}
