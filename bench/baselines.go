package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
)

// This argument and this environment variable make the program the baselines' server.
const (
	baselineServerCommand = "serve-baselines"
	baselineServerAddress = "BASELINES_ADDR"
)

// baselines is the same work without the product: a server with its own database,
// which has the same organization.
type baselines struct {
	rows   *rows
	server *process
	tenant *tenant
}

// startBaselines creates the database and starts the server.
func (in *installation) startBaselines() *baselines {
	database, address := in.newDatabase(in.name+"_baselines"), must(freeAddress(in.ctx))
	theirs := map[string]string{"DATABASE_URL": database, baselineServerAddress: address}
	must(in.run(theirs, "migrate"))
	must(in.run(theirs, "import", in.organizationFile()))
	f := &in.baselines
	f.rows = must(openRows(in.ctx, database))
	f.tenant = &tenant{Address: address, Node: f.rows.node}
	for range benchWorkOrders {
		f.tenant.WorkOrders = append(f.tenant.WorkOrders, must(f.rows.create(in.ctx, "Replace filter")).ID)
	}
	f.server = must(startProcess(in.ctx, in.fail, in.dir, "baselines", in.environ(theirs), must(os.Executable()), baselineServerCommand))
	check(f.server.awaitReady(in.ctx, func() bool {
		_, err := f.tenant.flood(in.ctx, 1, readOne, time.Millisecond)
		return err == nil
	}))
	return f
}

// close stops the server, if it runs.
func (f *baselines) close() {
	f.server.stop()
	if f.rows != nil {
		f.rows.pool.Close()
	}
	*f = baselines{}
}

// raw returns a function that makes the same writes from this process, without HTTP.
func (f *baselines) raw(op operation) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		if op.name == createOne.name {
			_, err = f.rows.create(ctx, "Replace filter")
		} else {
			id, _ := f.tenant.next()
			_, err = f.rows.change(ctx, id, "Replace filter")
		}
		return err
	}
}

// serveBaselines answers the measured calls with bare Gin and one round trip to the
// database, in a separate process like the API.
func serveBaselines(ctx context.Context) error {
	db, err := openRows(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.pool.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", os.Getenv(baselineServerAddress))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: db.engine(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func (r *rows) engine() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	handle := func(method, path string, status int, result func(ctx context.Context, c *gin.Context) (any, error)) {
		engine.Handle(method, "/v1/work-orders"+path, func(c *gin.Context) {
			value, err := result(c.Request.Context(), c)
			if err != nil {
				c.String(http.StatusInternalServerError, err.Error())
				return
			}
			c.JSON(status, value)
		})
	}
	write := func(method, path string, status int, result func(ctx context.Context, c *gin.Context, title string) (any, error)) {
		handle(method, path, status, func(ctx context.Context, c *gin.Context) (any, error) {
			var body struct {
				Title string `json:"title"`
			}
			if err := c.ShouldBindJSON(&body); err != nil {
				return nil, err
			}
			return result(ctx, c, body.Title)
		})
	}
	handle(http.MethodGet, "/:id", http.StatusOK, func(ctx context.Context, c *gin.Context) (any, error) { return r.read(ctx, c.Param("id")) })
	handle(http.MethodGet, "", http.StatusOK, func(ctx context.Context, _ *gin.Context) (any, error) {
		page, err := r.newest(ctx)
		return gin.H{"data": page}, err
	})
	write(http.MethodPost, "", http.StatusCreated, func(ctx context.Context, _ *gin.Context, title string) (any, error) { return r.create(ctx, title) })
	write(http.MethodPatch, "/:id", http.StatusOK, func(ctx context.Context, c *gin.Context, title string) (any, error) {
		return r.change(ctx, c.Param("id"), title)
	})
	return engine
}
