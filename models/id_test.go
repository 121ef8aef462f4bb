package models

import (
	"bytes"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// Vectors of the TypeID specification.
func TestBase32MatchesVectorsOfTypeID(t *testing.T) {
	tests := []struct{ name, uuid, digits string }{
		{"nil", "00000000-0000-0000-0000-000000000000", "00000000000000000000000000"},
		{"one", "00000000-0000-0000-0000-000000000001", "00000000000000000000000001"},
		{"ten", "00000000-0000-0000-0000-00000000000a", "0000000000000000000000000a"},
		{"sixteen", "00000000-0000-0000-0000-000000000010", "0000000000000000000000000g"},
		{"thirty-two", "00000000-0000-0000-0000-000000000020", "00000000000000000000000010"},
		{"the largest", "ffffffff-ffff-ffff-ffff-ffffffffffff", "7zzzzzzzzzzzzzzzzzzzzzzzzz"},
		{"all digits", "0110c853-1d09-52d8-d73e-1194e95b5f19", "0123456789abcdefghjkmnpqrs"},
		{"version 7", "01890a5d-ac96-774b-bcce-b302099a8057", "01h455vb4pex5vsknk084sn02q"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := base32(uuid.MustParse(tt.uuid)); got != tt.digits {
				t.Errorf("%s is written %s, want %s", tt.uuid, got, tt.digits)
			}
		})
	}
}

// idTimes are the times an id can hold: 1970 to 2262.
var idTimes = rapid.Int64Range(0, 1<<63-1)

// idResolution is the smallest difference of two times that their ids show.
const idResolution = 245 * time.Nanosecond

func TestIDsSortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		early := idTimes.Draw(t, "early")
		late := early + rapid.Int64Range(int64(idResolution), int64(time.Hour)).Draw(t, "later by")
		if late < early {
			t.Skip("the later time overflows")
		}
		older, younger := newTestID(t, PrefixWorkOrder, early), newTestID(t, PrefixWorkOrder, late)
		if older >= younger {
			t.Errorf("%s of %d does not sort before %s of %d", older, early, younger, late)
		}
	})
}

func TestIDsHaveTheFormOfTypeID(t *testing.T) {
	prefixes := []IDPrefix{
		PrefixIdentity, PrefixLocation, PrefixSystem, PrefixEquipment, PrefixSubEquipment, PrefixDefinition,
		PrefixForm, PrefixQuestion, PrefixOption, PrefixWorkOrder, PrefixFeedback, PrefixComment, PrefixWebhook, PrefixEvent,
		PrefixDelivery, PrefixToken, PrefixRequest, PrefixClient,
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom(prefixes).Draw(t, "prefix")
		at := idTimes.Draw(t, "time")
		id := newTestID(t, prefix, at)
		if !IsID(id, PrefixRequest, prefix) {
			t.Fatalf("IsID rejects %s", id)
		}
		for _, other := range prefixes {
			if other != prefix && IsID(id, other) {
				t.Errorf("IsID accepts %s as one of %s", id, other)
			}
		}
	})
}

// The bits of a UUIDv7: RFC 9562 section 5.7, with a fraction of the millisecond in rand_a.
func TestIDsAreUUIDsOfVersion7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := idTimes.Draw(t, "time")
		random := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "random")
		u, err := newUUIDv7(time.Unix(0, at), bytes.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		if u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Errorf("%s has version %d and variant %v", u, u.Version(), u.Variant())
		}
		millis := int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5])
		if millis != at/int64(time.Millisecond) {
			t.Errorf("%s tells %d ms, want %d", u, millis, at/int64(time.Millisecond))
		}
		if !bytes.Equal(u[9:], random[1:]) || u[8]&0x3f != random[0]&0x3f {
			t.Errorf("%s does not hold the random bytes %x", u, random)
		}
	})
}

func TestIDsOfTheSameTimeDiffer(t *testing.T) {
	at := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for range 1000 {
		id, err := NewID(PrefixEvent, at, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		seen[id] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 ids are distinct", len(seen))
	}
}

func TestNewIDFailsWithoutRandomness(t *testing.T) {
	broken := errors.New("no entropy")
	if id, err := NewID(PrefixEvent, time.Now(), iotest.ErrReader(broken)); !errors.Is(err, broken) || id != "" {
		t.Errorf("NewID = %q, %v", id, err)
	}
	if _, err := NewID(PrefixEvent, time.Now(), strings.NewReader("short")); err == nil {
		t.Error("too few random bytes make an id")
	}
}

func TestIsIDRejectsWrongForms(t *testing.T) {
	const digits = "01jd8q4v6cf5e8hbbfwj0zq3tk"
	tests := []struct{ name, id string }{
		{"nothing", ""},
		{"an underscore", "_"},
		{"the prefix alone", "wo"},
		{"the prefix without digits", "wo_"},
		{"digits without a prefix", digits},
		{"digits with an empty prefix", "_" + digits},
		{"another prefix", "iss_" + digits},
		{"the prefix in upper case", "WO_" + digits},
		{"digits in upper case", "wo_" + strings.ToUpper(digits)},
		{"a longer prefix", "two_" + digits},
		{"two prefixes", "wo_wo_" + digits},
		{"a digit too few", "wo_" + digits[1:]},
		{"a digit too many", "wo_0" + digits},
		{"more than 128 bits", "wo_8" + digits[1:]},
		{"the letter i", "wo_" + digits[:25] + "i"},
		{"the letter l", "wo_" + digits[:25] + "l"},
		{"the letter o", "wo_" + digits[:25] + "o"},
		{"the letter u", "wo_" + digits[:25] + "u"},
		{"a hyphen for the underscore", "wo-" + digits},
		{"a space before", " wo_" + digits},
		{"a space after", "wo_" + digits + " "},
		{"a line feed for a digit", "wo_" + digits[:25] + "\n"},
		{"a zero byte for a digit", "wo_" + digits[:25] + "\x00"},
		{"a letter that is not ASCII", "wo_" + digits[:24] + "é"},
		{"a percent sign", "wo_" + digits[:25] + "%"},
	}
	if !IsID("wo_"+digits, PrefixWorkOrder) {
		t.Fatal("IsID rejects the right form")
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if IsID(tt.id, PrefixWorkOrder, PrefixWebhook) {
				t.Errorf("IsID accepts %q", tt.id)
			}
		})
	}
	t.Run("without prefixes", func(t *testing.T) {
		if IsID("wo_" + digits) {
			t.Error("IsID accepts an id although no prefix is allowed")
		}
	})
}

func TestIsIDMatchesARegularExpression(t *testing.T) {
	form := regexp.MustCompile(`\A(wo|whk)_[0-7][0-9a-hjkmnp-tv-z]{25}\z`)
	// Texts close to the form, so that both results occur.
	near := rapid.StringMatching(`(wo|whk|iss|)[_-]?[0-9][0-9a-z]{24,26}`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(near, rapid.StringMatching(`(wo|whk)_[0-7][0-9a-hjkmnp-tv-z]{25}`), rapid.String()).Draw(t, "text")
		if got, want := IsID(text, PrefixWorkOrder, PrefixWebhook), form.MatchString(text); got != want {
			t.Errorf("IsID(%q) = %v, want %v", text, got, want)
		}
	})
}

func newTestID(t *rapid.T, prefix IDPrefix, at int64) string {
	random := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "random")
	id, err := NewID(prefix, time.Unix(0, at), bytes.NewReader(random))
	if err != nil {
		t.Fatal(err)
	}
	return id
}
