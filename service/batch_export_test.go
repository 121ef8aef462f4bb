package service

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// WaitForLocks makes writes that run alone and reads wait for their locks however busy
// the machine is. Call it before the first write.
func (s *Service) WaitForLocks() {
	s.writer.LockTimeout, s.writer.StatementTimeout, s.readTimeout = time.Minute, time.Minute, time.Minute
}

// HoldWrites makes concurrent writes wait until release is called, so that they share the
// next transaction.
func (s *Service) HoldWrites(ctx context.Context) (release func()) {
	s.writer.MaxWait = time.Minute
	running, until := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.writeTogether(ctx, "", nil, func(context.Context, *tx) error {
			close(running)
			<-until
			return errors.New("held")
		})
	}()
	<-running
	return func() { close(until) }
}

// WritesWaiting returns how many writes wait for a transaction.
func (s *Service) WritesWaiting() int { return s.writer.Waiting() }

// Panic is a write that panics after it has written.
func (s *Service) Panic(ctx context.Context) error {
	return s.writeTogether(ctx, "", nil, func(ctx context.Context, t *tx) error {
		t.Queue(`INSERT INTO dirty_records (record_id, since) VALUES ('wo_01kjq7k69re00b2a00av14smbj', now())`)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		panic("a bug")
	})
}

// CallsWaiting returns how many calls wait for others of their organization.
func (s *Service) CallsWaiting() int { return s.calls.Waiting() }

func numberedNames(sql string, names ...string) string {
	for n, name := range names {
		sql = strings.ReplaceAll(sql, "@"+name, "$"+strconv.Itoa(n+1))
	}
	return sql
}
