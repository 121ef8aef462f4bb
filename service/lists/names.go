package lists

import (
	"cmp"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// NameFilter selects a page of a list that is sorted by name. Empty fields restrict nothing.
type NameFilter struct {
	// Search are words of the name; of people, of the e-mail address too.
	Search string
	// AfterName and AfterID are the name and id of the previous page's last entry.
	AfterName, AfterID string
	Limit              int
}

// Args are @organization and the parameters of the filter, for a query that has InNamePage.
func (f NameFilter) Args(organizationID string) pgx.NamedArgs {
	return pgx.NamedArgs{
		"organization": organizationID, "search": models.WordQuery(models.SearchWords(f.Search), ""),
		"after_key": models.SortKey(f.AfterName), "after_id": f.AfterID,
		"limit": min(cmp.Or(f.Limit, models.DefaultPageSize), models.MaxPageSize+1),
	}
}

// InNamePage is the condition that the row, which has an id and a sort_key, is on the NameFilter's
// page; words are searched.
func InNamePage(row, words string) string {
	return `(@search = '' OR (` + words + `) @@ @search::tsquery)
			AND (` + row + `.sort_key, ` + row + `.id) > (@after_key, @after_id)`
}
