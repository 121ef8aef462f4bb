package models

import (
	"encoding/json"
	"strings"
	"testing"
)

// api.md 2.3: the form of the value depends on the question's type.
func TestNormalize(t *testing.T) {
	options := []string{"opt_a", "opt_b"}
	nines := func(n int) string { return strings.Repeat("9", n) }
	zeros := func(n int) string { return strings.Repeat("0", n) }
	type values map[string]string // by description: JSON, and for numbers the stored form if it differs
	for kind, test := range map[QuestionType]struct{ good, bad values }{
		QuestionSingleChoice: {
			good: values{"an option": `"opt_a"`, "another": `"opt_b"`},
			bad: values{
				"an option of another question": `"opt_c"`, "an empty text": `""`, "a list of an option": `["opt_a"]`,
				"a number": `1`, "a boolean": `true`, "an object": `{}`,
			},
		},
		QuestionMultipleChoice: {
			good: values{"an option": `["opt_a"]`, "both in any order": `["opt_b","opt_a"]`, "none": `[]`},
			bad: values{
				"an option outside a list": `"opt_a"`, "an unknown and a known option": `["opt_a","opt_c"]`,
				"an option twice": `["opt_a","opt_a"]`, "a number in the list": `["opt_a",1]`, "null in the list": `[null]`,
				"a list in the list": `[["opt_a"]]`, "an object": `{"opt_a":true}`,
			},
		},
		QuestionInteger: {
			good: values{
				"zero": `0`, "one": `1`, "a negative": `-7`, "18 digits": nines(18), "18 negative digits": "-" + nines(18),
				"an integer written as a fraction": `5.0 5`, "30 zeros after the point": `-5.` + zeros(30) + ` -5`, "an exponent": `1e3 1000`,
				"a negative exponent": `50e-1 5`, "18 digits by an exponent": `1e17 1` + zeros(17), "negative zero": `-0.0 0`,
			},
			bad: values{
				"19 digits": nines(19), "a fraction": `1.5`, "a fraction by an exponent": `1e-1`, "19 digits by an exponent": `1e18`,
				"a string of digits": `"1"`, "a boolean": `true`, "a list": `[1]`, "a huge exponent": `1e999999999`, "31 zeros after the point": `5.` + zeros(31),
			},
		},
		QuestionDecimal: {
			good: values{
				"zero": `0`, "an integer": `12`, "trailing zeros": `1.50`, "a negative": `-0.5`,
				"30 digits before and after the point": nines(30) + "." + nines(30), "zero with digits": `0.00`, "negative zero": `-0.0 0.0`,
				"an exponent": `1e3 1000`, "a negative exponent": `1e-05 0.00001`, "an exponent in capitals": `1.5E-3 0.0015`,
				"an exponent that leaves digits": `-12.50e1 -125.0`, "30 digits before the point by an exponent": `1e29 1` + zeros(29),
				"30 digits after it by an exponent": `1e-30 0.` + zeros(29) + `1`,
			},
			bad: values{
				"31 digits before the point": nines(31), "31 digits after it": "0." + nines(31), "31 digits before it by an exponent": `1e30`,
				"31 digits after it by an exponent": `1e-31`, "a huge exponent": `1e-999999999`, "an exponent beyond 64 bits": `1e-99999999999999999999`,
				"a string of digits": `"1.5"`, "a list": `[1.5]`, "a boolean": `false`,
			},
		},
		QuestionText: {
			good: values{"a string": `"x"`, "an empty text": `""`, "10,000 characters": `"` + strings.Repeat("ä", MaxAnswerText) + `"`, "tabs and line breaks": `"a\tb\r\nc"`},
			bad: values{
				"10,001 characters": `"` + strings.Repeat("ä", MaxAnswerText+1) + `"`, "a number": `1`, "a list": `["x"]`,
				"an object": `{"x":"y"}`, "a boolean": `true`, "NUL": `"\u0000"`, "another control character": `"\u001b[0m"`, "blanks": `" \u00a0\n"`,
			},
		},
	} {
		check := func(name, text string, good bool) {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				sent, stored, differs := text, text, false
				if !strings.HasPrefix(text, `"`) {
					sent, stored, differs = strings.Cut(text, " ")
				}
				decoder := json.NewDecoder(strings.NewReader(sent))
				decoder.UseNumber()
				var value any
				if err := decoder.Decode(&value); err != nil {
					t.Fatal(err)
				}
				answer, problem := AnswerRules{Type: kind, Required: true, Options: options}.Normalize(value)
				if (problem == "") != good {
					t.Errorf("the problem is %q", problem)
				}
				if number, ok := answer.(json.Number); good && ok && differs && number.String() != stored {
					t.Errorf("it is stored as %s, want %s", number, stored)
				}
			})
		}
		for name, text := range test.good {
			check(name, text, true)
		}
		for name, text := range test.bad {
			check(name, text, false)
		}
	}
}

// A required question is not answered by a blank text or an empty list.
func TestAnswered(t *testing.T) {
	for _, value := range []any{nil, "", " \n", []any{}} {
		if Answered(value) {
			t.Errorf("%#v is an answer", value)
		}
	}
	for _, value := range []any{"x", []any{"opt_a"}, json.Number("0")} {
		if !Answered(value) {
			t.Errorf("%#v is no answer", value)
		}
	}
}
