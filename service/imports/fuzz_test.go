package imports

import (
	"errors"
	"slices"
	"testing"
)

// Any file is read or rejected with sentences, and stays within its limits: its
// aliases stand for no more values than a file may have.
func FuzzImportFile(f *testing.F) {
	for _, seed := range []string{
		"organization: {key: acme, name: Acme}\npeople:\n  - {key: ann, name: Ann, email: ann@example.com}\n",
		"organization: &o {key: acme}\nteams: [{key: t, members: [*o]}]\n",
		"inventory:\n  - &a {key: a, kind: location, children: [*a]}\n",
		"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "<<: *x", "? ? ?", "- - -", "{{{{", "\x00", "!!binary x", "\"\\u0000\"",
		"forms: [{key: f, questions: [{key: q, type: text, options: [{key: o}]}]}]",
		"organization: {key: a}\n---\norganization: {key: b}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := readImportFile(text)
		if err != nil {
			rejected, ok := errors.AsType[*FileError](err)
			if !ok || len(rejected.Problems) == 0 || slices.Contains(rejected.Problems, "") {
				t.Fatalf("rejected without a sentence: %v", err)
			}
			return
		}
		if n := len(file.kinds); n > len(text) && n > maxImportValues {
			t.Errorf("%d bytes stand for %d keys", len(text), n)
		}
	})
}
