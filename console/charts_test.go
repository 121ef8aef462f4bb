package console_test

import (
	"net/http"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
)

// Charts that are loaded after a page are at its end: nothing moves when they come.
func TestChartsMoveNothing(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 60, s.Clock.Now().Add(-time.Hour))
	b := s.Browser(t)
	b.SignIn("ann")
	for _, path := range []string{
		"/console/work-orders", "/console/deliveries", "/console/webhooks/" + s.ID("erp_hook") + "/deliveries", "/console/work-orders/" + record, "/console",
	} {
		for _, width := range []int64{1280, 390} {
			// A busy browser sometimes shows a table before it has read all rows, and its columns move.
			// Charts that move a page move it each time.
			moved := b.LayoutShift(path, width)
			for n := 0; n < 4 && moved >= 0.02; n++ {
				moved = min(moved, b.LayoutShift(path, width))
			}
			if moved >= 0.02 {
				t.Errorf("%s at %d px moves by %.3f", path, width, moved)
			}
		}
	}
}
