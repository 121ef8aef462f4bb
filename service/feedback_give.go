package service

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// FeedbackPlaces are where a person may give feedback.
type FeedbackPlaces struct {
	// Nodes are the uppermost nodes on which the person may, at most 200.
	Nodes []AssignableNode
	// Chosen is the node that was asked for, nil if the person may give no feedback there.
	Chosen *models.NodeReference
}

// feedbackNodesQuery selects the nodes on which @actor was assigned the permission to give
// feedback.
var feedbackNodesQuery = `
	SELECT n.id, n.name, n.kind, n.external_id
	FROM (SELECT DISTINCT node_id FROM assigned_rights WHERE actor_id = @actor AND '` + string(models.GrantFeedbackCreate) + `' = ANY (grants) ORDER BY node_id LIMIT @limit) r
	CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = r.node_id LIMIT 1) n
	WHERE n.organization_id = @organization ORDER BY ` + fill(inNameOrder, "n", "n")

// givesFeedback is the condition that {actor} may give feedback on the node {node}.
const givesFeedback = `EXISTS (SELECT FROM ` + rightsOn + ` AND '` + string(models.GrantFeedbackCreate) + `' = ANY (d.grants))`

// FeedbackPlaces returns where the actor may give feedback. node is the id or the code of the
// node that it chose, "" if none is chosen yet. Errors: unavailable.
func (s *Service) FeedbackPlaces(ctx context.Context, actor Actor, node string) (FeedbackPlaces, error) {
	places, chosen, err := s.feedbackPlaces(ctx, actor, node)
	if err == nil && len(chosen) == 1 {
		places.Chosen = &chosen[0]
	}
	return places, err
}

func (s *Service) feedbackPlaces(ctx context.Context, actor Actor, node string) (places FeedbackPlaces, chosen []models.NodeReference, err error) {
	chosen, err = read(ctx, s, actor.OrganizationID, func() ([]models.NodeReference, error) { return chosen, nil }, func(pipeline *pgx.Batch) error {
		queueAll(pipeline, &places.Nodes, feedbackNodesQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "limit": maxChoices})
		if node != "" {
			queueNamedNodes(pipeline, &chosen, actor, node, `n.organization_id = @organization AND `+givesFeedback)
		}
		return nil
	})
	return places, chosen, err
}

// GiveFeedback is CreateFeedback for people, who name the node by its id or its code. Errors:
// CreateFeedback's; validation_failed with /node if that names no node, or several.
func (s *Service) GiveFeedback(ctx context.Context, actor Actor, node string, in NewFeedback) (WriteResult, error) {
	in.InventoryID = node
	if !isNodeID(node) {
		_, chosen, err := s.feedbackPlaces(ctx, actor, node)
		if err != nil {
			return WriteResult{}, err
		}
		if in.InventoryID, err = onlyNode(chosen, errNoFeedbackNode()); err != nil {
			return WriteResult{}, err
		}
	}
	result, err := s.CreateFeedback(ctx, actor, RequestKey{}, in)
	if known, ok := errors.AsType[*models.Error](err); ok && len(known.Fields) > 0 {
		fields := slices.Clone(known.Fields)
		for i := range fields {
			if fields[i].Pointer == "/inventory_id" {
				fields[i] = errNoFeedbackNode().Fields[0]
			}
		}
		err = models.Invalid(fields...)
	}
	return result, err
}

func errNoFeedbackNode() *models.Error {
	return models.Invalid(models.FieldError{Pointer: "/node", Code: "unknown", Detail: "No node on which you may give feedback has this id or code."})
}
