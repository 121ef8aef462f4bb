package lists

import (
	"cmp"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// NameFilter selects a page of a list that is sorted by name. Empty fields restrict nothing.
type NameFilter struct {
	// Search is a part of the name; of people, of the e-mail address too.
	Search string
	// AfterName and AfterID are the name and id of the previous page's last entry.
	AfterName, AfterID string
	Limit              int
}

// Args are the filter's parameters of a query that has InNamePage.
func (f NameFilter) Args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"search": strings.ToLower(models.Trim(f.Search)), "after_name": f.AfterName, "after_id": f.AfterID,
		"limit": min(cmp.Or(f.Limit, models.DefaultPageSize), models.MaxPageSize+1),
	}
}

// InNamePage is the condition that {w}, which has an id and a name, is on the NameFilter's
// page; {text} is another column that is searched.
const InNamePage = `(@search = '' OR strpos(lower({w}.name), @search) > 0 OR strpos(lower({text}), @search) > 0)
			AND (@after_id = '' OR (lower({w}.name), {w}.id) > (lower(@after_name), @after_id))`
