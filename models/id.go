package models

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// IDPrefix is the part of an id that names its type.
type IDPrefix string

// The prefixes. People, teams, organizations and integrations are identities and
// share one (api.md 2.6).
const (
	PrefixIdentity     IDPrefix = "idn"
	PrefixLocation     IDPrefix = "loc"
	PrefixSystem       IDPrefix = "sys"
	PrefixEquipment    IDPrefix = "eqp"
	PrefixSubEquipment IDPrefix = "sub"
	PrefixDefinition   IDPrefix = "def"
	PrefixForm         IDPrefix = "frm"
	PrefixQuestion     IDPrefix = "qst"
	PrefixOption       IDPrefix = "opt"
	PrefixWorkOrder    IDPrefix = "wo"
	PrefixFeedback     IDPrefix = "iss"
	PrefixComment      IDPrefix = "cmt"
	PrefixWebhook      IDPrefix = "whk"
	PrefixEvent        IDPrefix = "evt"
	PrefixDelivery     IDPrefix = "dlv"
	PrefixToken        IDPrefix = "tok"
	PrefixRequest      IDPrefix = "req"
	PrefixClient       IDPrefix = "cli"
	PrefixSession      IDPrefix = "ses"
)

// crockford is the alphabet of TypeID: digits and lower-case letters without i, l, o and u.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a TypeID: the prefix, an underscore and a UUIDv7 in 26 digits of base
// 32. Ids of one prefix sort by their time, to a quarter of a microsecond; 62 bits come
// from random. It fails only if random does.
func NewID(prefix IDPrefix, at time.Time, random io.Reader) (string, error) {
	u, err := newUUIDv7(at, random)
	if err != nil {
		return "", err
	}
	return string(prefix) + "_" + base32(u), nil
}

// FirstID returns the lowest id of the prefix with this time: ids made at the time or
// later sort at or after it. For a time that an id cannot hold, that is the lowest id.
func FirstID(prefix IDPrefix, at time.Time) string {
	var u uuid.UUID
	if millis := at.UnixMilli(); millis > 0 && millis < 1<<48 {
		binary.BigEndian.PutUint64(u[:8], uint64(millis)<<16)
	}
	return string(prefix) + "_" + base32(u)
}

func newUUIDv7(at time.Time, random io.Reader) (uuid.UUID, error) {
	var u uuid.UUID
	if _, err := io.ReadFull(random, u[8:]); err != nil {
		return u, fmt.Errorf("read random bytes for an id: %w", err)
	}
	nanos := at.UnixNano()
	millis := nanos / int64(time.Millisecond)
	fraction := (nanos % int64(time.Millisecond)) << 12 / int64(time.Millisecond)
	binary.BigEndian.PutUint64(u[:8], uint64(millis)<<16|7<<12|uint64(fraction))
	u[8] = u[8]&0x3f | 0x80
	return u, nil
}

// base32 writes the 128 bits as 26 digits; the first one holds only three of them.
func base32(u uuid.UUID) string {
	high, low := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	var digits [26]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = crockford[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return string(digits[:])
}

// IsID reports whether s has the form of an id with one of the prefixes. Lookups check
// it first, so that malformed text never reaches the database.
func IsID(s string, prefixes ...IDPrefix) bool {
	prefix, digits, found := strings.Cut(s, "_")
	if !found || len(digits) != 26 || digits[0] > '7' {
		return false
	}
	for i := range len(digits) {
		if strings.IndexByte(crockford, digits[i]) < 0 {
			return false
		}
	}
	return slices.Contains(prefixes, IDPrefix(prefix))
}

// pathPrefixes are the prefixes of ids that pages and calls have in their paths.
var pathPrefixes = []IDPrefix{
	PrefixIdentity, PrefixLocation, PrefixSystem, PrefixEquipment, PrefixSubEquipment, PrefixForm, PrefixWorkOrder, PrefixFeedback, PrefixWebhook, PrefixEvent, PrefixDelivery,
}

// FirstIDIn returns the first id in a string, such as a URL, of a kind that has pages or calls. It
// is empty if there is no id.
func FirstIDIn(text string) string {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		if IsID(word, pathPrefixes...) {
			return word
		}
	}
	return ""
}
