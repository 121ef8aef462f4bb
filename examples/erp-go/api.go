package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"millwright/client"
)

// sendOrders creates the work orders of the outbox, and returns whether the integration may.
// The key of each was stored before, so a repeated call creates nothing again, whatever was
// lost between.
func (c *connector) sendOrders(ctx context.Context) (may bool, err error) {
	orders, err := c.store.outbox(ctx, `work_order_id IS NULL AND error IS NULL`)
	if err != nil {
		return true, err
	}
	for _, order := range orders {
		crashPoint()
		status, answer, err := call(ctx, func() (*http.Response, error) {
			return c.api.CreateWorkOrderWithBody(ctx, &client.CreateWorkOrderParams{IdempotencyKey: &order.Key},
				"application/json", strings.NewReader(order.body))
		})
		if err != nil {
			return true, err
		}
		crashPoint()
		if status == http.StatusForbidden { // a matter of the integration, not of the order
			fmt.Fprintln(os.Stderr, "orders wait: the integration may not create work orders:", code(answer))
			return false, nil
		}
		err = c.store.write(ctx, func(tx *sql.Tx) error {
			if status != http.StatusCreated { // it can never succeed: a person has to look at it
				_, err := tx.Exec(`UPDATE outbox SET error = ? WHERE key = ?`, fmt.Sprint(status, " ", code(answer)), order.Key)
				return err
			}
			var created struct{ ID string }
			if err := json.Unmarshal(answer, &created); err != nil {
				return err
			}
			if err := keep(tx, workOrders, answer); err != nil {
				return err
			}
			_, err := tx.Exec(`UPDATE outbox SET work_order_id = ? WHERE key = ?`, created.ID, order.Key)
			return err
		})
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// sync reads all changes of each kind. The records of a page and its token are stored together.
func (c *connector) sync(ctx context.Context) error {
	for _, kind := range kinds {
		for more := true; more; {
			var err error
			if more, err = c.syncPage(ctx, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// syncPage stores the next page of changes, and returns whether there are more.
func (c *connector) syncPage(ctx context.Context, kind kind) (more bool, err error) {
	token, err := c.store.token(ctx, kind)
	if err != nil {
		return false, err
	}
	limit := int64(200)
	status, answer, err := c.list(ctx, kind, client.ListWorkOrdersParams{Limit: &limit, ChangedSince: &token})
	switch {
	case err != nil:
		return false, err
	case status == http.StatusGone: // the token is too old or void: read everything again, then check what no longer comes
		return true, c.store.write(ctx, func(tx *sql.Tx) error {
			_, err := tx.Exec(`DELETE FROM state WHERE name IN (?, ?)`, kind.table, checkOf(kind))
			return err
		})
	case status == http.StatusForbidden: // the integration lacks the scope of this list
		return false, nil
	case status != http.StatusOK:
		return false, fmt.Errorf("GET %s responds with %d %s", kind.path, status, code(answer))
	}
	var page struct {
		Data      []json.RawMessage
		HasMore   bool   `json:"has_more"`
		SyncToken string `json:"sync_token"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return false, err
	}
	err = c.store.write(ctx, func(tx *sql.Tx) error {
		for _, record := range page.Data {
			if err := keep(tx, kind, record); err != nil {
				return err
			}
		}
		crashPoint()
		return set(tx, kind.table, page.SyncToken)
	})
	if err == nil && !page.HasMore {
		err = c.check(ctx, kind)
	}
	return page.HasMore, err
}

// list calls the list of a kind. Both lists have these parameters.
func (c *connector) list(ctx context.Context, kind kind, in client.ListWorkOrdersParams) (status int, answer []byte, err error) {
	return call(ctx, func() (*http.Response, error) {
		if kind == issues {
			return c.api.ListIssues(ctx, &client.ListIssuesParams{Limit: in.Limit, ChangedSince: in.ChangedSince, ID: in.ID})
		}
		return c.api.ListWorkOrders(ctx, &in)
	})
}

// checkOf names the state that has the time of the last check of the kind.
func checkOf(kind kind) string { return "check of " + kind.table }

// check removes the records that the integration may no longer read, once a day: that a record
// left its view is no change of the record, so no sync shows it.
func (c *connector) check(ctx context.Context, kind kind) error {
	seconds, err := strconv.ParseFloat(cmp.Or(os.Getenv("CHECK_INTERVAL"), "86400"), 64)
	if err != nil {
		return fmt.Errorf("CHECK_INTERVAL: %w", err)
	}
	last, err := c.store.get(ctx, checkOf(kind))
	if err != nil {
		return err
	}
	if at, err := time.Parse(time.RFC3339Nano, last); err == nil && time.Since(at).Seconds() < seconds {
		return nil
	}
	held, err := c.store.changed(ctx, kind)
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(held)), 100) {
		limit := int64(100)
		status, answer, err := c.list(ctx, kind, client.ListWorkOrdersParams{Limit: &limit, ID: &ids})
		if err != nil {
			return err
		}
		var page struct{ Data []struct{ ID string } }
		if status != http.StatusOK {
			return fmt.Errorf("GET %s responds with %d %s", kind.path, status, code(answer))
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return err
		}
		for _, shown := range page.Data {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == shown.ID })
		}
		err = c.store.write(ctx, func(tx *sql.Tx) error {
			for _, id := range ids { // a webhook may have brought a newer state since: it stays
				if _, err := tx.Exec(`DELETE FROM `+kind.table+` WHERE id = ? AND changed_at = ?`, id, held[id]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return c.store.write(ctx, func(tx *sql.Tx) error {
		return set(tx, checkOf(kind), time.Now().UTC().Format(time.RFC3339Nano))
	})
}

// call sends a request until it is answered, and returns status and body. It waits and
// repeats after 401, 429, 5xx and lost responses, of token requests too.
func call(ctx context.Context, send func() (*http.Response, error)) (status int, body []byte, err error) {
	wait := 200 * time.Millisecond
	for {
		after := ""
		response, err := send()
		var token *oauth2.RetrieveError
		switch {
		case errors.As(err, &token) && (token.Response.StatusCode == http.StatusBadRequest || token.Response.StatusCode == http.StatusUnauthorized):
			return 0, nil, fmt.Errorf("the API rejects the client id or secret: %s", token.ErrorCode)
		case errors.As(err, &token):
			after = token.Response.Header.Get("Retry-After")
		case err == nil:
			after = response.Header.Get("Retry-After")
			body, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
			status = response.StatusCode
			if err == nil && status != http.StatusUnauthorized && status != http.StatusTooManyRequests && status < 500 {
				return status, body, nil
			}
		}
		pause := retryAfter(after)
		if pause <= 0 {
			pause = wait
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(pause):
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// retryAfter returns how long a Retry-After says to wait, in seconds or until a date, 0
// without one.
func retryAfter(after string) time.Duration {
	if seconds, err := strconv.ParseUint(after, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(after); err == nil {
		return time.Until(at)
	}
	return 0
}

// code returns the code of a problem that the API responds with.
func code(answer []byte) string {
	var problem client.Problem
	if json.Unmarshal(answer, &problem) != nil || problem.Code == "" {
		return "without a code"
	}
	return problem.Code
}
