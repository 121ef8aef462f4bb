package models

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// A time survives writing and reading, to the millisecond.
func FuzzTime(f *testing.F) {
	for _, seed := range []string{
		`"2026-03-02T12:15:30Z"`, `"2026-03-05T14:00:00.123456789+02:00"`, `"0000-01-01T00:00:00Z"`,
		`"9999-12-31T23:59:59.999999999-23:59"`, `"2026-02-30T00:00:00Z"`, `null`, `1`, `"`, `"2026-03-02T12:15:60Z"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var read Time
		if json.Unmarshal(text, &read) != nil {
			return
		}
		written, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		var again Time
		if year := read.Year(); year >= 0 && year <= 9999 {
			if err := json.Unmarshal(written, &again); err != nil || !again.Equal(read.Time) {
				t.Errorf("%s was read as %s and written as %s: %v", text, read, written, err)
			}
		}
	})
}

// FuzzNormalize checks that Normalize accepts no answer beyond the limits, and its
// own result as it is.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{`"opt_1"`, `["opt_1","opt_1"]`, `12345678901234567890`, `-0.10`, `1e9`, `null`, `{"a":[]}`, `"\u0000"`} {
		f.Add([]byte(seed))
	}
	options := []string{"opt_1", "opt_2"}
	f.Fuzz(func(t *testing.T, text []byte) {
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return
		}
		for _, kind := range []QuestionType{QuestionSingleChoice, QuestionMultipleChoice, QuestionInteger, QuestionDecimal, QuestionText} {
			rules := AnswerRules{Type: kind, Options: options}
			answer, problem := rules.Normalize(value)
			if problem != "" {
				continue
			}
			if again, problem := rules.Normalize(answer); problem != "" || !reflect.DeepEqual(again, answer) {
				t.Errorf("%s: %v is normalized to %v and then to %v: %s", kind, value, answer, again, problem)
			}
			if s, ok := value.(string); ok && len([]rune(s)) > MaxAnswerText {
				t.Errorf("%s: a string of %d characters", kind, len([]rune(s)))
			}
			if list, ok := value.([]any); ok && len(list) > len(options) {
				t.Errorf("%s: %d choices of %d", kind, len(list), len(options))
			}
		}
	})
}
