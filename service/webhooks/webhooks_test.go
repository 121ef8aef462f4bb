package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// created creates an address of the integration as an operator.
func created(t *testing.T, f *servicetest.Fixture, integration, url string, events ...models.EventType) webhooks.Webhook {
	t.Helper()
	made, err := f.Webhooks.CreateWebhook(t.Context(), store.Operator(), store.NoKey, f.ID(integration), webhooks.NewWebhook{URL: url, Events: events})
	servicetest.Must(t, err)
	return made
}

// logged returns the Log Records of webhooks and their deliveries: actor, action, record.
func logged(f *servicetest.Fixture) []string {
	return servicetest.Value[[]string](f, `
		SELECT coalesce(array_agg(concat_ws(' ', coalesce(actor_id, '-'), actor_name, action, record_id, organization_id) ORDER BY id), '{}')
		FROM log_records WHERE action LIKE 'webhook.%' OR action LIKE 'delivery.%'`)
}

func errorOf(err error) *models.Error {
	rejection, _ := errors.AsType[*models.Error](err)
	return rejection
}

func TestListWebhooks(t *testing.T) {
	f := servicetest.New(t)
	f.Clock.Advance(time.Second)
	made := created(t, f, "creator", "http://127.0.0.1:9/creator", models.EventIssueCreated, models.EventPing)
	all, err := f.Webhooks.List(t.Context(), "")
	servicetest.Must(t, err)
	if len(all) != 6 || all[5].ID != made.ID || !slices.IsSortedFunc(all, func(a, b webhooks.WebhookHealth) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("listed are %v, want six, oldest first", all)
	}
	for name, test := range map[string]struct {
		integration string
		want        int
		code        models.Code
	}{
		"one integration":                  {f.ID("reader"), 2, ""},
		"an integration without addresses": {f.ID("roofer"), 0, ""},
		"no such integration":              {"nonsense", 0, models.CodeNotFound},
	} {
		found, err := f.Webhooks.List(t.Context(), test.integration)
		servicetest.WantCode(t, name, err, test.code)
		servicetest.Expect(t, name, len(found), test.want)
	}

	// Exactly the fields of docs/commands.md.
	line, err := json.Marshal(all[len(all)-1])
	servicetest.Must(t, err)
	want := fmt.Sprintf(`{"id":%q,"integration_id":%q,"url":"http://127.0.0.1:9/creator","events":["issue.created","ping"],`+
		`"enabled":true,"off_reason":null,"off_at":null,`+
		`"failing_since":null,"last_at":null,"last_status":null,"last_error":null,"last_success_at":null,"held_reason":null,"waits_until":null}`, made.ID, f.ID("creator"))
	servicetest.Expect(t, "listed", string(line), want)

	f.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, f.ID("creator"))
	if left, err := f.Webhooks.List(t.Context(), ""); err != nil || len(left) != len(all)-1 {
		t.Errorf("with its integration deleted, %d addresses are listed (%v), want %d", len(left), err, len(all)-1)
	}
	_, err = f.Webhooks.List(t.Context(), f.ID("creator"))
	servicetest.WantCode(t, "a deleted integration", err, models.CodeNotFound)
}

func TestANewWebhookGetsEventsSignedWithItsSecret(t *testing.T) {
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	made, err := f.Webhooks.CreateWebhook(t.Context(), ann, store.NoKey, f.ID("erp"), webhooks.NewWebhook{
		URL: "http://127.0.0.1:9/second", Events: []models.EventType{models.EventWorkOrderCreated},
	})
	servicetest.Must(t, err)
	if _, err := webhook.ParseSecret(made.Secret); err != nil || !made.Enabled || !models.IsID(made.ID, models.PrefixWebhook) {
		t.Errorf("made is %+v: %v", made, err)
	}
	servicetest.Create(t, f)
	f.Acme.IDs["second_hook"] = made.ID
	claimed := servicetest.Claim(t, f, "second_hook")
	if len(claimed.Deliveries) != 1 || claimed.Address.URL != made.URL || !slices.Equal(claimed.Address.Secrets, []string{made.Secret}) {
		t.Errorf("claimed %+v", claimed)
	}
	want := []string{fmt.Sprintf("%s Ann Field webhook.created %s %s", f.ID("ann"), made.ID, f.Acme.OrganizationID)}
	if got := logged(f); !slices.Equal(got, want) {
		t.Errorf("logged is %q, want %q", got, want)
	}
}

// webhookWrites returns every write of an address and its deliveries.
func webhookWrites(f *servicetest.Fixture, integrationID, webhookID, deliveryID string) map[string]func(context.Context, store.Actor) error {
	long := models.TimeOf(servicetest.Start.Add(-time.Hour))
	url := "http://127.0.0.1:9/changed"
	return map[string]func(context.Context, store.Actor) error{
		"create": func(ctx context.Context, a store.Actor) error {
			_, err := f.Webhooks.CreateWebhook(ctx, a, store.NoKey, integrationID, webhooks.NewWebhook{URL: url, Events: []models.EventType{models.EventPing}})
			return err
		},
		"change": func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.ChangeWebhook(ctx, a, store.NoKey, webhookID, webhooks.WebhookChange{URL: &url}))
		},
		"renew the secret": func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.RenewWebhookSecret(ctx, a, store.NoKey, webhookID))
		},
		"test": func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.BeginWebhookTest(ctx, a, store.NoKey, webhookID))
		},
		"redeliver one": func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.RedeliverDelivery(ctx, a, store.NoKey, deliveryID))
		},
		"redeliver since": func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.RedeliverSince(ctx, a, store.NoKey, webhookID, long))
		},
		"turn off": func(ctx context.Context, a store.Actor) error {
			return servicetest.ErrorOf(f.Webhooks.DisableWebhook(ctx, a, store.NoKey, webhookID, ""))
		},
		"turn on": func(ctx context.Context, a store.Actor) error {
			_, _, err := f.Webhooks.EnableWebhook(ctx, a, store.NoKey, webhookID, &long)
			return err
		},
		"delete": func(ctx context.Context, a store.Actor) error {
			return f.Webhooks.DeleteWebhook(ctx, a, store.NoKey, webhookID)
		},
	}
}

// inOrder is an order in which all writes are possible.
var inOrder = []string{"create", "change", "renew the secret", "test", "redeliver one", "redeliver since", "turn off", "turn on", "delete"}

func TestManagingWebhooksRequiresThePermission(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	writes := webhookWrites(f, f.ID("erp"), f.ID("erp_hook"), servicetest.NewDelivery(t, f).DeliveryID)
	if len(writes) != len(inOrder) {
		t.Fatal("a write is left out of the order")
	}
	for name, test := range map[string]struct {
		actor store.Actor
		code  models.Code
	}{
		"a person without the permission":  {servicetest.Person(t, f, "ray"), models.CodePermissionDenied},
		"another organization's person":    {servicetest.Person(t, f, "pia"), models.CodeNotFound},
		"the integration itself":           {f.Actor("erp"), models.CodePermissionDenied},
		"another organization's":           {f.Actor("dispatch"), models.CodeNotFound},
		"no actor":                         {store.Actor{}, models.CodeNotFound},
		"one who calls himself Millwright": {store.Actor{IdentityID: f.ID("zed"), OrganizationID: f.Acme.OrganizationID, Name: "Millwright"}, models.CodePermissionDenied},
	} {
		for _, write := range inOrder {
			servicetest.WantCode(t, name+", "+write, writes[write](t.Context(), test.actor), test.code)
		}
	}
	if left := logged(f); len(left) > 0 {
		t.Errorf("a rejected write is logged: %q", left)
	}

	for name, ids := range map[string][3]string{
		"nothing has the id": {"idn_00000000000000000000000000", "whk_00000000000000000000000000", "dlv_01kz0000000000000000000000"},
		"no ids":             {"nonsense\x00", "whk_\x00", "\xff"},
	} {
		for write, do := range webhookWrites(f, ids[0], ids[1], ids[2]) {
			servicetest.WantCode(t, name+", "+write, do(t.Context(), store.Operator()), models.CodeNotFound)
		}
	}
	f.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, f.ID("erp"))
	for write, do := range writes {
		servicetest.WantCode(t, "a deleted integration, "+write, do(t.Context(), store.Operator()), models.CodeNotFound)
	}
	f.Exec(`UPDATE integrations SET deleted_at = NULL WHERE id = $1`, f.ID("erp"))

	for _, write := range inOrder[:len(inOrder)-1] {
		servicetest.WantCode(t, "an administrator, "+write, writes[write](t.Context(), servicetest.Person(t, f, "ann")), "")
	}
	f.Exec(`UPDATE integrations SET owners = ARRAY[$1] WHERE id = $2`, f.ID("ivy"), f.ID("erp"))
	for _, write := range inOrder {
		servicetest.WantCode(t, "an owner, "+write, writes[write](t.Context(), servicetest.Person(t, f, "ivy")), "")
	}
}

func TestChangesOfWebhooksAreLogged(t *testing.T) {
	f := servicetest.New(t)
	delivery := servicetest.NewDelivery(t, f)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, delivery, 500))
	writes := webhookWrites(f, f.ID("erp"), f.ID("erp_hook"), delivery.DeliveryID)
	for _, write := range inOrder {
		servicetest.Must(t, writes[write](t.Context(), store.Operator()))
	}
	var want []string
	for _, action := range []string{
		"webhook.created", "webhook.changed", "webhook.secret_renewed", "webhook.tested", "delivery.redelivered", "delivery.redelivered",
		"webhook.turned_off", "webhook.turned_on", "webhook.deleted",
	} {
		want = append(want, "- Millwright "+action+" "+f.ID("erp_hook")+" "+f.Acme.OrganizationID)
	}
	got := logged(f)
	if len(got) > 0 { // the created one has another id
		got[0] = want[0]
	}
	if !slices.Equal(got, want) {
		t.Errorf("logged is\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := servicetest.Value[int](f, `SELECT count(*) FROM log_records l WHERE l::text LIKE '%whsec%'`); n > 0 {
		t.Error("a signing secret is in the log")
	}
}

func TestInvalidWebhooksAreRejected(t *testing.T) {
	f := servicetest.New(t)
	f.Service = f.NewInstance(func(o *store.Options) {
		o.AddressRules = webhook.Rules{OwnHosts: []string{"api.millwright.example:443"}}
	})
	good := []models.EventType{models.EventWorkOrderCreated, models.EventPing}
	const url = "https://hooks.example.com/x"
	for name, test := range map[string]struct {
		url     string
		events  []models.EventType
		pointer string
		detail  string
	}{
		"no address":         {"", good, "/url", "Enter an address."},
		"plain http":         {"http://hooks.example.com/", good, "/url", "The address must start with https://."},
		"credentials":        {"https://user:hunter2@hooks.example.com/", good, "/url", "The address must not contain a user name or password."},
		"loopback":           {"https://127.0.0.1/", good, "/url", ""},
		"the service's own":  {"https://api.millwright.example/v1", good, "/url", "This address belongs to the service itself."},
		"too long":           {url + strings.Repeat("x", 2048), good, "/url", ""},
		"no events":          {url, nil, "/events", "Name at least one event type."},
		"an empty list":      {url, []models.EventType{}, "/events", "Name at least one event type."},
		"an unknown event":   {url, []models.EventType{models.EventPing, "work_order.eaten"}, "/events/1", `There is no event type "work_order.eaten"; choose from work_order.created`},
		"an event repeated":  {url, []models.EventType{models.EventPing, models.EventPing}, "/events/1", "The event type ping is named twice."},
		"good with one ping": {url, good, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, createErr := f.Webhooks.CreateWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("roofer"), webhooks.NewWebhook{URL: test.url, Events: test.events})
			_, changeErr := f.Webhooks.ChangeWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), webhooks.WebhookChange{URL: &test.url, Events: test.events})
			if test.events == nil {
				changeErr = createErr // nil leaves a change's events alone
			}
			for what, err := range map[string]error{"creating": createErr, "changing": changeErr} {
				if test.pointer == "" {
					if err != nil {
						t.Errorf("%s is rejected: %v", what, err)
					}
					continue
				}
				servicetest.WantCode(t, what, err, models.CodeValidationFailed)
				rejection := errorOf(err)
				if rejection == nil || len(rejection.Fields) != 1 || rejection.Fields[0].Pointer != test.pointer ||
					!strings.HasSuffix(rejection.Fields[0].Detail, ".") || !strings.Contains(rejection.Fields[0].Detail, test.detail) {
					t.Errorf("%s is rejected with %+v, want %s: %s", what, rejection, test.pointer, test.detail)
				} else if strings.Contains(rejection.Fields[0].Detail, "hunter2") {
					t.Errorf("the sentence repeats the password: %s", rejection.Fields[0].Detail)
				}
			}
		})
	}
	t.Run("everything wrong is said at once", func(t *testing.T) {
		_, err := f.Webhooks.CreateWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("roofer"), webhooks.NewWebhook{URL: "ftp://x"})
		if rejection := errorOf(err); rejection == nil || len(rejection.Fields) != 2 {
			t.Errorf("the rejection is %+v", err)
		}
	})
}

// names is a resolver that knows a few names.
type names struct {
	known map[string]string
	mu    sync.Mutex
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	if ip, ok := n.known[host]; ok {
		return []netip.Addr{netip.MustParseAddr(ip)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func TestHostNamesAreResolvedBeforeAWebhookIsSaved(t *testing.T) {
	resolver := &names{known: map[string]string{"good.example.com": "93.184.215.14", "bad.example.com": "10.0.0.7"}}
	f := servicetest.New(t)
	f.Service = f.NewInstance(func(o *store.Options) { o.AddressRules = webhook.Rules{Resolver: resolver} })
	if _, err := f.Imports.Run(t.Context(), []byte(`
organization: {key: acme}
integrations: [{key: erp, webhooks: [{key: erp_hook, url: "https://bad.example.com/x"}]}]
`)); err != nil || len(resolver.asked) > 0 {
		t.Fatalf("an import asks for %v: %v", resolver.asked, err)
	}
	in := webhooks.NewWebhook{URL: "https://bad.example.com/x", Events: []models.EventType{models.EventPing}}
	_, err := f.Webhooks.CreateWebhook(t.Context(), servicetest.Person(t, f, "zed"), store.NoKey, f.ID("erp"), in)
	servicetest.WantCode(t, "a person without the permission", err, models.CodePermissionDenied)
	_, err = f.Webhooks.ChangeWebhook(t.Context(), servicetest.Person(t, f, "zed"), store.NoKey, f.ID("erp_hook"), webhooks.WebhookChange{URL: &in.URL})
	servicetest.WantCode(t, "a person without the permission", err, models.CodePermissionDenied)
	if len(resolver.asked) > 0 {
		t.Errorf("names are looked up for callers who may not save them: %v", resolver.asked)
	}
	for url, detail := range map[string]string{
		"https://bad.example.com/x":  "bad.example.com",
		"https://none.example.com/x": "The name none.example.com does not exist in DNS.",
		"https://good.example.com/x": "",
	} {
		in.URL = url
		_, err := f.Webhooks.CreateWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("roofer"), in)
		if detail == "" {
			servicetest.WantCode(t, url, err, "")
			continue
		}
		rejection := errorOf(err)
		if rejection == nil || len(rejection.Fields) != 1 || !strings.Contains(rejection.Fields[0].Detail, detail) {
			t.Errorf("%s: %+v", url, err)
		}
	}
}

func TestAnIntegrationHasFiveWebhooks(t *testing.T) {
	f := servicetest.New(t)
	var made []webhooks.Webhook
	for n := range 4 {
		made = append(made, created(t, f, "roofer", fmt.Sprintf("http://127.0.0.1:9/%d", n), models.EventPing))
	}
	// Two concurrent creations for the last slot.
	in := webhooks.NewWebhook{URL: "http://127.0.0.1:9/last", Events: []models.EventType{models.EventPing}}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() {
			_, errs[i] = f.Webhooks.CreateWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("roofer"), in)
		})
	}
	both.Wait()
	if models.CodeOf(errs[0]) == models.CodeOf(errs[1]) {
		t.Fatalf("both had the same answer: %v and %v", errs[0], errs[1])
	}
	for _, err := range errs {
		if err != nil && (models.CodeOf(err) != models.CodeValidationFailed || err.Error() != "An integration has at most 5 webhook addresses.") {
			t.Errorf("the sixth is rejected with %v", err)
		}
	}
	// Deleting one frees its slot.
	servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, made[1].ID))
	created(t, f, "roofer", in.URL, models.EventPing)
	servicetest.Expect(t, "addresses",
		servicetest.Value[int](f, `SELECT count(*) FROM webhooks WHERE integration_id = $1`, f.ID("roofer")), models.MaxWebhooks)
}

func TestChangeWebhook(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	url := "http://127.0.0.1:9/moved"
	changed, err := f.Webhooks.ChangeWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), webhooks.WebhookChange{URL: &url})
	if err != nil || changed.URL != url || len(changed.Events) != 9 || changed.Secret != "" {
		t.Fatalf("changed is %+v, %v", changed, err)
	}
	if claimed := servicetest.Claim(t, f, "erp_hook"); claimed.Address.URL != url || len(claimed.Deliveries) != 1 {
		t.Errorf("what waited goes to %q", claimed.Address.URL)
	}
	events := []models.EventType{models.EventIssueCreated}
	for range 2 { // the second time nothing is left to change
		changed, err = f.Webhooks.ChangeWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), webhooks.WebhookChange{Events: events})
		servicetest.Must(t, err)
		if !slices.Equal(changed.Events, events) || changed.URL != url {
			t.Errorf("changed is %+v", changed)
		}
	}
	servicetest.Create(t, f)
	if claimed := servicetest.Claim(t, f, "erp_hook"); len(claimed.Deliveries) != 0 {
		t.Errorf("%d deliveries wait; both are of events that are not wanted any more", len(claimed.Deliveries))
	}
	servicetest.Expect(t, "changes are logged", len(logged(f)), 2)
}

func TestDeletingAWebhookDeletesItsDeliveries(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Create(t, f)
	servicetest.Create(t, f)
	failing := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, failing, 500))
	f.Wakes.Take()
	servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook")))
	_, err := f.Webhooks.LoadDelivery(t.Context(), failing.DeliveryID)
	servicetest.WantCode(t, "the state of its delivery", err, models.CodeNotFound)
	_, err = f.Webhooks.Deliveries(t.Context(), webhooks.DeliveryFilter{WebhookID: f.ID("erp_hook")})
	servicetest.WantCode(t, "the list of its deliveries", err, models.CodeNotFound)
	_, err = f.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, failing.DeliveryID)
	servicetest.WantCode(t, "redelivering its delivery", err, models.CodeNotFound)
	if all, err := f.Webhooks.Deliveries(t.Context(), webhooks.DeliveryFilter{}); err != nil || len(all) != 2 {
		t.Errorf("%d deliveries are listed, want the other address's: %v", len(all), err)
	}
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got != (upkeep.RemovalResult{Deliveries: 2}) {
		t.Errorf("housekeeping removed %+v, want both deliveries", got)
	}
	if work := f.Wakes.Take(); !slices.Contains(work, store.WakeTarget{Kind: store.TargetDelivery, ID: failing.DeliveryID}) {
		t.Errorf("woken are %v, want the workflow of the failing delivery", work)
	}
	servicetest.Expect(t, "deliveries are left",
		servicetest.Value[int](f, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1`, f.ID("erp_hook")), 0)
	if claimed := servicetest.Claim(t, f, "erp_hook"); claimed.Address.ID != "" {
		t.Error("a mailbox still finds the address")
	}
	servicetest.Expect(t, "deliveries of another address", len(servicetest.Claim(t, f, "reader_hook").Deliveries), 2)
}

// Each secret signs until 24 hours after its own renewal, whatever follows, so that no receiver is
// cut off. There are never more than three.
func TestOldSecretsSignForADayEach(t *testing.T) {
	const day, ms = 24 * time.Hour, time.Millisecond
	// A step renews after the wait, or does not; then the secrets sign that have these numbers in
	// order of their creation.
	type step struct {
		wait   time.Duration
		renew  string // "yes", "rejected" or "" for no
		signed []int
	}
	f := servicetest.New(t)
	id := f.ID("erp_hook")
	for name, steps := range map[string][]step{
		"once": {
			{0, "yes", []int{1, 0}}, {day - ms, "", []int{1, 0}}, {ms, "", []int{1}},
		},
		"again after the day": {
			{0, "yes", []int{1, 0}}, {day, "yes", []int{2, 1}}, {day, "", []int{2}},
		},
		"twice at once": {
			{0, "yes", []int{1, 0}}, {0, "yes", []int{2, 1, 0}}, {day - ms, "", []int{2, 1, 0}}, {ms, "", []int{2}},
		},
		"twice within a day": {
			{0, "yes", []int{1, 0}}, {time.Hour, "yes", []int{2, 1, 0}}, {23*time.Hour - ms, "", []int{2, 1, 0}},
			{ms, "", []int{2, 1}}, {time.Hour - ms, "", []int{2, 1}}, {ms, "", []int{2}},
		},
		"three times within a day": {
			{0, "yes", []int{1, 0}}, {time.Hour, "yes", []int{2, 1, 0}}, {time.Hour, "rejected", []int{2, 1, 0}},
			{22*time.Hour - ms, "rejected", []int{2, 1, 0}}, {ms, "yes", []int{3, 2, 1}}, {time.Hour, "yes", []int{4, 3, 2}}, {day, "", []int{4}},
		},
		"every twelve hours": {
			{0, "yes", []int{1, 0}}, {12 * time.Hour, "yes", []int{2, 1, 0}}, {12 * time.Hour, "yes", []int{3, 2, 1}}, {12 * time.Hour, "yes", []int{4, 3, 2}},
		},
		"after two had ended": {
			{0, "yes", []int{1, 0}}, {time.Hour, "yes", []int{2, 1, 0}}, {3 * day, "yes", []int{3, 2}}, {time.Hour, "yes", []int{4, 3, 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.Clock.Advance(2 * day) // one secret is left
			made := servicetest.Claim(t, f, "erp_hook").Address.Secrets
			for i, step := range steps {
				f.Clock.Advance(step.wait)
				if step.renew != "" {
					renewed, err := f.Webhooks.RenewWebhookSecret(t.Context(), store.Operator(), store.NoKey, id)
					if step.renew == "rejected" {
						servicetest.WantCode(t, "one renewal too many", err, models.CodeValidationFailed)
						oldest := servicetest.Value[time.Time](f, `SELECT older_secret_until FROM webhooks WHERE id = $1`, id)
						if err != nil && !strings.Contains(err.Error(), models.TimeOf(oldest).String()) {
							t.Errorf("the rejection does not say when: %v", err)
						}
					} else if _, parseErr := webhook.ParseSecret(renewed.Secret); err != nil || parseErr != nil || renewed.ID != id {
						t.Fatalf("step %d renewed %+v, %v", i, renewed, err)
					} else {
						made = append(made, renewed.Secret)
					}
				}
				var want []string
				for _, n := range step.signed {
					want = append(want, made[n])
				}
				if got := servicetest.Claim(t, f, "erp_hook").Address.Secrets; !slices.Equal(got, want) {
					t.Errorf("after step %d %d secrets sign: %v, want %v of %v", i, len(got), got, step.signed, made)
				}
				wantSecretsUntil(t, f, len(step.signed)-1)
			}
		})
	}
}

// wantSecretsUntil checks the number of old secrets that the webhook address page shows.
func wantSecretsUntil(t *testing.T, f *servicetest.Fixture, old int) {
	t.Helper()
	h, err := f.Webhooks.ManagedWebhook(t.Context(), servicetest.Person(t, f, "ann"), f.ID("erp_hook"))
	servicetest.Must(t, err)
	shown := 0
	for _, until := range []*models.Time{h.PreviousSecretUntil, h.OlderSecretUntil} {
		if until != nil {
			shown++
		}
	}
	servicetest.Expect(t, "old secrets on its page", shown, old)
}
