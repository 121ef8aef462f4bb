package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// The role that runs the service reads and writes rows. It can neither define something nor say
// that the schema is another one. That it suffices is what the end-to-end tests show.
func TestTheServiceRoleDefinesNothing(t *testing.T) {
	t.Parallel()
	owner := servicetest.Database(t)
	conn, err := pgx.Connect(t.Context(), servicetest.AsServiceRole(t, owner))
	servicetest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for _, sql := range []string{
		`SELECT count(*) FROM work_orders`, `DELETE FROM deliveries WHERE false`, `SELECT * FROM partitions.days`,
		`SELECT partitions.make(current_date, 1)`, `SELECT * FROM goose_db_version`, `SELECT * FROM cluster_mark`,
		`SELECT work_order_numbers.create_for('org_a"b')`, `SELECT nextval('work_order_numbers."org_a""b"')`,
	} {
		servicetest.WantCode(t, sql, servicetest.ErrorOf(conn.Exec(t.Context(), sql)), "")
	}
	for _, sql := range []string{
		`CREATE TABLE mine (id text)`, `CREATE TABLE partitions.mine (id text)`, `CREATE SEQUENCE work_order_numbers.mine`, `DROP SEQUENCE work_order_numbers."org_a""b"`, `CREATE SCHEMA mine`, `CREATE FUNCTION mine() RETURNS text LANGUAGE sql AS 'SELECT 1::text'`,
		`DROP TABLE work_orders`, `ALTER TABLE work_orders DISABLE TRIGGER ALL`, `ALTER TABLE work_orders ADD mine text`, `TRUNCATE log`,
		`CREATE TRIGGER mine BEFORE UPDATE ON work_orders FOR EACH ROW EXECUTE FUNCTION set_change_position()`, `DROP FUNCTION end_token_epoch() CASCADE`,
		`CREATE INDEX ON work_orders (title)`, `SET session_replication_role = replica`,
		`DELETE FROM goose_db_version`, `UPDATE cluster_mark SET system_identifier = 1`,
		`CREATE ROLE mine`, `COPY work_orders TO PROGRAM 'cat'`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, _, err := store.Migrate(t.Context(), owner, "no_such_role"); err == nil || !strings.Contains(err.Error(), "no_such_role") {
		t.Errorf("a missing role: %v", err)
	}
	config, err := pgx.ParseConfig(owner)
	servicetest.Must(t, err)
	if _, _, err := store.Migrate(t.Context(), owner, config.User); err == nil || !strings.Contains(err.Error(), "has the rights of the one that migrates") {
		t.Errorf("the same role: %v", err)
	}
}
