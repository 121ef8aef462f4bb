package web

import "strings"

// WantsPage reports whether an Accept header is a browser's that opens a page: it names
// HTML. Programs that accept anything do not.
func WantsPage(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(kind), "text/html") {
			return true
		}
	}
	return false
}
