package models_test

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"millwright/models"
)

// invisible are strings that show nothing, by what they are made of.
var invisible = map[string]string{
	"nothing":                      "",
	"spaces, tabs and line breaks": " \t\r\n",
	"spaces of Unicode":            "\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000",
	"control characters":           "\x00\x1b\x7f\u0085\u009f",
	"zero-width space and joiners": "\u200b\u200c\u200d\u2060\ufeff",
	"soft hyphen":                  "\u00ad",
	"directions":                   "\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
	"invisible operators":          "\u2061\u2062\u2063\u2064",
	"combining grapheme joiner":    "\u034f",
	"Hangul fillers":               "\u115f\u1160\u3164\uffa0",
	"Mongolian selectors":          "\u180b\u180e\u180f",
	"Khmer inherent vowels":        "\u17b4\u17b5",
	"variation selectors":          "\ufe00\ufe0f\U000e0100\U000e01ef",
	"tags":                         "\U000e0001\U000e0020\U000e007f",
	"unassigned, ignorable":        "\u2065\ufff0\U000e0080\U000e0fff",
	"annotations":                  "\ufff9\ufffa\ufffb",
	"musical and shorthand format": "\U0001d173\U0001d17a\U0001bca0",
	"braille blank":                "\u2800",
	"Khitan filler":                "\U00016fe4",
	"null notehead":                "\U0001d159",
	"several kinds":                " \u200b\u3164\u2800\ufe0f ",
}

func TestTextThatShowsNothingIsBlank(t *testing.T) {
	for name, text := range invisible {
		if !models.IsBlank(text) || models.Trim(text) != "" {
			t.Errorf("%s, %+q, is blank: %v, trimmed: %+q", name, text, models.IsBlank(text), models.Trim(text))
		}
	}
	for name, text := range map[string]string{
		"a letter":                          "a",
		"a letter among fillers":            "\u3164a\u200b",
		"an accent without a letter":        "\u0301",
		"an enclosing circle":               "\u20dd",
		"a Hangul letter":                   "\u1100",
		"another braille pattern":           "\u2801",
		"an emoji with its selector":        "\u2764\ufe0f",
		"a family of joined emoji":          "\U0001f468\u200d\U0001f469",
		"the end of a verse, a format sign": "\u06dd",
		"an Arabic number sign":             "\u0600",
		"private use":                       "\ue000",
		"an object's replacement":           "\ufffc",
		"a byte that is not UTF-8":          "\xff",
		"punctuation":                       ".",
	} {
		if models.IsBlank(text) || models.Trim(" "+text+"\n") != text {
			t.Errorf("%s, %+q, is blank: %v, trimmed: %+q", name, text, models.IsBlank(text), models.Trim(" "+text+"\n"))
		}
	}
}

// The definition is compared with Unicode's own one of what programs may ignore
// (Default_Ignorable_Code_Point), and with the general categories.
func TestEveryCharacterIsVisibleOrNot(t *testing.T) {
	known := strings.Join([]string{invisible["Khitan filler"], invisible["null notehead"], invisible["braille blank"]}, "")
	for r := rune(0); r <= unicode.MaxRune; r++ {
		annotation := r >= 0xfff9 && r <= 0xfffb || r >= 0x13430 && r <= 0x13440
		ignorable := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector) &&
			!unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark) && !annotation
		switch {
		case ignorable || unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Z):
			if !models.IsInvisible(r) {
				t.Errorf("%U is visible", r)
			}
		case unicode.IsGraphic(r) && !strings.ContainsRune(known, r):
			if models.IsInvisible(r) {
				t.Errorf("%U is invisible", r)
			}
		}
	}
}

func TestPropertiesOfBlankText(t *testing.T) {
	var unseen []rune
	for _, text := range invisible {
		unseen = append(unseen, []rune(text)...)
	}
	blank := rapid.StringOf(rapid.SampledFrom(unseen))
	text := rapid.OneOf(blank, rapid.String(), rapid.StringOf(rapid.OneOf(rapid.SampledFrom(unseen), rapid.Rune())))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if models.IsBlank(a+b) != (models.IsBlank(a) && models.IsBlank(b)) {
			t.Errorf("blank together: %v, apart: %v and %v", models.IsBlank(a+b), models.IsBlank(a), models.IsBlank(b))
		}
		before, after := blank.Draw(t, "before"), blank.Draw(t, "after")
		if seen := rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P).Draw(t, "seen"); !models.IsInvisible(seen) && models.IsBlank(before+string(seen)+after) {
			t.Errorf("%q is blank", before+string(seen)+after)
		}
		if !models.IsBlank(before + after) {
			t.Errorf("%+q is not blank", before+after)
		}
		if strings.TrimSpace(a) == "" && !models.IsBlank(a) {
			t.Errorf("%+q is white space and not blank", a)
		}
		trimmed := models.Trim(a)
		if (trimmed == "") != models.IsBlank(a) || trimmed != models.Trim(trimmed) || !strings.Contains(a, trimmed) {
			t.Errorf("%+q is trimmed to %+q", a, trimmed)
		}
	})
}
