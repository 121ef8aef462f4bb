package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models"
	"millwright/service/store"
)

// baselineServer is this program's argument, and the name of the process, as the baselines' server.
const baselineServer = "baselines"

// baselines is the same work without the product: a server with the same organization.
type baselines struct {
	*rows
	tenant *tenant
}

// startBaselines creates the database and starts the server.
func (in *installation) startBaselines(name string) baselines {
	database, address := in.newDatabase(name), freeAddress()
	own := []string{"DATABASE_URL=" + database, "MILLWRIGHT_ADDR=" + address}
	in.run(own, "migrate")
	in.run(own, "import", in.fileOf(changeSubscription(1)))
	f := baselines{openRows(database), &tenant{Address: address}}
	for range benchWorkOrders {
		f.tenant.WorkOrders = append(f.tenant.WorkOrders, f.create("Replace filter").ID)
	}
	in.start(baselineServer, own, must(os.Executable()), baselineServer)
	await(10*time.Millisecond, func() bool {
		c := newCaller(f.tenant)
		defer c.close()
		return readOne.call(f.tenant, c) == nil
	})
	return f
}

// raw returns a function that makes the same writes from this process, without HTTP.
func (f baselines) raw(op operation) func() {
	if op.name == createOne.name {
		return func() { f.create("Replace filter") }
	}
	return func() {
		id, _ := f.tenant.next()
		f.change(id, "Replace filter")
	}
}

// serveBaselines answers the measured calls with bare Gin and one round trip to the
// database, in a separate process like the API.
func serveBaselines() {
	r := openRows(os.Getenv("DATABASE_URL"))
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	title := func(c *gin.Context) string {
		var body struct {
			Title string `json:"title"`
		}
		check(c.ShouldBindJSON(&body))
		return body.Title
	}
	const path = "/v1/work-orders"
	engine.GET(path, func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"data": r.newest()}) })
	engine.GET(path+"/:id", func(c *gin.Context) { c.JSON(http.StatusOK, r.read(c.Param("id"))) })
	engine.POST(path, func(c *gin.Context) { c.JSON(http.StatusCreated, r.create(title(c))) })
	engine.PATCH(path+"/:id", func(c *gin.Context) { c.JSON(http.StatusOK, r.change(c.Param("id"), title(c))) })
	check(engine.Run(os.Getenv("MILLWRIGHT_ADDR")))
}

// rows reads and writes a database like the product, in one round trip and without
// checks: no token, no permissions, no rules.
type rows struct {
	ctx                    context.Context
	pool                   *pgxpool.Pool
	org, actor, hook, node string
}

// openRows connects to a database that has the bench's organization.
func openRows(database string) *rows {
	r := &rows{ctx: context.Background()}
	r.pool = must(pgxpool.New(r.ctx, database+"&pool_max_conns=32"))
	check(r.pool.QueryRow(r.ctx, `
		SELECT h.organization_id, h.integration_id, h.id, n.id FROM webhooks h, inventory_nodes n
		WHERE n.organization_id = h.organization_id LIMIT 1`).Scan(&r.org, &r.actor, &r.hook, &r.node))
	return r
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

func (r *rows) read(id string) baselineWorkOrder {
	found := must(r.pool.Query(r.ctx, selectWorkOrder+`WHERE id = $1`, id))
	return must(pgx.CollectExactlyOneRow(found, pgx.RowToStructByPos[baselineWorkOrder]))
}

func (r *rows) newest() []baselineWorkOrder {
	found := must(r.pool.Query(r.ctx, selectWorkOrder+`WHERE organization_id = $1 ORDER BY id DESC LIMIT 50`, r.org))
	return must(pgx.CollectRows(found, pgx.RowToStructByPos[baselineWorkOrder]))
}

// create writes the rows of a creation and returns the work order.
func (r *rows) create(title string) baselineWorkOrder {
	w := r.workOrder(must(models.NewID(models.PrefixWorkOrder, time.Now(), rand.Reader)), title)
	var statements pgx.Batch
	statements.Queue(`BEGIN`)
	statements.Queue(`WITH created AS (
			INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING *)
		INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
		SELECT id, organization_id, inventory_id, created_by, changed_xid FROM created`, w.ID, r.org, w.InventoryID, title, w.Priority, w.Status, r.actor, w.CreatedAt)
	statements.Queue(`INSERT INTO dirty_records (record_id, since) VALUES ($1, $2)`, w.ID, w.CreatedAt)
	r.commit(&statements, w, "work_order.created", map[string]any{"title": map[string]any{"from": nil, "to": title}, "status": map[string]any{"from": nil, "to": "open"}})
	return w
}

var changeTitle = `WITH changed AS (UPDATE work_orders SET title = $2, changed_at = $3 WHERE id = $1 RETURNING id), ` +
	store.MovePositions("changed") + ` SELECT`

// change writes the rows of a changed title, and returns the work order without reading it.
func (r *rows) change(id, title string) baselineWorkOrder {
	w := r.workOrder(id, title)
	var statements pgx.Batch
	statements.Queue(`BEGIN`)
	statements.Queue(changeTitle, id, title, w.ChangedAt)
	r.commit(&statements, w, "work_order.updated", map[string]any{"title": map[string]any{"from": "Replace filter", "to": title}})
	return w
}

func (r *rows) workOrder(id, title string) baselineWorkOrder {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return baselineWorkOrder{
		ID: id, OrganizationID: r.org, Number: 1, InventoryID: r.node, Title: title, Priority: "none", Status: "open",
		CreatedBy: r.actor, CreatedAt: now, ChangedAt: now,
	}
}

// commit adds the log entry, an event with one delivery, and the idempotency key with its
// response, and sends all statements.
func (r *rows) commit(statements *pgx.Batch, w baselineWorkOrder, action string, changes map[string]any) {
	now := w.ChangedAt
	event := must(models.NewID(models.PrefixEvent, now, rand.Reader))
	delivery := must(models.NewID(models.PrefixDelivery, now, rand.Reader))
	key, fingerprint := sha256.Sum256([]byte(r.actor+rand.Text())), sha256.Sum256(nil)
	statements.Queue(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
		VALUES ($1, $2, $3, 'ERP (API)', $4, $5, $6)`, r.org, w.ID, r.actor, action, changes, now)
	statements.Queue(`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		VALUES ($1, $2, $3, $4, $5, '{"fields": ["title"]}', $6)`, event, r.org, action, w.ID, r.actor, now)
	statements.Queue(`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at)
		VALUES ($1, $2, $3, $4, $5, $5)`, delivery, event, r.hook, w.ID, now)
	statements.Queue(`INSERT INTO stored_responses (digest, slot, status, created_at, fingerprint, record_id, readable, body)
		VALUES ($1, $2, 200, $3, $4, $5, true, $6)`, key[:16], models.ResponseSlot(models.TimeOf(now)), now, fingerprint[:], w.ID, must(json.Marshal(w)))
	statements.Queue(`COMMIT`)
	check(r.pool.SendBatch(r.ctx, statements).Close())
}
