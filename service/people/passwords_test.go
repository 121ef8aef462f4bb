package people

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// Two hashes are computed at a time, regardless of the number of people who sign in, and
// one network cannot fill the queue.
func TestPasswordHashingIsBounded(t *testing.T) {
	var h passwordHashing
	var running, most, rejected atomic.Int32
	release := make(chan struct{})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			err := h.run(t.Context(), "192.0.2.1", func() {
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				<-release
				running.Add(-1)
			})
			if models.CodeOf(err) == models.CodeUnavailable {
				rejected.Add(1)
			}
		})
	}
	poll, enough := time.NewTicker(time.Millisecond), time.After(5*time.Second)
	defer poll.Stop()
	for waiting := true; waiting && rejected.Load() < 12; {
		select {
		case <-poll.C:
		case <-enough:
			waiting = false
		}
	}
	other := make(chan error, 1)
	group.Go(func() { other <- h.run(t.Context(), "192.0.2.2", func() {}) })
	close(release)
	if err := <-other; err != nil {
		t.Errorf("another network: %v", err)
	}
	group.Wait()
	if rejected.Load() != 12 || int(most.Load()) > hashesAtOnce {
		t.Errorf("%d of 20 were rejected, want 12; %d ran at a time", rejected.Load(), most.Load())
	}
	if h.total != 0 || len(h.waiting) != 0 {
		t.Errorf("%d still wait: %v", h.total, h.waiting)
	}
	// One whose request ends while it waits leaves its place.
	hold := make(chan struct{})
	for range hashesAtOnce {
		group.Go(func() { _ = h.run(t.Context(), "192.0.2.3", func() { <-hold }) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for left := false; !left; {
		left = h.run(ctx, "192.0.2.4", func() {}) != nil // the others may not have begun
	}
	close(hold)
	group.Wait()
}

func TestHashesNameTheirParameters(t *testing.T) {
	const reference = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4" // of the reference implementation
	if ok, outdated, err := New(new(store.Store)).comparePassword("password", reference); !ok || !outdated || err != nil {
		t.Errorf("the reference's hash: %v, %v, %v", ok, outdated, err)
	}
	if ok, _, err := New(new(store.Store)).comparePassword("passwore", reference); ok || err != nil {
		t.Errorf("another password: %v, %v", ok, err)
	}
	for _, hash := range []string{"", "$argon2id$", "$argon2id$v=19$m=9999999999,t=2,p=1$c29tZXNhbHQ$nf65", "$argon2id$v=19$m=256,t=0,p=1$c29tZXNhbHQ$nf65", "$argon2id$v=18$m=256,t=2,p=1$c29tZXNhbHQ$nf65", "$2a$10$x"} {
		if ok, _, err := New(new(store.Store)).comparePassword("password", hash); ok || err == nil {
			t.Errorf("%q: %v, %v", hash, ok, err)
		}
	}
}

func BenchmarkHashPassword(b *testing.B) {
	for b.Loop() {
		if ok, _, err := New(new(store.Store)).comparePassword("password", New(new(store.Store)).decoyHash()); ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// The memory is OWASP's recommendation unless Options say otherwise.
func TestHashesTakeTheRecommendedMemory(t *testing.T) {
	s := New(&store.Store{Options: store.Options{Random: rand.Reader}})
	hash, err := HashPassword(t.Context(), s, "", "password")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatal(hash, err)
	}
	if ok, outdated, err := s.comparePassword("password", hash); !ok || outdated || err != nil {
		t.Error(ok, outdated, err)
	}
}

func TestNewPasswords(t *testing.T) {
	for password, want := range map[string]string{
		"":                              "required",
		"éééééé":                        "too_short",
		"ab" + strings.Repeat("é", 198): "",
		"ab" + strings.Repeat("é", 199): "too_long",
		"correct horse\xff":             "value",
		"aaaaaaaaaaaa":                  "value",
		"AAAAAAaaaaaa":                  "value",
		"éééééééééééé":                  "value",
		"界界界界界界界界界界":                    "value",
		"ANN.long@example.com":          "value",
		"ann long field":                "value",
		"abababababab":                  "",
	} {
		got := ""
		if problems := checkNewPassword(password, "ann.long@example.com", "Ann Long Field"); len(problems) > 0 {
			got = problems[0].Code
		}
		if got != want {
			t.Errorf("%q: %q, want %q", password, got, want)
		}
	}
}
