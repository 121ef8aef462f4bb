package models

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimeOfIsInUTCAndTruncatedToTheMillisecond(t *testing.T) {
	helsinki := time.FixedZone("Helsinki", 2*60*60)
	tests := []struct {
		name string
		in   time.Time
		want string
	}{
		{"whole seconds", time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), "2026-03-02T09:00:00.000Z"},
		{"milliseconds", time.Date(2026, 3, 2, 9, 0, 0, 7_000_000, time.UTC), "2026-03-02T09:00:00.007Z"},
		{"nanoseconds are truncated, not rounded", time.Date(2026, 3, 2, 9, 0, 0, 999_999_999, time.UTC), "2026-03-02T09:00:00.999Z"},
		{"another zone", time.Date(2026, 1, 1, 1, 30, 0, 0, helsinki), "2025-12-31T23:30:00.000Z"},
		{"before 1970", time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC), "1969-12-31T23:59:59.000Z"},
	}
	for _, tt := range tests {
		got := TimeOf(tt.in)
		written, err := json.Marshal(got)
		if got.String() != tt.want || err != nil || string(written) != `"`+tt.want+`"` || got.Location() != time.UTC {
			t.Errorf("%s: it is %s in %s, in JSON %s (%v), want %s", tt.name, got, got.Location(), written, err, tt.want)
		}
	}
}

func TestTimeIsReadFromAnyRFC3339(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"as the API shows it", `"2026-03-02T09:00:00.250Z"`, "2026-03-02T09:00:00.250Z"},
		{"without a fraction", `"2026-03-02T09:00:00Z"`, "2026-03-02T09:00:00.000Z"},
		{"with an offset", `"2026-03-02T11:00:00+02:00"`, "2026-03-02T09:00:00.000Z"},
		{"with the largest offset", `"2026-03-02T23:59:00+23:59"`, "2026-03-02T00:00:00.000Z"},
		{"with the smallest offset", `"2026-03-02T00:00:00-23:59"`, "2026-03-02T23:59:00.000Z"},
		{"with an unknown local offset", `"2026-03-02T09:00:00-00:00"`, "2026-03-02T09:00:00.000Z"},
		{"in lower case", `"2026-03-02t09:00:00.25z"`, "2026-03-02T09:00:00.250Z"},
		{"with nanoseconds", `"2026-03-02T09:00:00.250999999Z"`, "2026-03-02T09:00:00.250Z"},
	}
	for _, tt := range tests {
		var got Time
		if err := json.Unmarshal([]byte(tt.in), &got); err != nil || got.String() != tt.want {
			t.Errorf("%s, %s: read as %s (%v), want %s", tt.in, tt.name, got, err, tt.want)
		}
	}
}

func TestTimeRejectsOtherText(t *testing.T) {
	for _, in := range []string{`""`, `"today"`, `"2026-03-02"`, `"2026-03-02 09:00:00Z"`, `"2026-02-30T09:00:00Z"`, `"2026-03-02T09:00:00"`, `"2026-03-02T9:00:00Z"`, `"2026-03-02T09:00:00,5Z"`,
		`"2026-03-02T09:00:00+24:00"`, `"2026-03-02T09:00:00-24:00"`, `"2026-03-02T09:00:00+23:60"`, `"2026-03-02T09:00:00-00:60"`, `"2026-03-02T09:00:00+99:99"`, `"2026-03-02T09:00:00+1:00"`, `"2026-03-02T09:00:00 01:00"`, `1772442000`, `{}`, `true`} {
		got := TimeOf(time.Unix(0, 0))
		if err := json.Unmarshal([]byte(in), &got); err == nil || !got.Equal(time.Unix(0, 0)) {
			t.Errorf("%s: read as %s, error %v", in, got, err)
		}
	}
}

func TestTimeSurvivesJSONAndTheDatabase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Years 1 to 9999, all that RFC 3339 can write.
		at := TimeOf(time.UnixMilli(rapid.Int64Range(-62_135_596_800_000, 253_402_300_799_999).Draw(t, "milliseconds")))
		written, err := json.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		var read Time
		if err := json.Unmarshal(written, &read); err != nil || read != at {
			t.Errorf("%s comes back from JSON as %s (%v)", at, read, err)
		}
		value, err := at.Value()
		if err != nil {
			t.Fatal(err)
		}
		var scanned Time
		if err := scanned.Scan(value); err != nil || scanned != at {
			t.Errorf("%s comes back from the database as %s (%v)", at, scanned, err)
		}
	})
}

func TestScanRejectsOtherTypes(t *testing.T) {
	for _, src := range []any{nil, "2026-03-02T09:00:00Z", int64(1772442000), []byte("2026")} {
		var at Time
		if err := at.Scan(src); err == nil {
			t.Errorf("a %T is read as %s", src, at)
		}
	}
}

func TestAfterStrictlyIncreases(t *testing.T) {
	base := TimeOf(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	ms := func(n int) Time { return TimeOf(base.Add(time.Duration(n) * time.Millisecond)) }
	tests := []struct {
		name           string
		now, last, got Time
	}{
		{"the clock advanced", ms(5), ms(0), ms(5)},
		{"the clock stands still", ms(0), ms(0), ms(1)},
		{"the clock went back", ms(0), ms(5), ms(6)},
		{"the clock advanced by a millisecond", ms(1), ms(0), ms(1)},
	}
	for _, tt := range tests {
		if got := tt.now.After(tt.last); got != tt.got {
			t.Errorf("%s: %s after %s is %s, want %s", tt.name, tt.now, tt.last, got, tt.got)
		}
	}
}
