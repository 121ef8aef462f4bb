package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
)

// floorServer is the word on the command line, and the environment it reads,
// that make this program the floors' server.
const (
	floorServer        = "serve-floors"
	floorServerAddress = "FLOORS_ADDR"
)

// serveFloors answers the calls that are measured with bare Gin and one round
// trip to the database, in a process of its own as the API is.
func serveFloors(ctx context.Context) error {
	db, err := openRows(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.pool.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", os.Getenv(floorServerAddress))
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
	answer := func(c *gin.Context, status int, value any, err error) {
		if err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.JSON(status, value)
	}
	engine.GET("/v1/work-orders/:id", func(c *gin.Context) {
		w, err := r.read(c.Request.Context(), c.Param("id"))
		answer(c, http.StatusOK, w, err)
	})
	engine.GET("/v1/work-orders", func(c *gin.Context) {
		page, err := r.newest(c.Request.Context())
		answer(c, http.StatusOK, gin.H{"data": page}, err)
	})
	type body struct {
		Title string `json:"title"`
	}
	engine.POST("/v1/work-orders", func(c *gin.Context) {
		var b body
		if err := c.ShouldBindJSON(&b); err != nil {
			answer(c, 0, nil, err)
			return
		}
		w, err := r.create(c.Request.Context(), b.Title)
		answer(c, http.StatusCreated, w, err)
	})
	engine.PATCH("/v1/work-orders/:id", func(c *gin.Context) {
		var b body
		if err := c.ShouldBindJSON(&b); err != nil {
			answer(c, 0, nil, err)
			return
		}
		w, err := r.change(c.Request.Context(), c.Param("id"), b.Title)
		answer(c, http.StatusOK, w, err)
	})
	return engine
}

// floors is the same work without the product: a server of its own on a
// database of its own, which has the same organization.
type floors struct {
	rows   *rows
	server *process
	tenant *tenant
}

// newFloors makes the database and starts the server.
func newFloors(ctx context.Context, in *installation) (f *floors, err error) {
	database, err := newDatabase(ctx, in.name+"_floors")
	if err != nil {
		return nil, err
	}
	f = &floors{}
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
	for range workOrdersOfBench {
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
	theirs[floorServerAddress] = address
	if f.server, err = startProcess(ctx, in.fail, in.dir, "floors", in.environ(theirs), program, floorServer); err != nil {
		return nil, err
	}
	in.floors = f.server
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

// stopFloors stops the server and forgets it.
func (in *installation) stopFloors(f *floors) {
	f.close()
	in.floors = nil
}

func (f *floors) close() {
	_ = f.server.stop() // it was killed if it did not end
	if f.rows != nil {
		f.rows.pool.Close()
	}
}

// raw makes the same writes without HTTP, from this process.
func (f *floors) raw(op operation) func(context.Context) error {
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
