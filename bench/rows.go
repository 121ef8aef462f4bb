package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models"
	"millwright/service/store"
)

// rows reads and writes a database like the product, in one round trip and without
// checks: no token, no permissions, no rules.
type rows struct {
	pool                   *pgxpool.Pool
	org, actor, hook, node string
}

// openRows connects to a database that has the bench's organization.
func openRows(ctx context.Context, database string) (*rows, error) {
	pool, err := pgxpool.New(ctx, database+"&pool_max_conns=32")
	if err != nil {
		return nil, err
	}
	r := &rows{pool: pool}
	err = pool.QueryRow(ctx, `
		SELECT h.organization_id, h.integration_id, h.id, n.id FROM webhooks h, inventory_nodes n
		WHERE n.organization_id = h.organization_id LIMIT 1`).Scan(&r.org, &r.actor, &r.hook, &r.node)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("find the organization: %w", err)
	}
	return r, nil
}

// baselineWorkOrder is a work order as the baselines return it.
type baselineWorkOrder struct {
	ID             string     `json:"id"`
	OrganizationID string     `json:"organization_id"`
	Number         int64      `json:"number"`
	InventoryID    string     `json:"inventory_id"`
	Title          string     `json:"title"`
	Description    *string    `json:"description"`
	Priority       string     `json:"priority"`
	TargetDate     *time.Time `json:"target_date"`
	FormID         *string    `json:"form_id"`
	ExternalID     *string    `json:"external_id"`
	Status         string     `json:"status"`
	CancelReason   *string    `json:"cancel_reason"`
	CreatedBy      string     `json:"created_by"`
	CreatedAt      time.Time  `json:"created_at"`
	ChangedAt      time.Time  `json:"changed_at"`
	CompletedAt    *time.Time `json:"completed_at"`
	CancelledAt    *time.Time `json:"cancelled_at"`
}

const selectWorkOrder = `
	SELECT id, organization_id, number, inventory_id, title, description, priority, target_date, form_id, external_id,
		status, cancel_reason, created_by, created_at, changed_at, completed_at, cancelled_at
	FROM work_orders `

func (r *rows) read(ctx context.Context, id string) (baselineWorkOrder, error) {
	found, err := r.pool.Query(ctx, selectWorkOrder+`WHERE id = $1`, id)
	if err != nil {
		return baselineWorkOrder{}, err
	}
	return pgx.CollectExactlyOneRow(found, pgx.RowToStructByPos[baselineWorkOrder])
}

func (r *rows) newest(ctx context.Context) ([]baselineWorkOrder, error) {
	found, err := r.pool.Query(ctx, selectWorkOrder+`WHERE organization_id = $1 ORDER BY id DESC LIMIT 50`, r.org)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[baselineWorkOrder])
}

// create writes the rows of a creation and returns the work order.
func (r *rows) create(ctx context.Context, title string) (baselineWorkOrder, error) {
	id, err := models.NewID(models.PrefixWorkOrder, time.Now(), rand.Reader)
	if err != nil {
		return baselineWorkOrder{}, err
	}
	changes := map[string]any{"title": map[string]any{"from": nil, "to": title}, "status": map[string]any{"from": nil, "to": "open"}}
	return r.write(ctx, id, title, "work_order.created", 201, changes, func(pipeline *pgx.Batch, w *baselineWorkOrder) {
		pipeline.Queue(`WITH created AS (
				INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING *)
			INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
			SELECT id, organization_id, inventory_id, created_by, changed_xid FROM created`, w.ID, w.OrganizationID, w.InventoryID, w.Title, w.Priority, w.Status, w.CreatedBy, w.CreatedAt)
		pipeline.Queue(`INSERT INTO dirty_records (record_id, since) VALUES ($1, $2)`, w.ID, w.CreatedAt)
	})
}

var changeTitle = `WITH changed AS (UPDATE work_orders SET title = $2, changed_at = $3 WHERE id = $1 RETURNING id), ` +
	store.MovePositions("changed") + ` SELECT`

// change writes the rows of a changed title, and returns the work order without
// reading it.
func (r *rows) change(ctx context.Context, id, title string) (baselineWorkOrder, error) {
	changes := map[string]any{"title": map[string]any{"from": "Replace filter", "to": title}}
	return r.write(ctx, id, title, "work_order.updated", 200, changes, func(pipeline *pgx.Batch, w *baselineWorkOrder) {
		pipeline.Queue(changeTitle, w.ID, w.Title, w.ChangedAt)
	})
}

// write writes the rows of the work order, which queueRows queues, the log entry, an event
// with one delivery, and the idempotency key with its response.
func (r *rows) write(ctx context.Context, id, title, action string, status int, changes map[string]any,
	queueRows func(*pgx.Batch, *baselineWorkOrder),
) (baselineWorkOrder, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	w := baselineWorkOrder{
		ID: id, OrganizationID: r.org, Number: 1, InventoryID: r.node, Title: title, Priority: "none", Status: "open",
		CreatedBy: r.actor, CreatedAt: now, ChangedAt: now,
	}
	event, noEvent := models.NewID(models.PrefixEvent, now, rand.Reader)
	delivery, noDelivery := models.NewID(models.PrefixDelivery, now, rand.Reader)
	body, noBody := json.Marshal(w)
	if err := errors.Join(noEvent, noDelivery, noBody); err != nil {
		return w, err
	}
	key, fingerprint := sha256.Sum256([]byte(r.actor+rand.Text())), sha256.Sum256(nil)
	pipeline := &pgx.Batch{}
	pipeline.Queue(`BEGIN`)
	queueRows(pipeline, &w)
	pipeline.Queue(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
		VALUES ($1, $2, $3, 'ERP (API)', $4, $5, $6)`, r.org, w.ID, r.actor, action, changes, now)
	pipeline.Queue(`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		VALUES ($1, $2, $3, $4, $5, '{"fields": ["title"]}', $6)`, event, r.org, action, w.ID, r.actor, now)
	pipeline.Queue(`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at)
		VALUES ($1, $2, $3, $4, $5, $5)`, delivery, event, r.hook, w.ID, now)
	pipeline.Queue(`INSERT INTO stored_responses (digest, slot, status, created_at, fingerprint, record_id, readable, body)
		VALUES ($1, $2, $3, $4, $5, $6, true, $7)`, key[:16], models.ResponseSlot(models.TimeOf(now)), status, now, fingerprint[:], w.ID, body)
	pipeline.Queue(`COMMIT`)
	return w, r.pool.SendBatch(ctx, pipeline).Close()
}
