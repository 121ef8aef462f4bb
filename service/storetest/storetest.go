// Package storetest reaches into a Store for tests. Only tests import it.
package storetest

import (
	"strconv"
	"strings"
	"time"

	"millwright/service/store"
)

// WaitForLocks makes writes and reads wait for their locks however busy
// the machine is. Call it before the first write.
func WaitForLocks(s *store.Store) {
	s.LockTimeout, s.StatementTimeout, s.ReadTimeout = time.Minute, time.Minute, time.Minute
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

// WritesWaiting returns how many writes wait for another one of their row or key.
func WritesWaiting(s *store.Store) int { return s.Named.Waiting() }
