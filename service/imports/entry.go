package imports

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"millwright/models"
)

// importEntry is the entity that a key names. It compares three values of each field:
// what the last import left, what is stored, and what the file says.
type importEntry struct {
	run           *importRun
	kind, key, id string
	// created is set if the import creates it.
	created bool
	// imported is what earlier imports left, nil if that is not known.
	imported models.Digests
	// left is what this import leaves, nil as long as that is the same.
	left models.Digests
}

// String names the entry for the file's author.
func (e *importEntry) String() string { return fmt.Sprintf("%s %q", e.kind, e.key) }

// entry returns the entry of the key, with a new id if no earlier import had the key.
func (r *importRun) entry(key, kind string, prefix models.IDPrefix) (*importEntry, error) {
	id := r.result.IDs[key]
	if !r.known[key] {
		var err error
		if id, err = r.NewID(prefix); err != nil {
			return nil, err
		}
		r.result.IDs[key] = id
		r.keys = append(r.keys, models.ImportKey{Key: key, Kind: kind, ID: id})
	}
	e := &importEntry{run: r, kind: kind, key: key, id: id, imported: r.imported[key]}
	r.entries = append(r.entries, e)
	r.entryOf[key] = e
	return e, nil
}

// nodeEntry returns the entry of an inventory node, which may be in an earlier file only.
func (r *importRun) nodeEntry(key string) *importEntry {
	e := r.entryOf[key]
	if e == nil {
		e = &importEntry{run: r, kind: keyNode, key: key, id: r.result.IDs[key], imported: r.imported[key]}
		r.entries = append(r.entries, e)
		r.entryOf[key] = e
	}
	return e
}

// rowOf returns the entry's row in the table for the import to fill in: as it is
// stored, or an empty one to create.
func rowOf[T any](e *importEntry, table *importTable[T]) (row *T, created bool) {
	row, created = table.row(e.id)
	if created && !e.created {
		e.created, e.left = true, models.Digests{}
		e.differ(&Difference{Change: Created, Conflict: e.imported != nil})
	}
	return row, created
}

// setField sets a field of the entry to the file's value, if it gives one, and returns
// the difference or nil. It records the value that it leaves there, for a new entry
// even without a value in the file.
func setField[T any](e *importEntry, name string, field, given *T) *Difference {
	stored := *field
	if given != nil {
		*field = *given
	}
	if !e.created && given == nil {
		return nil
	}
	before, after := e.digest(name, stored), e.digest(name, *field)
	e.leave(name, after)
	if e.created || before == after {
		return nil
	}
	imported, known := e.imported[name]
	return e.differ(&Difference{
		Change: Changed, Field: name,
		From: shownValue(stored), To: shownValue(*field), Conflict: known && imported != before,
	})
}

// relate is setField for what the entry has with another entity, such as a node's
// assignments: name names it by the other's id, shown by its key. Stored is nil if it
// does not exist; so it was after the last import unless that left a digest.
func (e *importEntry) relate(name, shown string, stored *string, wanted string) *Difference {
	before, after := e.digest(name, stored), e.digest(name, &wanted)
	imported, known := e.imported[name]
	if !known {
		imported = e.digest(name, (*string)(nil))
	}
	e.leave(name, after)
	if before == after {
		return nil
	}
	return e.differ(&Difference{
		Change: Changed, Field: shown, From: shownValue(stored), To: wanted,
		Conflict: !e.created && e.imported != nil && imported != before,
	})
}

// digest returns 64 bits that stand for a field's value. The entry is part of them, so
// that equal values of two entries do not show.
func (e *importEntry) digest(name string, value any) string {
	text, err := json.Marshal([]any{e.run.file.Organization.Key, e.key, name, value})
	if err != nil {
		panic(err) // the values are strings, numbers, booleans and lists of strings
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// leave records what the import leaves in a field.
func (e *importEntry) leave(name, digest string) {
	if e.left == nil {
		if e.imported[name] == digest {
			return
		}
		e.left = models.Digests{}
		maps.Copy(e.left, e.imported)
	}
	e.left[name] = digest
}

// differ records a difference of the entry and returns it.
func (e *importEntry) differ(d *Difference) *Difference {
	d.entry, d.Kind, d.Key = e, e.kind, e.key
	e.run.result.Differences = append(e.run.result.Differences, d)
	return d
}

// nameIDs replaces ids in differences by their keys. Those that no import made stay.
func (r *importRun) nameIDs() {
	keys := map[string]string{}
	for key, id := range r.companies {
		keys[id] = key
	}
	for key, id := range r.result.IDs {
		keys[id] = key
	}
	name := func(value any) any {
		switch v := value.(type) {
		case string:
			return cmp.Or(keys[v], v)
		case []string:
			named := make([]string, len(v))
			for i, id := range v {
				named[i] = cmp.Or(keys[id], id)
			}
			slices.Sort(named)
			return named
		}
		return value
	}
	for _, d := range r.result.Differences {
		if d.ids {
			d.From, d.To = name(d.From), name(d.To)
		}
	}
}

// saveDigests writes what the import leaves where it is not what earlier ones left.
func (r *importRun) saveDigests() error {
	var rows []models.ImportDigest
	for _, e := range r.entries {
		if e.left != nil {
			rows = append(rows, models.ImportDigest{OrganizationID: r.result.OrganizationID, Key: e.key, Kind: e.kind, Digests: e.left})
		}
	}
	return upsert(r.DB, rows)
}

// given returns a pointer to an optional value that the file gives, for a field that
// is optional too.
func given[T any](value *T) **T {
	if value == nil {
		return nil
	}
	return &value
}

// givenList returns a list that the file gives, nil if it gives none.
func givenList(list []string) *models.TextArray {
	if list == nil {
		return nil
	}
	array := models.TextArray(list)
	return &array
}
