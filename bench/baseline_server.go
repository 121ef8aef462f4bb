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
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func (r *rows) engine() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	response := func(c *gin.Context, status int, value any, err error) {
		if err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.JSON(status, value)
	}
	engine.GET("/v1/work-orders/:id", func(c *gin.Context) {
		w, err := r.read(c.Request.Context(), c.Param("id"))
		response(c, http.StatusOK, w, err)
	})
	engine.GET("/v1/work-orders", func(c *gin.Context) {
		page, err := r.newest(c.Request.Context())
		response(c, http.StatusOK, gin.H{"data": page}, err)
	})
	type body struct {
		Title string `json:"title"`
	}
	engine.POST("/v1/work-orders", func(c *gin.Context) {
		var b body
		if err := c.ShouldBindJSON(&b); err != nil {
			response(c, 0, nil, err)
			return
		}
		w, err := r.create(c.Request.Context(), b.Title)
		response(c, http.StatusCreated, w, err)
	})
	engine.PATCH("/v1/work-orders/:id", func(c *gin.Context) {
		var b body
		if err := c.ShouldBindJSON(&b); err != nil {
			response(c, 0, nil, err)
			return
		}
		w, err := r.change(c.Request.Context(), c.Param("id"), b.Title)
		response(c, http.StatusOK, w, err)
	})
	return engine
}

// baselines is the same work without the product: a server with its own database,
// which has the same organization.
type baselines struct {
	rows   *rows
	server *process
	tenant *tenant
}

// newBaselines creates the database and starts the server.
func newBaselines(ctx context.Context, in *installation) (f *baselines, err error) {
	database, err := newDatabase(ctx, in.name+"_baselines")
	if err != nil {
		return nil, err
	}
	f = &baselines{}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	theirs := map[string]string{"DATABASE_URL": database}
	if _, err := in.run(ctx, theirs, "migrate"); err != nil {
		return nil, err
	}
	if _, err := in.run(ctx, theirs, "import", in.organizationFile()); err != nil {
		return nil, err
	}
	if f.rows, err = openRows(ctx, database); err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	f.tenant = &tenant{address: address, node: f.rows.node}
	for range benchWorkOrders {
		w, err := f.rows.create(ctx, "Replace filter")
		if err != nil {
			return nil, err
		}
		f.tenant.workOrders = append(f.tenant.workOrders, w.ID)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirs[baselineServerAddress] = address
	if f.server, err = startProcess(ctx, in.fail, in.dir, "baselines", in.environ(theirs), program, baselineServerCommand); err != nil {
		return nil, err
	}
	in.baselines = f.server
	return f, f.server.awaitReady(ctx, func() bool {
		c, err := dial(ctx, address, "")
		if err != nil {
			return false
		}
		defer c.conn.Close()
		_, err = c.get("/work-orders/" + f.tenant.workOrders[0])
		return err == nil
	})
}

// stopBaselines stops the server.
func (in *installation) stopBaselines(f *baselines) {
	f.close()
	in.baselines = nil
}

func (f *baselines) close() {
	_ = f.server.stop() // stop kills it if it does not end
	if f.rows != nil {
		f.rows.pool.Close()
	}
}

// raw returns a function that makes the same writes from this process, without HTTP.
func (f *baselines) raw(op operation) func(context.Context) error {
	if op.name == createOne.name {
		return func(ctx context.Context) error {
			_, err := f.rows.create(ctx, "Replace filter")
			return err
		}
	}
	return func(ctx context.Context) error {
		id, _ := f.tenant.next()
		_, err := f.rows.change(ctx, id, "Replace filter")
		return err
	}
}
