package upkeep_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"millwright/service"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// secretsOf returns the secrets that sign a delivery to the address.
func secretsOf(t *testing.T, s *service.Service, webhookID string) ([]string, error) {
	t.Helper()
	claim, err := s.Webhooks.Claim(t.Context(), webhooks.Lease{WebhookID: webhookID, Epoch: math.MaxInt64}, webhooks.ClaimRequest{Limit: 1})
	return claim.Address.Secrets, err
}

func TestAfterResealTheOldKeyIsNotNeeded(t *testing.T) {
	f := servicetest.New(t)
	erp, reader, updates := f.ID("erp_hook"), f.ID("reader_hook"), f.ID("reader_updates")
	for _, id := range []string{erp, erp, reader, reader} {
		_, err := f.Webhooks.RenewWebhookSecret(t.Context(), store.Operator(), store.NoKey, id)
		servicetest.Must(t, err)
	}
	f.Exec(`UPDATE webhooks SET previous_secret_until = $2, older_secret_until = $2 WHERE id = $1`, reader, servicetest.Start) // expired
	want := map[string][]string{}
	for _, id := range []string{erp, reader, updates} {
		var err error
		if want[id], err = secretsOf(t, f.Service, id); err != nil {
			t.Fatal(err)
		}
	}
	if len(want[erp]) != 3 || len(want[reader]) != 1 {
		t.Fatalf("erp signs with %d secrets, reader with %d", len(want[erp]), len(want[reader]))
	}

	newer := f.NewInstance(servicetest.SealedWith(t, servicetest.NewerKey))
	if n, err := newer.Upkeep.Reseal(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), erp) || !strings.Contains(err.Error(), "SECRET_SEALING_KEYS") {
		t.Errorf("without the old key: %d, %v", n, err)
	}
	both := f.NewInstance(servicetest.SealedWith(t, servicetest.NewerKey+","+servicetest.SealingKeys))
	all := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	if n, err := both.Upkeep.Reseal(t.Context()); n != all || err != nil {
		t.Errorf("with both keys: %d, %v, want %d", n, err, all)
	}
	if n, err := both.Upkeep.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	for id, secrets := range want {
		if got, err := secretsOf(t, newer, id); err != nil || strings.Join(got, " ") != strings.Join(secrets, " ") {
			t.Errorf("without the old key %s signs with other secrets than before: %v", id, err)
		}
		if _, err := secretsOf(t, f.Service, id); err == nil {
			t.Errorf("%s is still sealed with the old key", id)
		}
	}
	servicetest.Expect(t, "old secrets are kept",
		servicetest.Value[int](f, `SELECT count(previous_secret) + count(older_secret) FROM webhooks`), 2)
}

func TestResealKeepsSecretsItCannotOpen(t *testing.T) {
	f := servicetest.New(t)
	erp, reader := f.ID("erp_hook"), f.ID("reader_hook")
	foreign := bytes.Repeat([]byte{7}, 60)
	f.Exec(`UPDATE webhooks SET secret_sealed = 'lost'::bytea || '\x00' || $2 WHERE id = $1`, erp, foreign)
	both := f.NewInstance(servicetest.SealedWith(t, servicetest.NewerKey+","+servicetest.SealingKeys))
	all := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	n, err := both.Upkeep.Reseal(t.Context())
	if n != all-1 || err == nil || !strings.HasSuffix(err.Error(), "renew the secrets of "+erp) {
		t.Errorf("%d sealed, %v; want all but %s", n, err, erp)
	}
	_, err = secretsOf(t, f.NewInstance(servicetest.SealedWith(t, servicetest.NewerKey)), reader)
	servicetest.WantCode(t, "the others are not sealed with the new key", err, "")
	if kept := servicetest.Value[bool](f, `SELECT secret_sealed = 'lost'::bytea || '\x00' || $2 FROM webhooks WHERE id = $1`, erp, foreign); !kept {
		t.Error("a secret that cannot be opened was changed")
	}
	// It ends even if no secret can be opened.
	f.Exec(`UPDATE webhooks SET secret_sealed = 'lost'::bytea || '\x00' || $1`, foreign)
	if n, err := both.Upkeep.Reseal(t.Context()); n != 0 || err == nil {
		t.Errorf("with no secret that opens: %d, %v", n, err)
	}
}
