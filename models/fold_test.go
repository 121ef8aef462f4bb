package models_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"millwright/models"
)

func TestFold(t *testing.T) {
	for name, same := range map[string][]string{
		"case":                      {"KÜ-7", "kü-7", "Kü-7"},
		"a letter of two":           {"Straße", "STRASSE", "strasse"},
		"Greek's two forms of s":    {"ΣΊΣΥΦΟΣ", "σίσυφος"},
		"forms of letters":          {"ＡＨＵ－１", "ahu-1"},
		"ligatures":                 {"ﬁlter", "FILTER"},
		"composed and not":          {"Örjan", "O\u0308rjan", "ÖRJAN"},
		"dashes":                    {"A-1", "A–1", "A‑1", "A−1"},
		"quotes":                    {`"hall" 'a'`, "“Hall” ‘A’", "„Hall“ ‚A‘"},
		"what shows nothing":        {"pump", "pu\u00admp", "\u200bpump\ufeff", "PUMP\u3164"},
		"spaces":                    {"Pump 1", " pump\u00a01 ", "pump \t1"},
		"accents in another order":  {"a\u0323\u0302", "a\u0302\u0323", "ậ"},
		"a joiner between a letter": {"e\u034f\u0301", "é"},
	} {
		for _, text := range same[1:] {
			if models.Fold(text) != models.Fold(same[0]) {
				t.Errorf("%s: %+q is folded to %+q, %+q to %+q", name, text, models.Fold(text), same[0], models.Fold(same[0]))
			}
		}
	}
	for _, different := range [][2]string{{"ö", "o"}, {"A-1", "A1"}, {"ahu 1", "ahu1"}, {"Ж", "ж1"}} {
		if models.Fold(different[0]) == models.Fold(different[1]) {
			t.Errorf("%q and %q are folded to the same", different[0], different[1])
		}
	}
}

func TestSortKey(t *testing.T) {
	want := []string{"", "Aachen", "Änderung", "Anna", "Hall 2", "Hall 10", "hall 10 b", "Örjan", "Otto", "Room 2", "room 007", "Room 10", "Room 100", "Zoe", "Ёлка", "Яна"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int { return strings.Compare(models.SortKey(a), models.SortKey(b)) })
	if !slices.Equal(got, want) {
		t.Errorf("sorted: %q", got)
	}
}

// anyScript are strings of many scripts, with punctuation, marks and what shows nothing.
var anyScript = rapid.OneOf(
	rapid.String(),
	rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 -_/.,'\"\\&|!():*<>=@#°€äÖßİıſΣςάЖё京都東ひがカー한글กรุงထိုင်ဋ\u0301\u0308\u200b\u00ad\u3000🔧")), 0, 30, -1),
)

func TestFoldingTwiceChangesNothingMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyScript.Draw(t, "text")
		once := models.Fold(text)
		if again := models.Fold(once); again != once {
			t.Errorf("%+q is folded to %+q and that to %+q", text, once, again)
		}
		for name, other := range map[string]string{"NFD": norm.NFD.String(text), "NFC": norm.NFC.String(text), "the upper case": strings.ToUpper(text), "the lower case": strings.ToLower(text)} {
			if got := models.Fold(other); got != once {
				t.Errorf("%s of %+q is folded to %+q, not %+q", name, text, got, once)
			}
		}
	})
}

// BenchmarkWordsOf makes what one creation of a work order adds.
func BenchmarkWordsOf(b *testing.B) {
	code := "ERP-2026-004711"
	for b.Loop() {
		models.WordsOf("idn_01jd8q4v6cf5e8hbbfwj0zq3tc", &code, "4711", "Replace both filters of the supply fan in hall 3")
	}
}

// BenchmarkSortKey makes the key of a name.
func BenchmarkSortKey(b *testing.B) {
	for b.Loop() {
		models.SortKey("Supply fan 12, Hall 3")
	}
}
