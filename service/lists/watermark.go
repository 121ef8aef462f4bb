package lists

import (
	"context"
	"time"

	"millwright/service/store"
)

// watermark is a moment at which every transaction below Xid had ended. Its row follows
// their commits in the WAL, so a database that has the row has each of them with the
// same outcome. After a failover to a lagging standby or a restore to an earlier time,
// the later watermarks are unknown, and with them the tokens that name them.
type watermark struct {
	Nonce string
	Xid   uint64
}

const (
	// watermarkInterval is the age after which a read of changes writes a new watermark.
	watermarkInterval = time.Second
	// watermarkMargin limits how far the clock of an API server may be ahead of the database's: a
	// change with the time t is above every watermark older than t by the margin.
	watermarkMargin = 10 * time.Second
)

// newWatermark writes a watermark, whose Xid is at least every xmin horizon read before the call. The
// snapshot is older than the watermark's time, so the time holds for its transactions. Errors: unavailable.
func newWatermark(ctx context.Context, s *store.Store) (written watermark, err error) {
	err = s.Pool.QueryRow(ctx, `INSERT INTO watermarks DEFAULT VALUES RETURNING nonce::text, xid`).Scan(&written.Nonce, &written.Xid)
	return written, s.Translate(err)
}

// WriteWatermark writes a watermark for times in changed_since. Housekeeping calls it every minute,
// so that there are watermarks while no client reads changes, and the age of an xmin horizon that
// does not advance is known. Errors: unavailable.
func (s *Lists) WriteWatermark(ctx context.Context) error {
	_, err := newWatermark(ctx, s.Store)
	return err
}
