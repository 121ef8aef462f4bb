package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// write is store.Write, of which a replay shows the record only to those who may read it now
// (api.md 4.17). Errors: Write's, not_found.
func (s *Records) write(
	ctx context.Context, actor store.Actor, key store.Key, status int, lock store.Lock, read func(*pgx.Batch),
	do func(*store.Tx) (id string, record any, err error),
) (store.WriteResult, error) {
	result, err := s.Write(ctx, actor, key, status, lock, read, do)
	if err == nil && result.Replayed {
		err = s.checkReplay(ctx, actor, result)
	}
	if err != nil {
		return store.WriteResult{}, err
	}
	return result, nil
}

// replayableQuery selects whether the @actor may read the record @id or, if it could not at the time of the
// write (@readable), may still give the feedback that it gave then.
var replayableQuery = store.Fill(`SELECT `+access.ReadsRecord+` OR NOT @readable::boolean AND EXISTS (
	SELECT FROM feedback w WHERE w.id = {id} AND w.created_by = {actor} AND `+access.OnNode(models.GrantFeedbackCreate)+`) AS may`,
	"w", "w", "id", "@id", "actor", "@actor")

// checkReplay rejects a replay for an actor that could read the record at the time of the write and may
// not now. Errors: not_found, unavailable.
func (s *Records) checkReplay(ctx context.Context, actor store.Actor, replay store.WriteResult) error {
	found, err := store.FindOne[struct{ May bool }](ctx, s.Store, actor.OrganizationID, models.NotFound(), replayableQuery, pgx.NamedArgs{
		"id": replay.RecordID, "actor": actor.IdentityID, "readable": replay.Readable,
	})
	if err != nil {
		return err
	}
	if found.May && (!replay.Readable || actor.HasReadScope(replay.RecordID)) {
		return nil
	}
	return &models.Error{
		Code: models.CodeNotFound, Replayed: true,
		Detail: "This repeats a write that was made. Its record may no longer be read.",
	}
}
