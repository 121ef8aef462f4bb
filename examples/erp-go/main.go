// A small ERP connector: it keeps a copy of Millwright's work orders and feedback in SQLite.
//
//	erp-go run                              receive webhooks, send orders, sync, until SIGTERM
//	erp-go once                             send all orders and sync to the end, then exit
//	erp-go order NODE TITLE [EXTERNAL_ID]   put a work order into the outbox
//	erp-go show                             print what is stored, as JSON
//
// README.md explains the settings, and why nothing is lost or doubled.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"

	"millwright/client"
	"millwright/webhook"
)

const usage = "usage: erp-go run | once | order NODE TITLE [EXTERNAL_ID] | show"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := do(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, context.Canceled) { // canceled by SIGTERM
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	path, err := setting("DATABASE")
	if err != nil {
		return err
	}
	store, err := openStore(ctx, path)
	if err != nil {
		return err
	}
	switch {
	case (len(args) == 3 || len(args) == 4) && args[0] == "order":
		return store.order(ctx, args[1:])
	case len(args) != 1:
	case args[0] == "show":
		return store.show(ctx)
	case args[0] == "once":
		c, err := newConnector(ctx, store)
		if err != nil {
			return err
		}
		if _, err := c.sendOrders(ctx); err != nil {
			return err
		}
		return c.sync(ctx)
	case args[0] == "run":
		c, err := newConnector(ctx, store)
		if err != nil {
			return err
		}
		return c.run(ctx)
	}
	return errors.New(usage)
}

// setting returns a setting from the environment.
func setting(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("%s is not set", name)
	}
	return value, nil
}

// order puts a work order into the outbox: node, title and, if there is one, external id.
func (s *store) order(ctx context.Context, fields []string) error {
	order := client.CreateWorkOrderJSONRequestBody{InventoryID: fields[0], Title: fields[1]}
	if len(fields) > 2 {
		order.ExternalID = &fields[2]
	}
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO outbox (key, body) VALUES (?, ?)`, uuid.NewString(), string(body))
		return err
	})
}

// show prints what is stored.
func (s *store) show(ctx context.Context) error {
	show := map[string]any{}
	for _, kind := range kinds {
		changed, err := s.changed(ctx, kind)
		if err != nil {
			return err
		}
		show[kind.table] = changed
	}
	orders, err := s.outbox(ctx, "true")
	if err != nil {
		return err
	}
	var events int
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM events`).Scan(&events); err != nil {
		return err
	}
	show["outbox"], show["events"] = append([]order{}, orders...), events
	return json.NewEncoder(os.Stdout).Encode(show)
}

// connector sends orders and copies records.
type connector struct {
	store *store
	api   *client.ClientWithResponses
}

func newConnector(ctx context.Context, store *store) (*connector, error) {
	var values []string
	for _, name := range []string{"MILLWRIGHT_URL", "MILLWRIGHT_CLIENT_ID", "MILLWRIGHT_CLIENT_SECRET"} {
		value, err := setting(name)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	api, err := client.New(ctx, values[0], values[1], values[2])
	return &connector{store, api}, err
}

// run receives webhooks, sends orders and syncs until the context ends.
func (c *connector) run(ctx context.Context) error {
	secret, err := setting("WEBHOOK_SECRET")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(cmp.Or(os.Getenv("INTERVAL"), "60"), 64)
	if err != nil {
		return fmt.Errorf("INTERVAL: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:9090"))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c.receiver(secret), ReadTimeout: 10 * time.Second}
	defer server.Close()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Println("ready")
	interval, synced, mayOrder := time.Duration(seconds*float64(time.Second)), time.Time{}, true
	for {
		due := time.Since(synced) >= interval
		if mayOrder || due {
			if mayOrder, err = c.sendOrders(ctx); err != nil {
				return err
			}
		}
		if due {
			if err := c.sync(ctx); err != nil {
				return err
			}
			synced = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// receiver stores what a webhook says, once for each event, before it acknowledges it.
func (c *connector) receiver(secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := webhook.VerifyRequest(r, secret, time.Now())
		if err != nil {
			http.Error(w, "not a delivery", http.StatusBadRequest)
			return
		}
		if err := c.receive(r.Context(), event); err != nil {
			http.Error(w, "not stored: send it again", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func (c *connector) receive(ctx context.Context, event webhook.Event) error {
	if event.Test { // someone tests the address: the record is made up
		return nil
	}
	var data struct {
		WorkOrder json.RawMessage `json:"work_order"`
		Issue     json.RawMessage `json:"issue"`
	}
	if err := json.Unmarshal(event.Data, &data); err != nil {
		return err
	}
	return c.store.write(ctx, func(tx *sql.Tx) error {
		stored, err := tx.Exec(`INSERT INTO events VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			event.ID, event.Type, time.Now().UTC().Format(time.RFC3339))
		if err != nil {
			return err
		}
		if n, err := stored.RowsAffected(); err != nil || n == 0 { // a known event
			return err
		}
		if data.WorkOrder != nil {
			if err := keep(tx, workOrders, data.WorkOrder); err != nil {
				return err
			}
		}
		if data.Issue != nil {
			return keep(tx, issues, data.Issue)
		}
		return nil
	})
}
