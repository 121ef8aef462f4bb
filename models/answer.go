package models

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Answer is a row of answers: the answer to a question of a work order's form.
type Answer struct {
	WorkOrderID string `gorm:"primaryKey"`
	QuestionID  string `gorm:"primaryKey"`
	// Value is JSON.
	Value      json.RawMessage
	AnsweredAt Time
	AnsweredBy string
}

// AnswerRules are what a question requires of its answers.
type AnswerRules struct {
	Type     QuestionType
	Required bool
	// Options are the ids of the choices, empty for other types.
	Options []string
}

// Normalize returns the answer in the form in which it is stored, or the rule that
// value breaks (api.md 2.3).
// value is decoded JSON whose numbers are json.Number, so that decimals keep their
// digits.
func (r AnswerRules) Normalize(value any) (answer any, problem string) {
	switch r.Type {
	case QuestionSingleChoice:
		if option, ok := value.(string); !ok || !slices.Contains(r.Options, option) {
			return nil, "The value must be the id of one of the question's options."
		}
	case QuestionMultipleChoice:
		return value, checkChoices(r.Options, value)
	case QuestionInteger:
		return normalizeInteger(value)
	case QuestionDecimal:
		return normalizeDecimal(value)
	case QuestionText:
		return value, r.checkText(value)
	}
	return value, ""
}

// normalizeInteger writes 5.0 and 50e-1 as 5.
func normalizeInteger(value any) (answer any, problem string) {
	text, _ := value.(json.Number)
	if n, ok := ParseNumber(text); ok && n.within(MaxIntegerDigits, MaxDecimalDigits) {
		if n = n.Reduced(); n.exponent >= 0 {
			return n.plain(), ""
		}
	}
	return nil, fmt.Sprintf("The value must be an integer of at most %d digits.", MaxIntegerDigits)
}

// normalizeDecimal writes 1e-05 as 0.00001 and keeps trailing zeros.
func normalizeDecimal(value any) (answer any, problem string) {
	text, _ := value.(json.Number)
	if n, ok := ParseNumber(text); ok && n.within(MaxDecimalDigits, MaxDecimalDigits) {
		return n.plain(), ""
	}
	return nil, fmt.Sprintf("The value must be a number with at most %d digits on each side of the point.", MaxDecimalDigits)
}

func (r AnswerRules) checkText(value any) string {
	text, ok := value.(string)
	switch {
	case !ok || utf8.RuneCountInString(text) > MaxAnswerText:
		return "The value must be a string of at most 10,000 characters."
	case !IsPlain(text):
		return PlainTextRule
	case r.Required && text != "" && IsBlank(text):
		return BlankTextRule
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

// Answered reports whether the value answers a required question. A blank text or an
// empty list does not.
func Answered(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return !IsBlank(v)
	case []any:
		return len(v) > 0
	}
	return true
}
