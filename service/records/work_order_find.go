package records

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/store"
)

// workOrderFinder reads the work orders of a WorkOrderSearch. Its sources have a bounded number
// of candidates each, by id or by due_key; the first ones are looked up until a page is full.
// The page ends at the first work order at which a source was cut.
type workOrderFinder struct {
	// Query knows what the actor may read.
	*lists.Query
	search WorkOrderSearch
	// keys sign the cursors.
	keys *store.Vault
	now  models.Time
	zone *time.Location
	// from is the key, a due_key or an id, after which the page begins, or before it if it is a page
	// back.
	from string
	back bool
	// queued is true for the queue of the actor, manages if the actor manages. section tells the
	// arguments of its sections apart.
	queued, manages bool
	// counts is true if the matches are only counted.
	counts  bool
	section string
	// access is what the actor may read, names what the search's strings stand for.
	access store.Visibility
	names  SearchNames
	// nodes are those that the search's text names, node is the id of the only one.
	nodes []models.NodeReference
	node  string
	// words are the searched ones.
	words wordSearch
	// cuts counts the sources that had more than was looked at in the round before.
	cuts int
	// nothing is true if a name of the search stands for nothing.
	nothing bool
}

// newWorkOrderFinder checks the search. Errors: permission_denied, invalid_request.
func (s *Records) newWorkOrderFinder(actor store.Actor, search WorkOrderSearch, after string) (*workOrderFinder, error) {
	if err := access.RequirePerson(actor, "The search of work orders"); err != nil {
		return nil, err
	}
	if err := search.check(); err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(search.Zone)
	if err != nil {
		return nil, models.Errorf(models.CodeInvalidRequest, "There is no such time zone.")
	}
	f := &workOrderFinder{zone: zone, Query: lists.NewQuery("work_orders found", listedWorkOrderColumns, actor, search), search: search, keys: s.Vault, now: s.CurrentTime()}
	start, err := lists.NewPageStart(s.Store, lists.ListRequest{Cursor: after}, f.Digest)
	if err != nil {
		return nil, err
	}
	f.NarrowBy(models.GrantWorkOrdersRead, "")
	f.CreatedBy(models.GrantWorkOrdersCreate)
	f.from, f.back = strings.CutPrefix(start.At.ID, backMark)
	f.begin(search.Due.on(f.now.Time, f.zone))
	return f, nil
}

// namesQuery selects what a string stands for: an identity of the organization or one of its
// service companies by name, or the actor with its teams.
const namesQuery = `
	SELECT i.id, i.name FROM actor_identities a JOIN identities i ON i.id = a.identity_id
	WHERE @text = '` + SearchMe + `' AND a.actor_id = @actor AND a.identity_id <> a.organization_id
	UNION ALL
	(SELECT i.id, i.name FROM identities i
	WHERE @text <> '` + SearchMe + `' AND i.organization_id = ANY (ARRAY(SELECT @organization::text UNION ALL SELECT company_id FROM service_companies WHERE customer_id = @organization))
		AND (i.organization_id = @organization OR i.kind = 'organization')
		AND (i.id = @text AND i.organization_id = @organization OR i.words @@ @words::tsquery)
	ORDER BY i.id LIMIT @limit)`

// queueNames adds the queries of what the search's strings stand for.
func (f *workOrderFinder) queueNames(pipeline *pgx.Batch) error {
	queue := func(into *[]NamedRecord, text string) {
		if text != "" {
			store.QueueAll(pipeline, into, namesQuery, pgx.NamedArgs{
				"text": text, "words": models.WordQuery(models.SearchWords(text), ""), "actor": f.Actor.IdentityID,
				"organization": f.Actor.OrganizationID, "limit": maxSearchNames + 1,
			})
		}
	}
	queue(&f.names.Assignees, f.search.Assignee)
	queue(&f.names.Creators, f.search.Creator)
	if f.search.Node != "" {
		inventory.QueueNamedNodes(pipeline, &f.nodes, f.Actor, f.search.Node, `EXISTS (SELECT FROM `+access.RightsOn("n.id", "@actor")+`)`)
	}
	if f.searchesWords() {
		store.QueueValues(pipeline, &f.words.owners, ownersQuery, pgx.NamedArgs{"organization": f.Actor.OrganizationID, "customers": maxCustomers})
	}
	return nil
}

func (f *workOrderFinder) searchesWords() bool {
	return f.search.Text != "" || f.search.ExternalID != ""
}

// queueAccess adds the queries of what the actor may read and of what has the words. Errors:
// invalid_request.
func (f *workOrderFinder) queueAccess(pipeline *pgx.Batch) error {
	if err := f.resolve(); err != nil || f.nothing {
		return err
	}
	f.Below = f.node
	f.QueueVisibility(pipeline, &f.access, &lists.PageStart{})
	if f.searchesWords() {
		f.queueMatches(pipeline)
	}
	return nil
}

// resolve uses what queueNames has read. Errors: invalid_request.
func (f *workOrderFinder) resolve() error {
	for _, name := range []struct {
		text, argument, parameter string
		found                     []NamedRecord
	}{{f.search.Assignee, "assignees", "assignee", f.names.Assignees}, {f.search.Creator, "creators", "by", f.names.Creators}} {
		if name.text == "" {
			continue
		}
		if name.text != SearchMe && len(name.found) > maxSearchNames {
			return models.BadParameter(name.parameter, "More than %d people, teams and integrations have %q in their name. Enter more of the name.", maxSearchNames, name.text)
		}
		ids := make([]string, len(name.found))
		for i, one := range name.found {
			ids[i] = one.ID
		}
		f.Args[name.argument] = ids
		f.nothing = f.nothing || len(ids) == 0
	}
	if err := f.resolveNode(); err != nil {
		return err
	}
	if f.searchesWords() {
		f.words.words = models.SearchWords(f.search.Text)
		if f.search.ExternalID != "" {
			f.words.words = append(f.words.words, models.CodeWord(f.search.ExternalID))
		}
	}
	if len(f.words.words) > maxSearchWords {
		return models.BadParameter("q", "A search has at most %d words.", maxSearchWords)
	}
	return nil
}

// resolveNode finds the search's node. The work orders of a node that the actor does not see
// may be assigned to it. Errors: invalid_request.
func (f *workOrderFinder) resolveNode() error {
	text := f.search.Node
	switch {
	case text == "":
		return nil
	case len(f.nodes) == 1:
		f.node = f.nodes[0].ID
		f.names.Nodes = []NamedRecord{{f.node, f.nodes[0].Name}}
	case len(f.nodes) > 1:
		return models.BadParameter("node", "%s", inventory.EnterID(f.nodes))
	case inventory.IsNodeID(text):
		f.node = text
	default:
		f.nothing = true
	}
	f.Args["node"] = f.node
	return nil
}
