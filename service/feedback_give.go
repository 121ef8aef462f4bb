package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	WHERE n.organization_id = @organization ORDER BY ` + with(inNameOrder, "n", "n")

// chosenNodesQuery selects the nodes of @organization with the id or the code @node on which
// @actor may give feedback.
var chosenNodesQuery = `
	SELECT ` + with(nodeReference, "node", "{w}.id") + ` AS inventory
	FROM (SELECT id, id AS inventory_id FROM inventory_nodes WHERE organization_id = @organization AND (id = @node OR external_id = @node) ORDER BY id LIMIT @several) {w}
	WHERE ` + onNode(models.GrantFeedbackCreate)

// FeedbackPlaces returns where the actor may give feedback. node is the id or the code of the
// node that it chose, "" for none yet. Errors: unavailable.
func (s *Service) FeedbackPlaces(ctx context.Context, actor Actor, node string) (FeedbackPlaces, error) {
	places, chosen, err := s.feedbackPlaces(ctx, actor, node)
	if err == nil && len(chosen) == 1 {
		places.Chosen = &chosen[0]
	}
	return places, err
}

// severalNodes is how many nodes with one code are looked at.
const severalNodes = 4

func (s *Service) feedbackPlaces(ctx context.Context, actor Actor, node string) (places FeedbackPlaces, chosen []models.NodeReference, err error) {
	var found []struct{ Inventory []byte }
	args := pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "limit": maxChoices, "node": node, "several": severalNodes}
	chosen, err = read(ctx, s, actor.OrganizationID, func() ([]models.NodeReference, error) {
		nodes := make([]models.NodeReference, len(found))
		for i, row := range found {
			if err := json.Unmarshal(row.Inventory, &nodes[i]); err != nil {
				return nil, fmt.Errorf("decode a node: %w", err)
			}
		}
		return nodes, nil
	}, func(pipeline *pgx.Batch) error {
		queueAll(pipeline, &places.Nodes, feedbackNodesQuery, args)
		if node != "" {
			queueAll(pipeline, &found, with(chosenNodesQuery, "w", "w", "actor", "@actor"), args)
		}
		return nil
	})
	return places, chosen, err
}

// GiveFeedback is CreateFeedback for people, who name the node by its id or its code. Errors:
// those of CreateFeedback; validation_failed with /node if that names no node, or several.
func (s *Service) GiveFeedback(ctx context.Context, actor Actor, node string, in NewFeedback) (WriteResult, error) {
	in.InventoryID = node
	if !isNodeID(node) {
		_, chosen, err := s.feedbackPlaces(ctx, actor, node)
		switch {
		case err != nil:
			return WriteResult{}, err
		case len(chosen) == 0:
			return WriteResult{}, errNoFeedbackNode()
		case len(chosen) > 1:
			return WriteResult{}, models.Invalid(models.FieldError{Pointer: "/node", Code: "ambiguous", Detail: "Several nodes have this code. Enter the id of one."})
		}
		in.InventoryID = chosen[0].ID
	}
	result, err := s.CreateFeedback(ctx, actor, Call{}, in)
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
