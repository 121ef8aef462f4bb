package people

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// Roles are identities by their role in a work order, as events show them.
type Roles struct {
	Assignees   []string `json:"assignees"`
	Consultants []string `json:"consultants"`
}

// All returns the ids in both roles.
func (r *Roles) All() []string { return slices.Concat(r.Assignees, r.Consultants) }

// RolesOf selects, as the column assigned, the roles of the work order w as one string:
// place, first letter of the role and identity of each. A subquery for each role would
// take twice as long, and sorting a page's work orders in it too.
const RolesOf = `array_to_string(ARRAY(SELECT x.position || left(x.role, 1) || x.identity_id
		FROM work_order_assignees x WHERE x.work_order_id = w.id), ' ') AS assigned`

// ScanText reads the column of RolesOf.
func (r *Roles) ScanText(column pgtype.Text) error {
	*r = Roles{Assignees: []string{}, Consultants: []string{}}
	ordered := column.String
	if strings.Contains(ordered, " ") {
		all := strings.Fields(ordered)
		slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(orderOf(a), orderOf(b)) })
		ordered = strings.Join(all, " ")
	}
	for one := range strings.FieldsSeq(ordered) {
		role := strings.IndexAny(one, "wc")
		if role < 0 {
			return fmt.Errorf("a role is %q", one)
		}
		if one[role] == 'w' {
			r.Assignees = append(r.Assignees, one[role+1:])
		} else {
			r.Consultants = append(r.Consultants, one[role+1:])
		}
	}
	return nil
}

// orderOf returns the place of one role.
func orderOf(one string) int {
	place, _ := strconv.Atoi(one[:max(0, strings.IndexAny(one, "wc"))]) // the database's own number
	return place
}
