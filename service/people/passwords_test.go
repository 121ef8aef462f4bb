package people

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"millwright/models"
	"millwright/service/store"
)

// Few hashes are computed at a time, regardless of the number of people who sign in, and one whose
// request ends leaves its place.
func TestPasswordHashingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h passwordHashing
		var running, most, rejected atomic.Int32
		release := make(chan struct{})
		var group sync.WaitGroup
		hash := func(ctx context.Context, by hashCaller) {
			group.Go(func() {
				err := h.run(ctx, by, func() {
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
		for range hashesPerCaller + hashesAtOnce + 5 {
			hash(t.Context(), hashCaller{"192.0.2.1", turnOfOthers})
			synctest.Wait()
		}
		if rejected.Load() != 5 || len(h.waiting) != hashesPerCaller {
			t.Errorf("%d of one network were rejected, want 5; %d wait", rejected.Load(), len(h.waiting))
		}
		ctx, hangUp := context.WithCancel(t.Context())
		hash(ctx, hashCaller{"192.0.2.2", turnOfOthers})
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if len(h.waiting) != hashesPerCaller {
			t.Errorf("%d wait after one has left", len(h.waiting))
		}
		close(release)
		group.Wait()
		if int(most.Load()) != hashesAtOnce || h.running != 0 || len(h.waiting) != 0 {
			t.Errorf("%d ran at a time, want %d; %d run and %d wait in the end", most.Load(), hashesAtOnce, h.running, len(h.waiting))
		}
	})
}

// People at their browsers get a hash first, networks that have failed last, and among
// equals one of each caller in turn. In a full queue the last of these is rejected.
func TestTurnsOfHashing(t *testing.T) {
	var h passwordHashing
	h.running = hashesAtOnce
	enter := func(name string, turn hashTurn) *hashWait { return h.enter(hashCaller{name, turn}) }
	failing, first, second, third := enter("failing", turnOfFailing), enter("a", turnOfOthers), enter("a", turnOfOthers), enter("a", turnOfOthers)
	other, known := enter("b", turnOfOthers), enter("person", turnOfKnown)
	for i, next := range []*hashWait{known, first, other, second, third, failing} {
		h.leave()
		select {
		case granted := <-next.granted:
			if !granted {
				t.Errorf("number %d is rejected", i)
			}
		default:
			t.Fatalf("it is not the turn of number %d, %+v", i, next.hashCaller)
		}
	}
	if h.leave(); h.running != hashesAtOnce-1 || len(h.waiting) != 0 {
		t.Errorf("in the end %d run and %d wait", h.running, len(h.waiting))
	}
}

// People who sign in again and again at their browsers leave a third of the hashes to others.
func TestKnownPeopleLeaveHashesToOthers(t *testing.T) {
	var h passwordHashing
	h.running = hashesAtOnce
	fresh := h.enter(hashCaller{"fresh", turnOfOthers})
	for n := range sharedEvery + 1 {
		h.enter(hashCaller{strconv.Itoa(n % 2), turnOfKnown})
		h.enter(hashCaller{strconv.Itoa(n % 2), turnOfKnown})
		h.leave()
		if len(fresh.granted) > 0 {
			return
		}
	}
	t.Errorf("after %d hashes of others someone new still waits", sharedEvery+1)
}

// Someone who does not get a hash in time is told to try again.
func TestALateHashIsUnavailable(t *testing.T) {
	var h passwordHashing
	h.running = hashesAtOnce
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.run(ctx, hashCaller{"a", turnOfOthers}, func() { t.Error("a hash is computed") }); models.CodeOf(err) != models.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
}

func TestAFullQueueOfHashes(t *testing.T) {
	var h passwordHashing
	h.running = hashesAtOnce
	isRejected := func(w *hashWait) bool {
		select {
		case granted := <-w.granted:
			return !granted
		default:
			return false
		}
	}
	var many []*hashWait
	for i := range hashesWaiting {
		many = append(many, h.enter(hashCaller{strconv.Itoa(i / hashesPerCaller), turnOfFailing}))
	}
	last := many[hashesWaiting-1]
	for i, c := range []struct {
		by       hashCaller
		rejected *hashWait // nil is the newcomer
	}{
		{hashCaller{"person", turnOfKnown}, last}, {hashCaller{"fresh", turnOfOthers}, many[hashesWaiting-1-hashesPerCaller]},
		{hashCaller{"another that fails", turnOfFailing}, many[hashesWaiting-1-2*hashesPerCaller]}, {hashCaller{"0", turnOfFailing}, nil},
	} {
		wanted := h.enter(c.by)
		if c.rejected == nil {
			c.rejected = wanted
		}
		if !isRejected(c.rejected) || c.rejected != wanted && isRejected(wanted) || len(h.waiting) != hashesWaiting {
			t.Errorf("%d: %+v does not take the place of %+v", i, c.by, c.rejected.hashCaller)
		}
	}
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

// A password is the same from a keyboard that composes letters and from one that does not (RFC 8265).
func TestPasswordsOfKeyboards(t *testing.T) {
	for _, same := range []string{"Kübel und Öfen", "Ku\u0308bel und O\u0308fen", "Kübel\u00a0und\u3000Öfen"} {
		if opaque(same) != opaque("Kübel und Öfen") {
			t.Errorf("%+q is another password", same)
		}
	}
	if opaque("Kübel") == opaque("kübel") {
		t.Error("case does not count")
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
