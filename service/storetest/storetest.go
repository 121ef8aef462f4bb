// Package storetest reaches into a Store for tests: it holds writes up, so that they share a
// transaction, and shows what waits. Only tests import it.
package storetest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"millwright/service/store"
)

// WaitForLocks makes writes that run alone and reads wait for their locks however busy
// the machine is. Call it before the first write.
func WaitForLocks(s *store.Store) {
	s.Writer.LockTimeout, s.Writer.StatementTimeout, s.ReadTimeout = time.Minute, time.Minute, time.Minute
}

// HoldWrites makes concurrent writes wait until release is called, so that they share the
// next transaction.
func HoldWrites(ctx context.Context, s *store.Store) (release func()) {
	s.Writer.MaxWait = time.Minute
	running, until := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.WriteTogether(ctx, "", nil, func(context.Context, *store.Tx) error {
			close(running)
			<-until
			return errors.New("held")
		})
	}()
	<-running
	return func() { close(until) }
}

// WritesWaiting returns how many writes wait for a transaction.
func WritesWaiting(s *store.Store) int { return s.Writer.Waiting() }

// Panic is a write that panics after it has written.
func Panic(ctx context.Context, s *store.Store) error {
	return s.WriteTogether(ctx, "", nil, func(ctx context.Context, t *store.Tx) error {
		t.Queue(`INSERT INTO dirty_records (record_id, since) VALUES ('wo_01kjq7k69re00b2a00av14smbj', now())`)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		panic("a bug")
	})
}

// CallsWaiting returns how many calls wait for others of their organization.
func CallsWaiting(s *store.Store) int { return s.Calls.Waiting() }

// Numbered replaces the parameters @name of a query by their positions among the names.
func Numbered(sql string, names ...string) string {
	for n, name := range names {
		sql = strings.ReplaceAll(sql, "@"+name, "$"+strconv.Itoa(n+1))
	}
	return sql
}
