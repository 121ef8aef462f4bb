package models

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// Number is a JSON number with all its digits: digits × 10^exponent.
type Number struct {
	negative bool
	digits   string // without leading zeros: "" is zero
	exponent int
}

var numberForm = regexp.MustCompile(`^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

// ParseNumber reads a JSON number. It fails if the exponent does not fit into an int32.
func ParseNumber(text json.Number) (Number, bool) {
	parts := numberForm.FindStringSubmatch(text.String())
	if parts == nil {
		return Number{}, false
	}
	var exponent int64
	if parts[4] != "" {
		var err error
		if exponent, err = strconv.ParseInt(parts[4], 10, 32); err != nil {
			return Number{}, false
		}
	}
	n := Number{
		negative: parts[1] == "-",
		digits:   strings.TrimLeft(parts[2]+parts[3], "0"),
		exponent: int(exponent) - len(parts[3]),
	}
	if n.digits == "" { // Postgres has no negative zero
		n.negative, n.exponent = false, min(n.exponent, 0)
	}
	return n, true
}

// within reports whether the number has at most these digits before and after the
// point when it is written without an exponent.
func (n Number) within(before, after int) bool {
	return len(n.digits)+n.exponent <= before && -n.exponent <= after
}

// Reduced returns the number without trailing zeros: numbers of equal value are then equal.
func (n Number) Reduced() Number {
	digits := strings.TrimRight(n.digits, "0")
	if digits == "" {
		return Number{}
	}
	n.exponent += len(n.digits) - len(digits)
	n.digits = digits
	return n
}

// plain writes the number with all its digits and without an exponent.
func (n Number) plain() json.Number {
	digits := n.digits + strings.Repeat("0", max(n.exponent, 0))
	after := max(-n.exponent, 0)
	digits = strings.Repeat("0", max(after+1-len(digits), 0)) + digits
	text := digits[:len(digits)-after]
	if after > 0 {
		text += "." + digits[len(digits)-after:]
	}
	if n.negative {
		text = "-" + text
	}
	return json.Number(text)
}

// String writes the number as an integer with an exponent: JSON that is short for
// every number.
func (n Number) String() string {
	text := cmp.Or(n.digits, "0") + "e" + strconv.Itoa(n.exponent)
	if n.negative {
		text = "-" + text
	}
	return text
}
