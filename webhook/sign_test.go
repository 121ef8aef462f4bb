package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// The vectors were computed with openssl dgst -sha256.
const (
	newSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	oldSecret = "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="

	pingBody = `{"id":"evt_01","type":"ping","created_at":"2026-01-02T03:04:05.000Z","organization_id":"org_01","data":{"message":"hällo"}}`

	newServiceMAC  = "3924e517d449ffaeeeeab742914596024f43c023919fe81cf910195d9fca8553"
	oldServiceMAC  = "02aea8840200cc29fb20903c733f5ddf40822f5d297b19f599a2dd349206f407"
	newStandardMAC = "PjnJVLy3FTj6LnKMuWfvoyt09Z/kLMOvQgEjvtIs6Oc="
	oldStandardMAC = "9ZO8CB411FlXPBVTaKsYzKmIa3W8d+P9pUvWRCzk1co="
	emptyBodyMAC   = "3450a2c6625bbfb94aa090f4aea23a6d544a0e59c3b3ce2dd41dca8e4f31644d"
)

var pingTime = time.Unix(1767323045, 0) // 2026-01-02T03:04:05Z

func mustSigner(t testing.TB, secrets ...string) *Signer {
	t.Helper()
	signer, err := NewSigner(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestSignerHeaderMatchesVectors(t *testing.T) {
	tests := []struct {
		name              string
		secrets           []string
		body              string
		service, standard string
	}{
		{"one secret", []string{newSecret}, pingBody,
			"t=1767323045,v1=" + newServiceMAC, "v1," + newStandardMAC},
		{"rotation, newest first", []string{newSecret, oldSecret}, pingBody,
			"t=1767323045,v1=" + newServiceMAC + ",v1=" + oldServiceMAC, "v1," + newStandardMAC + " v1," + oldStandardMAC},
		{"empty body", []string{newSecret}, "",
			"t=1767323045,v1=" + emptyBodyMAC, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			signer := mustSigner(t, tt.secrets...)
			// Twice, since the second call reuses the hashes.
			for range 2 {
				header := signer.Header("evt_01", "ping", pingTime.Add(999*time.Millisecond), []byte(tt.body))
				want := map[string]string{
					"Service-Event-Id":   "evt_01",
					"Service-Event-Type": "ping",
					"Service-Signature":  tt.service,
					"webhook-id":         "evt_01",
					"webhook-timestamp":  "1767323045",
					"webhook-signature":  tt.standard,
				}
				if len(header) != len(want) {
					t.Errorf("%d headers, want %d: %v", len(header), len(want), header)
				}
				for name, value := range want {
					if got := header.Get(name); got != value && value != "" {
						t.Errorf("%s = %q, want %q", name, got, value)
					}
				}
			}
		})
	}
}

func TestSignerHeaderValuesDoNotShareMemory(t *testing.T) {
	header := mustSigner(t, newSecret).Header("evt_01", "ping", pingTime, []byte(pingBody))
	header.Add(HeaderEventID, "appended")
	if got := header.Get(HeaderEventType); got != "ping" {
		t.Errorf("appending to one header changed another to %q", got)
	}
}

func TestSignerIsSafeForConcurrentUse(t *testing.T) {
	signer := mustSigner(t, newSecret, oldSecret)
	want := signer.Header("evt_01", "ping", pingTime, []byte(pingBody))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				got := signer.Header("evt_01", "ping", pingTime, []byte(pingBody))
				if got.Get(HeaderSignature) != want.Get(HeaderSignature) || got.Get(HeaderStandardSignature) != want.Get(HeaderStandardSignature) {
					t.Error("signatures differ between goroutines")
					return
				}
			}
		})
	}
	group.Wait()
}

func TestGenerateSecret(t *testing.T) {
	secret, err := GenerateSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseSecret(secret)
	if err != nil || len(key) != 32 {
		t.Errorf("the secret parses to %d bytes, %v", len(key), err)
	}
	other, _ := GenerateSecret(rand.Reader)
	if other == secret {
		t.Error("two secrets are equal")
	}
	fixed, err := GenerateSecret(strings.NewReader(strings.Repeat("\xff", 32)))
	if want := "whsec_//////////////////////////////////////////8="; fixed != want || err != nil {
		t.Errorf("from 32 0xff bytes: %q, %v, want %q in the standard alphabet", fixed, err, want)
	}
	broken := errors.New("no entropy")
	if secret, err := GenerateSecret(iotest.ErrReader(broken)); !errors.Is(err, broken) || secret != "" {
		t.Errorf("with a failing source: %q, %v", secret, err)
	}
}

func TestNewSignerRejectsMalformedSecrets(t *testing.T) {
	encode := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	tests := []struct {
		name    string
		secrets []string
	}{
		{"none", nil},
		{"empty", []string{""}},
		{"prefix alone", []string{"whsec_"}},
		{"no prefix", []string{encode(32)}},
		{"other prefix", []string{"whsk_" + encode(32)}},
		{"not base64", []string{"whsec_hunter2hunter2hunter2hunter2!!!!"}},
		{"base64 for URLs", []string{"whsec_" + strings.Repeat("_", 43) + "="}},
		{"no padding", []string{strings.TrimRight(newSecret, "=")}},
		{"line break", []string{newSecret + "\n"}},
		{"bits after the end", []string{newSecret[:len(newSecret)-2] + "9="}},
		{"too short", []string{"whsec_" + encode(23)}},
		{"too long", []string{"whsec_" + encode(65)}},
		{"second of two is bad", []string{newSecret, "whsec_hunter2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewSigner(tt.secrets...)
			if !errors.Is(err, ErrSecret) {
				t.Fatalf("error %v, want ErrSecret", err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}
