package models

import (
	"database/sql/driver"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// FoldVersion names what Fold, SortKey and WordsOf make of a string. `millwright migrate` makes the columns
// that follow from strings again when it differs from the database's.
const FoldVersion = "1 Unicode " + norm.Version

// Fold returns the form in which strings are compared that people type: e-mail addresses, codes and searches. Upper
// and lower case, forms of letters, dashes, quotes and spaces count as the same, and what shows nothing does not
// count. The locale of the database does not matter.
func Fold(s string) string {
	if isASCII(s) { // as most are
		return strings.Join(strings.Fields(strings.Map(sameForm, s)), " ")
	}
	s = strings.Map(func(r rune) rune {
		if IsInvisible(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToValidUTF8(s, "\ufffd")))
	fold := cases.Fold()
	s = withoutDots(fold.String(norm.NFKD.String(fold.String(s))))
	s = norm.NFKC.String(strings.Map(sameForm, s))
	return strings.Join(strings.Fields(s), " ")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// withoutDots makes one letter of i with and without a dot: which of them an I is, depends on the language.
func withoutDots(s string) string {
	onI := false
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u0307' && onI: // the dot of a capital letter with a dot
			return -1
		case !unicode.IsMark(r):
			onI = r == 'i' || r == 'ı'
		}
		if r == 'ı' {
			return 'i'
		}
		return r
	}, s)
}

// sameForm returns the plain form of a typographic dash or quote, and the small form of a letter.
func sameForm(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r >= 'a' && r <= 'z':
		return r
	case unicode.Is(unicode.Pd, r), r == '\u2212': // minus
		return '-'
	case r >= '\u2018' && r <= '\u201b', r == '\u2032', r == '`', r == '\u00b4', r == '\u2039', r == '\u203a':
		return '\''
	case r >= '\u201c' && r <= '\u201f', r == '\u2033', r == '\u00ab', r == '\u00bb':
		return '"'
	}
	return unicode.ToLower(unicode.ToUpper(r)) // Cherokee, which package cases leaves
}

// SortKey returns the bytes by which names are sorted: by letters, whatever their case and accents, with numbers
// as numbers ("Room 2" before "Room 10").
func SortKey(name string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(Fold(name)))
	var b strings.Builder
	for letters != "" {
		if n := strings.IndexFunc(letters, func(r rune) bool { return r < '0' || r > '9' }); n != 0 {
			if n < 0 {
				n = len(letters)
			}
			number := strings.TrimLeft(letters[:n], "0")
			b.WriteByte('0')
			b.WriteRune(rune('0' + len(number))) //nolint:gosec // a few digits; of two numbers the one with more is larger
			b.WriteString(number)
			letters = letters[n:]
			continue
		}
		_, size := utf8.DecodeRuneInString(letters)
		b.WriteString(letters[:size])
		letters = letters[size:]
	}
	return b.String()
}

// Folded is a model with columns that follow from its strings.
type Folded interface {
	// Fold sets the columns.
	Fold()
	// FoldedColumns names the columns, and those from which they follow.
	FoldedColumns() (columns, from []string)
}

// Words is a column of type tsvector: the words of a string, by which it is searched. A SELECT does not read it.
type Words []string

// Value writes the words in Postgres's text form.
func (w Words) Value() (driver.Value, error) { return w.String(), nil }

// MarshalText writes the words as Value does.
func (w Words) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// String returns the words in Postgres's text form.
func (w Words) String() string {
	quoted := make([]string, len(w))
	for i, word := range w {
		quoted[i] = quoteWord(word)
	}
	return strings.Join(quoted, " ")
}

// quoteWord quotes a word for a tsvector or a tsquery.
func quoteWord(word string) string {
	return "'" + strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(word) + "'"
}

const (
	// wordPrefix is the number of bytes at the end of an organization's id that precede each of its words, so that
	// a search in one organization reads no words of others.
	wordPrefix = 10
	// maxWord is after how many characters words are cut; Postgres has words of at most 2,046 bytes.
	maxWord = 100
)

// codeMark precedes a code among the words, whole and folded: no word begins with it.
const codeMark = "="

func ofOrganization(id string) string { return id[max(0, len(id)-wordPrefix):] }

// WordsOf returns the words of a record's strings and of its code (external_id), which may be nil. The organization is ""
// where no index has the words: of names.
func WordsOf(organizationID string, code *string, fields ...string) Words {
	prefix := ofOrganization(organizationID)
	var all Words
	if code != nil {
		fields = append(fields, *code)
		all = append(all, prefix+CodeWord(*code).terms[0])
	}
	for _, text := range fields {
		for _, word := range splitWords(text) {
			if !word.unspaced {
				all = append(all, prefix+string(word.letters))
				continue
			}
			for i := range word.letters {
				all = append(all, prefix+string(word.letters[i:min(i+2, len(word.letters))]))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // pgx sends them in binary, as which Postgres stores duplicates
}

// SearchedWord is a word of a search.
type SearchedWord struct {
	// terms are the words that a string with it has; begins is true if the last may be the beginning of one.
	terms  []string
	begins bool
}

// SearchWords returns the words of a search. Each may be the beginning of a word, except for a number, which is
// itself: 17 is not 170.
func SearchWords(text string) []SearchedWord {
	var all []SearchedWord
	for _, word := range splitWords(text) {
		n := len(word.letters)
		if !word.unspaced {
			number := strings.Trim(string(word.letters), "0123456789") == ""
			all = append(all, SearchedWord{terms: []string{string(word.letters)}, begins: !number})
			continue
		}
		searched := SearchedWord{begins: n == 1}
		for i := range max(1, n-1) { // pairs of characters, in which one alone is a beginning
			searched.terms = append(searched.terms, string(word.letters[i:min(i+2, n)]))
		}
		all = append(all, searched)
	}
	return all
}

// WordQuery returns the tsquery of strings with all words in one of the organizations, "" without words; of WordsOf without
// an organization, which is then "".
func WordQuery(words []SearchedWord, organizationIDs ...string) string {
	if len(words) == 0 {
		return ""
	}
	ways := make([]string, len(organizationIDs))
	for i, id := range organizationIDs {
		var terms []string
		for _, word := range words {
			for _, term := range word.terms {
				term = quoteWord(ofOrganization(id) + term)
				if word.begins {
					term += ":*"
				}
				terms = append(terms, term)
			}
		}
		ways[i] = strings.Join(terms, " & ")
	}
	return strings.Join(ways, " | ")
}

// CodeWord returns the word that only records with the code (external_id) have.
func CodeWord(code string) SearchedWord {
	return SearchedWord{terms: []string{codeMark + cutWord(Fold(code), 2*maxWord)}}
}

// oneWord is a word, or characters of a script that writes no spaces.
type oneWord struct {
	letters  []rune
	unspaced bool
}

// splitWords divides a string into words at spaces and punctuation, and where scripts with and without spaces meet. A
// text of punctuation alone is one word.
func splitWords(text string) []oneWord {
	var words []oneWord
	inWord := false
	text = Fold(text)
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsPunct(r) || unicode.IsControl(r) || r < utf8.RuneSelf && unicode.IsSymbol(r) {
			inWord = false
			continue
		}
		last := len(words) - 1
		unspaced := isUnspaced(r) || inWord && unicode.IsMark(r) && words[last].unspaced
		if !inWord || words[last].unspaced != unspaced {
			words, inWord, last = append(words, oneWord{unspaced: unspaced}), true, last+1
		}
		if unspaced || len(words[last].letters) < maxWord {
			words[last].letters = append(words[last].letters, r)
		}
	}
	if len(words) == 0 && text != "" {
		return []oneWord{{letters: []rune(cutWord(text, maxWord))}}
	}
	return words
}

// isUnspaced reports whether the character belongs to a script that writes no spaces between words.
func isUnspaced(r rune) bool {
	return r > '\u0e00' && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r == '\u30fc') // the long vowel of both kana
}

func cutWord(s string, characters int) string {
	for i := range s {
		if characters--; characters < 0 {
			return s[:i]
		}
	}
	return s
}
