package access

import "millwright/service/store"

// CountVisitor counts a request without a session, in this process and apart from calls of the API:
// by its network and, over the network's limit, by a person who knows its browser, unless known is
// "". Errors: rate_limited (with the Rate).
func (s *Access) CountVisitor(network, known string) (Rate, error) {
	rate := s.visitors.addAny(network, s.AddressCallsPerMinute, s.Now())
	if rate.Exceeded() && known != "" {
		rate = s.visitors.addAny(known, s.AddressCallsPerMinute, s.Now())
	}
	if rate.Exceeded() {
		return rate, overLimit()
	}
	return rate, nil
}

// FormKind is a kind of form that a person sends.
type FormKind string

const (
	// FormOfPerson is any that the others are not.
	FormOfPerson FormKind = "form"
	// FormOfComment counts as a FormOfPerson, too.
	FormOfComment FormKind = "comment"
	// FormOfPage is sent by a page without its person, and counts apart.
	FormOfPage FormKind = "page"
)

// CountForm counts a form of a person, in this process. Errors: rate_limited (with the Rate of the
// limit that it exceeds).
func (s *Access) CountForm(actor store.Actor, kind FormKind) (Rate, error) {
	count := func(kind FormKind, limit int) Rate {
		return s.forms.addAny(string(kind)+" "+actor.IdentityID, limit, s.Now())
	}
	counted := kind
	if kind == FormOfComment {
		counted = FormOfPerson
	}
	rate := count(counted, s.FormsPerMinute)
	if kind == FormOfComment {
		if comments := count(kind, s.CommentsPerMinute); comments.Exceeded() {
			rate = comments
		}
	}
	if rate.Exceeded() {
		return rate, overLimit()
	}
	return rate, nil
}
