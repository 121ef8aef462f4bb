package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ownersFunctions run with the rights of their owner.
const ownersFunctions = `partitions.make(date, integer), partitions.remove_next(timestamptz),
	partitions.empty_slot(timestamptz), work_order_numbers.create_for(public_id)`

// grantStatements give {role} what the API server, workers and commands need: rows, and the functions
// that make and remove partitions and sequences with the rights of their owner, but no definitions. Only
// Migrate writes the two tables that identify the schema's version and its cluster.
var grantStatements = []string{
	`REVOKE ALL ON ALL TABLES IN SCHEMA public, partitions FROM {role}`,
	`GRANT USAGE ON SCHEMA public, partitions, work_order_numbers TO {role}`,
	`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}`,
	`REVOKE INSERT, UPDATE, DELETE ON goose_db_version, cluster_mark FROM {role}`,
	`GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public, work_order_numbers TO {role}`,
	`ALTER DEFAULT PRIVILEGES IN SCHEMA work_order_numbers GRANT USAGE ON SEQUENCES TO {role}`,
	`GRANT SELECT ON partitions.days TO {role}`,
	`REVOKE ALL ON FUNCTION ` + ownersFunctions + ` FROM PUBLIC`, // a restored database has no grants
	`GRANT EXECUTE ON FUNCTION ` + ownersFunctions + ` TO {role}`,
}

// grantTo runs grantStatements in one transaction, so that a running service misses nothing.
func grantTo(ctx context.Context, db *sql.DB, role string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	quoted := pgx.Identifier{role}.Sanitize()
	var isOwner bool
	if err := tx.QueryRowContext(ctx, `SELECT pg_has_role($1, current_user, 'MEMBER')`, role).Scan(&isOwner); err != nil {
		return err
	}
	if isOwner {
		return fmt.Errorf("the role %s has the rights of the one that migrates: name another, or no role", quoted)
	}
	for _, statement := range grantStatements {
		if _, err := tx.ExecContext(ctx, strings.ReplaceAll(statement, "{role}", quoted)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
