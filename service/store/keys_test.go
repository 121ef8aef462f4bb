package store_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// FuzzVault tries other owners and what was changed.
func TestVault(t *testing.T) {
	const other = "new:YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
	old, rotated, lost := newTestVault(t, servicetest.SealingKeys), newTestVault(t, other+","+servicetest.SealingKeys), newTestVault(t, other)
	sealed, err := old.Seal([]byte("whsec_x"), "whk_1", rand.Reader)
	servicetest.Must(t, err)
	if strings.Contains(string(sealed), "whsec_x") {
		t.Error("the sealed text shows the secret")
	}
	for name, vault := range map[string]*store.Vault{"the same keys": old, "rotated keys": rotated} {
		if got, err := vault.Open(sealed, "whk_1"); err != nil || string(got) != "whsec_x" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, attempt := range map[string]struct {
		vault  *store.Vault
		sealed []byte
	}{"a lost key": {lost, sealed}, "a cut text": {old, sealed[:10]}, "nothing": {old, nil}} {
		if _, err := attempt.vault.Open(attempt.sealed, "whk_1"); err == nil {
			t.Errorf("%s opens", name)
		}
	}
}

func TestErrorsNameMalformedKeysWithoutShowingThem(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no name": ":MDEy", "no base64": "a:!!!secret!!!", "too short": "a:c2VjcmV0", "a name twice": servicetest.TokenKeys + "," + servicetest.TokenKeys,
	} {
		_, err := store.NewTokenKeys(text)
		if err == nil {
			t.Errorf("%s is taken", name)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

func TestTokenKeysRotateWithoutRejectingATokenEarly(t *testing.T) {
	f := servicetest.New(t)
	token, err := f.Access.IssueToken(t.Context(), "cli_erp", "secret-of-the-erp-integration", nil)
	servicetest.Must(t, err)
	const fresh = "new:YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
	for name, test := range map[string]struct {
		keys  string
		taken bool
	}{
		"the new key first, the old one kept": {fresh + "," + servicetest.TokenKeys, true},
		"the old key gone":                    {fresh, false},
	} {
		keys, err := store.NewTokenKeys(test.keys)
		servicetest.Must(t, err)
		other := f.NewInstance(func(o *store.Options) { o.Tokens = keys })
		if _, _, err := other.Access.Admit(t.Context(), token.AccessToken, nil); (err == nil) != test.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
