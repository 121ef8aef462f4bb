package mail_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"millwright/mail"
)

func TestUnlinked(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"Ann Field":                       "Ann Field",
		"Dr. Ann Field-Moss, 2nd floor":   "Dr. Ann Field-Moss, 2nd floor",
		"Filter v1.2 at 10:30, 3.5 kW...": "Filter v1.2 at 10:30, 3.5 kW...",
		"http://evil.example/sign-in":     "http: //evil. example/sign-in",
		"www.evil.example":                "www. evil. example",
		"Log in at EVIL.EXAMPLE now.":     "Log in at EVIL. EXAMPLE now.",
		"evil。example ｡ａ．рф":              "evil。 example ｡ ａ． рф",
		"evil.\u200bexample":              "evil. \u200bexample",
		"ann@evil.example":                "ann@ evil. example",
		"ann＠evil http：//evil":            "ann＠ evil http： //evil",
		"mailto:ann tel:+123 javascript:": "mailto: ann tel: +123 javascript:",
		"http://10.0.0.1:8080/":           "http: //10.0.0.1:8080/",
		`\\evil\share`:                    `\ \evil\share`,
	} {
		if got := mail.Unlinked(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// looksLikeALink matches what mail programs make links of: no space, of any alphabet, ends it.
var looksLikeALink = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*[:：][^\s\v\x{85}\p{Z}]|` +
	`[^\s][.。．｡][\p{L}\p{M}\p{Cf}]|[@＠][^\s\v\x{85}\p{Z}]|\\\\`)

// timeOrPort stays as it is: it is part of no link without what is before it.
var timeOrPort = regexp.MustCompile(`[0-9](:[0-9]+)+`)

func TestNoTextBecomesALink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`(https?|ftp|mailto)?:?(//)?([a-zа-я0-9@-]{0,5}[.。．｡@:/\\ ]){0,6}[a-zé]{2,4}(/[a-z.]*)?`),
		).Draw(t, "text")
		got := mail.Unlinked(text)
		if link := looksLikeALink.FindString(timeOrPort.ReplaceAllString(got, "0")); link != "" {
			t.Fatalf("%q becomes %q, with the link %q", text, got, link)
		}
		if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(string([]rune(text)), " ", "") {
			t.Fatalf("%q becomes %q: more than spaces are added", text, got)
		}
		if mail.Unlinked(got) != got {
			t.Fatalf("%q changes again: %q", got, mail.Unlinked(got))
		}
	})
}
