package console

import (
	"millwright/models"
	"millwright/service/lists"
	"millwright/service/people"
)

// nameFilter reads the search and the position in a list that is sorted by name from the URL. It
// asks for one entry more than a page has: there is a next page if it comes.
func (r *request) nameFilter() lists.NameFilter {
	return lists.NameFilter{
		Search: models.Trim(r.Query("q")), AfterName: r.Query("after_name"), AfterID: r.Query("after"), Limit: models.DefaultPageSize + 1,
	}
}

// namePages returns one page of what a nameFilter found, and the URLs of the other pages. key
// returns the name and the id of an entry; parameters are the list's filters.
func namePages[T any](r *request, found []T, key func(T) (name, id string), path string, parameters ...string) ([]T, pager) {
	var p pager
	if len(found) > models.DefaultPageSize {
		found = found[:models.DefaultPageSize]
		name, id := key(found[len(found)-1])
		p.Older = linkTo(path, append(parameters, "after_name", name, "after", id)...)
	}
	if r.Query("after") != "" {
		p.Newer = linkTo(path, parameters...)
	}
	return found, p
}

func nameOfPerson(p people.PersonSummary) (name, id string) { return p.Name, p.ID }
