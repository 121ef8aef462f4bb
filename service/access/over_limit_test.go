package access_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"millwright/models"
	"millwright/service/access"
)

func TestRejectionsOverALimitAreDelayed(t *testing.T) {
	for name, c := range map[string]struct {
		delay, want time.Duration
		gone        bool // the caller
	}{
		"a server":              {access.DefaultOverLimitDelay, access.DefaultOverLimitDelay, false},
		"a caller that is gone": {access.DefaultOverLimitDelay, 0, true},
		"without a delay":       {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				if c.gone {
					hangUp()
				}
				started := time.Now()
				if err := access.RejectOverLimit(ctx, c.delay); models.CodeOf(err) != models.CodeRateLimited {
					t.Errorf("the error is %v", err)
				}
				if took := time.Since(started); took != c.want {
					t.Errorf("the rejection takes %s, want %s", took, c.want)
				}
			})
		})
	}
}
