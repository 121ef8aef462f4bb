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

// MaxFeedbackPlaces limits the places that FeedbackPlaces finds.
const MaxFeedbackPlaces = 10

// givesFeedback is the condition that the actor may give feedback on the node.
func givesFeedback(node, actor string) string {
	return `EXISTS (SELECT FROM ` + access.RightsOn(node, actor) + ` AND ` + access.Among(models.GrantFeedbackCreate, "d.grants") + `)`
}

// FeedbackPlaces returns where the actor, a person, may give feedback by the id, the code or words of the names of a
// place and those above it, best first, at most one more than MaxFeedbackPlaces. Errors: permission_denied for an
// integration, unavailable.
func (s *Records) FeedbackPlaces(ctx context.Context, actor store.Actor, words string) ([]models.NodeReference, error) {
	var named []models.NodeReference
	named, err := store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		inventory.QueueNamedNodes(pipeline, &named, actor, words, `n.organization_id = @organization AND n.retired_at IS NULL AND `+givesFeedback("n.id", "@actor"))
		return nil
	}, func() ([]models.NodeReference, error) { return named, nil })
	if err != nil || len(named) == 1 {
		return named, err
	}
	found, err := inventory.New(s.Store).SearchNodes(ctx, actor, inventory.NodeSearch{Text: words, Grant: models.GrantFeedbackCreate, Limit: MaxFeedbackPlaces + 1})
	places := make([]models.NodeReference, len(found))
	for i, node := range found {
		places[i] = node.NodeReference
	}
	return places, err
}

// OwnFeedback is feedback for the person who gave it and may not read others'.
type OwnFeedback struct {
	ID, Subject, Place string
	Status             models.FeedbackStatus
	CreatedAt          models.Time
	// WorkOrder is the status of the newest work order that was made of it, or "".
	WorkOrder models.WorkOrderStatus
}

// ownFeedbackQuery selects the newest feedback of @actor on nodes on which it may still give feedback.
var ownFeedbackQuery = `
	SELECT f.id, f.subject, f.status, f.created_at, n.name AS place,
		coalesce((SELECT w.status FROM work_orders w WHERE w.feedback_id = f.id ORDER BY w.id DESC LIMIT 1), '') AS work_order
	FROM feedback f JOIN inventory_nodes n ON n.id = f.inventory_id
	WHERE f.organization_id = @organization AND f.created_by = @actor AND ` + givesFeedback("f.inventory_id", "@actor") + `
	ORDER BY f.id DESC LIMIT 10`

// OwnFeedback returns the newest feedback that the actor gave, and what became of it. Errors: unavailable.
func (s *Records) OwnFeedback(ctx context.Context, actor store.Actor) (own []OwnFeedback, err error) {
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &own, ownFeedbackQuery, pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID})
		return nil
	}, func() ([]OwnFeedback, error) { return own, nil })
}

// GiveFeedback is CreateFeedback for people, who name the place as for FeedbackPlaces. Errors: CreateFeedback's;
// validation_failed with /node if that names no place, or several (the code several).
func (s *Records) GiveFeedback(ctx context.Context, actor store.Actor, key store.Key, place string, in NewFeedback) (store.WriteResult, error) {
	in.InventoryID = place
	if !inventory.IsNodeID(place) {
		places, err := s.FeedbackPlaces(ctx, actor, place)
		switch {
		case err != nil:
			return store.WriteResult{}, err
		case len(places) == 0:
			return store.WriteResult{}, errNoFeedbackNode()
		case len(places) > 1:
			return store.WriteResult{}, models.Invalid(models.FieldError{Pointer: "/node", Code: "several", Detail: "Several places have these words. Choose one."})
		}
		in.InventoryID = places[0].ID
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
	return models.Invalid(models.FieldError{Pointer: "/node", Code: "unknown", Detail: "No place on which you may give feedback has all of these words. Try fewer of them, or the code on its label."})
}
