package access

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"millwright/models"
	"millwright/service/store"
)

func TestRejectionsOverALimitAreDelayed(t *testing.T) {
	for name, c := range map[string]struct {
		delay, want time.Duration
		gone        bool // the caller
	}{
		"a server":              {DefaultOverLimitDelay, DefaultOverLimitDelay, false},
		"a caller that is gone": {DefaultOverLimitDelay, 0, true},
		"without a delay":       {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				if c.gone {
					hangUp()
				}
				s := New(&store.Store{Options: store.Options{OverLimitDelay: c.delay}})
				started := time.Now()
				if err := s.overLimit(ctx); models.CodeOf(err) != models.CodeRateLimited {
					t.Errorf("the error is %v", err)
				}
				if took := time.Since(started); took != c.want {
					t.Errorf("the rejection takes %s, want %s", took, c.want)
				}
			})
		})
	}
}
