package models

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
)

var (
	integerForm = regexp.MustCompile(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})$`, MaxIntegerDigits-1))
	decimalForm = regexp.MustCompile(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})(\.[0-9]{1,%d})?$`, MaxDecimalDigits-1, MaxDecimalDigits))
)

// CheckAnswer says what is wrong with the value for a question of the type with
// the options, "" when nothing is (spec section 2, answer; contract, records).
// value is JSON whose numbers are json.Number, so that decimals keep their digits.
func CheckAnswer(kind QuestionType, options []string, value any) string {
	switch kind {
	case QuestionSingleChoice:
		if option, ok := value.(string); !ok || !slices.Contains(options, option) {
			return "The value is the id of one of the question's options."
		}
	case QuestionMultipleChoice:
		return checkChoices(options, value)
	case QuestionInteger:
		if number, ok := value.(json.Number); !ok || !integerForm.MatchString(number.String()) {
			return "The value is an integer of at most 18 digits."
		}
	case QuestionDecimal:
		if number, ok := value.(json.Number); !ok || !decimalForm.MatchString(number.String()) {
			return "The value is a decimal number of at most 30 digits before and 30 behind the point, without an exponent."
		}
	case QuestionText:
		if text, ok := value.(string); !ok || utf8.RuneCountInString(text) > MaxAnswerText {
			return "The value is a text of at most 10,000 characters."
		}
	}
	return ""
}

func checkChoices(options []string, value any) string {
	list, ok := value.([]any)
	if !ok {
		return "The value is a list of ids of the question's options."
	}
	var seen []string
	for _, item := range list {
		option, ok := item.(string)
		if !ok || !slices.Contains(options, option) || slices.Contains(seen, option) {
			return "The value is a list of ids of the question's options, each at most once."
		}
		seen = append(seen, option)
	}
	return ""
}

// Answered reports whether a value counts as an answer to a required question:
// an empty text or an empty list does not.
func Answered(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	return true
}
