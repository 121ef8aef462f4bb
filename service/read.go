package service

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// readOne reads one record of the table and encodes it with record made of its
// row. condition says which row, and whether the actor may read it; {w} is the
// row. Errors: not_found, unavailable.
func readOne[Row, Record any](ctx context.Context, s *Service, actor Actor, table, columns, condition string, args pgx.NamedArgs, record func(Row) Record) ([]byte, error) {
	args["actor"], args["organization"], args["people"] = actor.IdentityID, actor.OrganizationID, actor.ShowPeople
	sql := `SELECT ` + columns + ` FROM ` + table + ` {w} WHERE ` + condition
	rows, err := s.pool.Query(ctx, with(sql, "w", "w", "actor", "@actor", "people", "@people::boolean"), args)
	if err != nil {
		return nil, s.translate(err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Row])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, models.NotFound()
	}
	if err != nil {
		return nil, s.translate(err)
	}
	return Encode(record(row))
}
