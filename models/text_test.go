package models_test

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"millwright/models"
)

// invisible are strings that show nothing. TestEveryCharacterIsVisibleOrNot has all characters that Unicode calls so.
var invisible = map[string]string{
	"nothing":                      "",
	"spaces, tabs and line breaks": " \t\r\n",
	"annotations":                  "\ufff9\ufffa\ufffb",
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
		"a letter among fillers":            "\u3164a\u200b",
		"an accent without a letter":        "\u0301",
		"a family of joined emoji":          "\U0001f468\u200d\U0001f469",
		"the end of a verse, a format sign": "\u06dd",
		"an Arabic number sign":             "\u0600",
		"private use":                       "\ue000",
		"an object's replacement":           "\ufffc",
		"a byte that is not UTF-8":          "\xff",
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
