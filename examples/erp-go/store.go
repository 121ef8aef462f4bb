package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"

	_ "modernc.org/sqlite"
)

// kind is a kind of record: the name of its table, and its path in the API.
type kind struct{ table, path string }

var (
	workOrders = kind{"work_orders", "/work-orders"}
	issues     = kind{"issues", "/issues"}
	kinds      = []kind{workOrders, issues}
)

const schema = `
CREATE TABLE IF NOT EXISTS work_orders (id TEXT PRIMARY KEY, title TEXT, status TEXT, changed_at TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS issues (id TEXT PRIMARY KEY, title TEXT, status TEXT, changed_at TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS outbox (key TEXT PRIMARY KEY, body TEXT NOT NULL, work_order_id TEXT, error TEXT);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT, received_at TEXT);`

// crashIn counts down to the point of a write at which the process ends (CRASH_AT=n): tests
// of restarts use it.
var crashIn atomic.Int64

func init() {
	n, _ := strconv.ParseInt(os.Getenv("CRASH_AT"), 10, 64)
	crashIn.Store(n)
}

func crashPoint() {
	if crashIn.Add(-1) == 0 {
		os.Exit(137)
	}
}

// store is the ERP's database.
type store struct{ db *sql.DB }

func openStore(ctx context.Context, path string) (*store, error) {
	// With "full", a commit survives a power cut; with "immediate", two writers wait for each other.
	address := url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: url.Values{
		"_pragma": {"busy_timeout(30000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	s := &store{db}
	return s, s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(schema)
		return err
	})
}

// write runs a transaction: all that it stores is stored, or nothing.
func (s *store) write(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has no effect
	if err := do(tx); err != nil {
		return err
	}
	crashPoint()
	if err := tx.Commit(); err != nil {
		return err
	}
	crashPoint()
	return nil
}

// keep stores the record of the API, unless a newer state of it is there: webhooks and pages
// may cross.
func keep(tx *sql.Tx, kind kind, body json.RawMessage) error {
	var record struct {
		ID             string
		Title, Subject string
		Status         struct{ Code string }
		ChangedAt      string `json:"changed_at"`
	}
	if err := json.Unmarshal(body, &record); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO `+kind.table+` (id, title, status, changed_at, body) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status,
			changed_at = excluded.changed_at, body = excluded.body WHERE excluded.changed_at >= changed_at`,
		record.ID, record.Title+record.Subject, record.Status.Code, record.ChangedAt, string(body))
	return err
}

// order is a work order to create: the key makes the call safe to repeat.
type order struct {
	Key         string  `json:"key"`
	WorkOrderID *string `json:"work_order_id"`
	Error       *string `json:"error"`
	body        string
}

// outbox returns the orders that fulfill the condition, oldest first.
func (s *store) outbox(ctx context.Context, condition string) (orders []order, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT key, work_order_id, error, body FROM outbox WHERE `+condition+` ORDER BY rowid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.Key, &o.WorkOrderID, &o.Error, &o.body); err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

// changed returns when each record of the kind changed, by its id.
func (s *store) changed(ctx context.Context, kind kind) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, changed_at FROM `+kind.table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	changed := map[string]string{}
	for rows.Next() {
		var id, at string
		if err := rows.Scan(&id, &at); err != nil {
			return nil, err
		}
		changed[id] = at
	}
	return changed, rows.Err()
}

// token returns where the last sync of the kind ended.
func (s *store) token(ctx context.Context, kind kind) (string, error) {
	token, err := s.get(ctx, kind.table)
	return cmp.Or(token, "2000-01-01T00:00:00Z"), err
}

// get returns a state, "" if it is not stored.
func (s *store) get(ctx context.Context, name string) (value string, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT value FROM state WHERE name = ?`, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

func set(tx *sql.Tx, name, value string) error {
	_, err := tx.Exec(`INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
	return err
}
