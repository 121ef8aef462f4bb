package people

import (
	"net/url"
	"strings"
)

// KeptInput is a form that was sent after its session had ended.
type KeptInput struct {
	// Route is the pattern of the page that it was sent to, URL its address.
	Route  string     `json:"r"`
	URL    string     `json:"u"`
	Values url.Values `json:"v"`
}

// sessionPerson separates the random part of a session's token from its person.
const sessionPerson = "~"

// PersonOfSession returns the person of a token, even of a session that has ended,
// and "" for a token that is forged.
func (s *People) PersonOfSession(token string) string {
	if !s.Vault.IsSessionToken(token) {
		return ""
	}
	text, _, _ := strings.Cut(token, ".")
	_, person, _ := strings.Cut(text, sessionPerson)
	return person
}

func inputUse(personID string) string { return "input of " + personID }

// KeepInput seals a form for its person, until the person has signed in again.
func (s *People) KeepInput(personID string, input KeptInput) (string, error) {
	return s.sealText(input, inputUse(personID))
}

// OpenInput returns what KeepInput sealed for the person, and false for anything else.
func (s *People) OpenInput(personID, sealed string) (input KeptInput, ok bool) {
	ok = s.openText(sealed, inputUse(personID), &input)
	return input, ok
}
