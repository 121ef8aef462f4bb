package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"millwright/models"
)

// tx is one transaction. Statements are queued and travel together: BEGIN goes
// with the first, COMMIT with the last, so a write costs as many round trips as
// it has questions.
type tx struct {
	*Service
	conn  *pgxpool.Conn
	batch *pgx.Batch
	// at is the moment of the whole write.
	at models.Time
	// work is poked after the commit.
	work []Work
}

// write runs the function in a transaction and pokes what it asked for after
// the commit. A transaction that loses a deadlock runs again, so the function
// must depend on nothing it changed outside. Whatever error it returns undoes all.
func (s *Service) write(ctx context.Context, do func(context.Context, *tx) error) error {
	const attempts = 3
	var err error
	for range attempts {
		var work []Work
		work, err = s.writeOnce(ctx, do)
		if err == nil {
			s.poke(work)
			return nil
		}
		if !retryable(err) {
			break
		}
	}
	return s.translate(err)
}

func (s *Service) writeOnce(ctx context.Context, do func(context.Context, *tx) error) ([]Work, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	// Released while still in a transaction (an error below), the pool closes
	// the connection unless the rollback went through.
	defer conn.Release()
	t := &tx{Service: s, conn: conn, batch: &pgx.Batch{}, at: s.now()}
	t.queue("BEGIN")
	if err := do(ctx, t); err != nil {
		t.rollback(ctx)
		return nil, err
	}
	t.queue("COMMIT")
	if err := t.flush(ctx); err != nil {
		t.rollback(ctx)
		return nil, err
	}
	return t.work, nil
}

func (t *tx) rollback(ctx context.Context) {
	if t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
		t.Log.Debug("a rollback failed; the connection is closed", "error", err.Error())
	}
}

// queue adds a statement; its rows, if any, are thrown away.
func (t *tx) queue(sql string, args ...any) { t.batch.Queue(sql, args...) }

// insert queues the row's INSERT as GORM maps it.
func (t *tx) insert(row any) error {
	return t.queueStatement(t.orm.Session(&gorm.Session{}).Create(row))
}

// queueStatement queues what GORM built in its dry run.
func (t *tx) queueStatement(built *gorm.DB) error {
	if built.Error != nil {
		return fmt.Errorf("build a statement: %w", built.Error)
	}
	t.batch.Queue(built.Statement.SQL.String(), built.Statement.Vars...)
	return nil
}

// flush sends everything queued in one round trip and hands the rows of each
// query to its reader. The first error ends it.
func (t *tx) flush(ctx context.Context) error {
	batch := t.batch
	t.batch = &pgx.Batch{}
	if batch.Len() == 0 {
		return nil
	}
	return t.conn.SendBatch(ctx, batch).Close()
}

// queueOne queues a query that has exactly one row and puts it into into.
// No row is reported as pgx.ErrNoRows by flush, unless missing is given: then
// that error is.
func queueOne[T any](t *tx, into *T, missing error, sql string, args ...any) {
	t.batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
		if errors.Is(err, pgx.ErrNoRows) && missing != nil {
			return missing
		}
		*into = row
		return err
	})
}

// queueAll queues a query and puts all its rows into into.
func queueAll[T any](t *tx, into *[]T, sql string, args ...any) {
	t.batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		*into = all
		return err
	})
}

// knownList reads a list together with whether what it belongs to is known: a
// query of one boolean, then the list's. Errors: not_found, unavailable.
func knownList[T any](ctx context.Context, s *Service, knownSQL string, knownArgs []any, listSQL string, listArgs []any) ([]T, error) {
	var known bool
	var found []T
	batch := &pgx.Batch{}
	batch.Queue(knownSQL, knownArgs...).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	batch.Queue(listSQL, listArgs...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		found = all
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, s.translate(err)
	}
	if !known {
		return nil, models.NotFound()
	}
	return found, nil
}
