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

// CheckAnswer returns a sentence that says why value does not answer a question of
// the kind with these option ids, "" if it does (spec section 2, Answer;
// docs/contract.md, Records). value is decoded JSON whose numbers are json.Number, so
// that decimals keep their digits.
func CheckAnswer(kind QuestionType, options []string, value any) string {
	switch kind {
	case QuestionSingleChoice:
		if option, ok := value.(string); !ok || !slices.Contains(options, option) {
			return "The value must be the id of one of the question's options."
		}
	case QuestionMultipleChoice:
		return checkChoices(options, value)
	case QuestionInteger:
		if number, ok := value.(json.Number); !ok || !integerForm.MatchString(number.String()) {
			return fmt.Sprintf("The value must be an integer of at most %d digits.", MaxIntegerDigits)
		}
	case QuestionDecimal:
		if number, ok := value.(json.Number); !ok || !decimalForm.MatchString(number.String()) {
			return fmt.Sprintf("The value must be a decimal number with at most %d digits on each side of the point and no exponent.", MaxDecimalDigits)
		}
	case QuestionText:
		if text, ok := value.(string); !ok || utf8.RuneCountInString(text) > MaxAnswerText {
			return "The value must be a text of at most 10,000 characters."
		}
	}
	return ""
}

func checkChoices(options []string, value any) string {
	list, ok := value.([]any)
	if !ok {
		return "The value must be a list of ids of the question's options."
	}
	var seen []string
	for _, item := range list {
		option, ok := item.(string)
		if !ok || !slices.Contains(options, option) || slices.Contains(seen, option) {
			return "The value must be a list of ids of the question's options, each at most once."
		}
		seen = append(seen, option)
	}
	return ""
}

// Answered reports whether the value answers a required question. An empty text or an
// empty list does not.
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
