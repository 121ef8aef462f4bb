package models

import (
	"bytes"
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
	for name, test := range map[string]struct{ uuid, digits string }{
		"nil":         {"00000000-0000-0000-0000-000000000000", "00000000000000000000000000"},
		"one":         {"00000000-0000-0000-0000-000000000001", "00000000000000000000000001"},
		"ten":         {"00000000-0000-0000-0000-00000000000a", "0000000000000000000000000a"},
		"sixteen":     {"00000000-0000-0000-0000-000000000010", "0000000000000000000000000g"},
		"thirty-two":  {"00000000-0000-0000-0000-000000000020", "00000000000000000000000010"},
		"the largest": {"ffffffff-ffff-ffff-ffff-ffffffffffff", "7zzzzzzzzzzzzzzzzzzzzzzzzz"},
		"all digits":  {"0110c853-1d09-52d8-d73e-1194e95b5f19", "0123456789abcdefghjkmnpqrs"},
		"version 7":   {"01890a5d-ac96-774b-bcce-b302099a8057", "01h455vb4pex5vsknk084sn02q"},
	} {
		if got := base32(uuid.MustParse(test.uuid)); got != test.digits {
			t.Errorf("%s: %s is written %s, want %s", name, test.uuid, got, test.digits)
		}
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
		if !IsID(older, PrefixWorkOrder) || IsID(older, PrefixFeedback) {
			t.Errorf("%s is no id of a work order alone", older)
		}
		if older >= younger {
			t.Errorf("%s of %d does not sort before %s of %d", older, early, younger, late)
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

func TestNewIDFailsWithoutRandomness(t *testing.T) {
	broken := errors.New("no entropy")
	if id, err := NewID(PrefixEvent, time.Now(), iotest.ErrReader(broken)); !errors.Is(err, broken) || id != "" {
		t.Errorf("NewID = %q, %v", id, err)
	}
	if _, err := NewID(PrefixEvent, time.Now(), strings.NewReader("short")); err == nil {
		t.Error("too few random bytes make an id")
	}
}

func TestIsIDMatchesARegularExpression(t *testing.T) {
	form := regexp.MustCompile(`\A(wo|whk)_[0-7][0-9a-hjkmnp-tv-z]{25}\z`)
	const digits = "01jd8q4v6cf5e8hbbfwj0zq3tk"
	if !IsID("wo_"+digits, PrefixWorkOrder, PrefixWebhook) || IsID("wo_"+digits) {
		t.Error("IsID accepts other prefixes than those allowed")
	}
	for _, id := range []string{
		"", "_", "wo", "wo_", digits, "_" + digits, "iss_" + digits, "WO_" + digits, "wo_" + strings.ToUpper(digits), "two_" + digits, "wo_wo_" + digits,
		"wo_" + digits[1:], "wo_0" + digits, "wo_8" + digits[1:], "wo-" + digits, " wo_" + digits, "wo_" + digits + " ",
		"wo_" + digits[:25] + "i", "wo_" + digits[:25] + "l", "wo_" + digits[:25] + "o", "wo_" + digits[:25] + "u",
		"wo_" + digits[:25] + "\n", "wo_" + digits[:25] + "\x00", "wo_" + digits[:24] + "é", "wo_" + digits[:25] + "%",
	} {
		if IsID(id, PrefixWorkOrder, PrefixWebhook) {
			t.Errorf("IsID accepts %q", id)
		}
	}
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
