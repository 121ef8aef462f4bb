package models

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// TimeLayout is RFC 3339 in UTC with milliseconds (api.md 2.7).
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Time is a time in UTC, truncated to the millisecond: the precision in which times
// are stored, shown and compared.
type Time struct{ time.Time }

// TimeOf returns t in UTC, truncated to the millisecond.
func TimeOf(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// String returns the time as the API shows it.
func (t Time) String() string { return t.Format(TimeLayout) }

// MarshalJSON writes the time as RFC 3339 in UTC with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(TimeLayout)+2), '"')
	return append(t.AppendFormat(b, TimeLayout), '"'), nil
}

// rfc3339 matches the times of RFC 3339, whose T and Z may be lower-case: time.Parse also
// takes a comma before the fraction, hours of one digit, and offsets of 24 hours and 60 minutes.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime reads any RFC 3339 time (api.md 2.7).
func ParseTime(text string) (Time, error) {
	if !rfc3339.MatchString(text) {
		return Time{}, errors.New("not a time of RFC 3339")
	}
	read, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	return TimeOf(read), err
}

// LostPlus reports whether text is a time whose + became a space, as in a URL that does not
// write it as %2B.
func LostPlus(text string) bool {
	_, err := ParseTime(strings.Replace(text, " ", "+", 1))
	return err == nil && strings.Contains(text, " ")
}

// UnmarshalJSON reads any RFC 3339 time. Like any type, it leaves null alone.
func (t *Time) UnmarshalJSON(b []byte) error {
	var text *string
	if err := json.Unmarshal(b, &text); err != nil || text == nil {
		return err
	}
	read, err := ParseTime(*text)
	if err == nil {
		*t = read
	}
	return err
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.Time, nil }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	read, ok := src.(time.Time)
	if !ok {
		return fmt.Errorf("cannot read a time from a %T", src)
	}
	*t = TimeOf(read)
	return nil
}

// GormDataType names the column's type for GORM.
func (Time) GormDataType() string { return "timestamptz(3)" }

// After returns t, or the millisecond after other if t is not later. It makes the times
// of one record's changes strictly increase even if the clock does not.
func (t Time) After(other Time) Time {
	if t.Time.After(other.Time) {
		return t
	}
	return Time{other.Add(time.Millisecond)}
}
