package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
)

// One command redelivers what failed or is retrying at all addresses, and only as the operator.
func TestRedeliverAtAllAddresses(t *testing.T) {
	h := newHarness(t)
	record := servicetest.Create(t, h.Fixture)
	h.SetDeliveries(models.DeliveryDelivered, `true`)
	h.Exec(`SELECT partitions.make((now() AT TIME ZONE 'UTC')::date - 1, 3)`)
	h.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 0, 1, time.Now().Add(-time.Hour))
	h.PlantDeliveries("outsider_hook", record, models.EventWorkOrderUpdated, models.DeliveryRetrying, 0, 1, time.Now().Add(-3*time.Hour))
	for since, want := range map[string][]any{"2h": {h.ID("erp_hook")}, "1m": {}} {
		if got := h.json("deliveries", "redeliver", "--all-addresses", "--since", since); !reflect.DeepEqual(got, map[string]any{"webhook_ids": want}) {
			t.Errorf("since %s it is ordered at %v, want %v", since, got, want)
		}
	}
	if out, err := h.run("deliveries", "redeliver", "--all-addresses", "--since", "4h"); err != nil || !strings.Contains(out, "2 addresses") {
		t.Errorf("since 4h it prints %q, %v", out, err)
	}
	if got := h.lastLog(h.ID("outsider_hook")); got != models.OperatorName+" delivery.redelivered" {
		t.Errorf("the log has %q", got)
	}
	for _, rest := range []string{" --since 1h --address " + h.ID("erp_hook"), " --since 1h --as " + h.ID("ann")} {
		h.reject(map[string]string{"deliveries redeliver --all-addresses" + rest: ""})
	}
	for _, rest := range []string{"", " dlv_x --since 1h", " --address " + h.ID("erp_hook"), " --all-addresses", " --all-addresses --since 1h dlv_x"} {
		h.reject(map[string]string{"deliveries redeliver" + rest: "give a delivery's id, or an address"})
	}
}
