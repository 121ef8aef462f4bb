package records

import (
	"millwright/models"
	"millwright/service/store"
)

// Author is who made a change, for pages. ActorName is the name at the time, as in Log Records,
// nil if people are not named to the reader.
type Author struct {
	ActorID   string
	ActorKind models.IdentityKind
	ActorName *string
	// ActorNow is the present name, nil if it is the same.
	ActorNow *string
	// ActorOpens is true if the actor has a page in the reader's organization.
	ActorOpens bool
}

// authorColumns are the columns of an Author for the entry h of the log and its actor i, who may
// be missing, for a reader of the organization; people is whether people are named.
func authorColumns(people, organization string) string {
	return `coalesce(h.actor_id, '') AS actor_id, coalesce(i.kind, 'person') AS actor_kind,
		CASE WHEN ` + people + ` OR i.kind <> 'person' THEN coalesce(h.actor_name, i.name) END AS actor_name,
		CASE WHEN ` + people + ` OR i.kind <> 'person' THEN ` + store.ActorNow("h.actor_name") + ` END AS actor_now,
		i.id IS NOT NULL AND i.organization_id = ` + organization + ` AND i.deleted_at IS NULL
			AND NOT EXISTS (SELECT FROM integrations x WHERE x.id = i.id AND x.deleted_at IS NOT NULL) AS actor_opens`
}
