package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"millwright/console"
	"millwright/console/consoletest"
)

// A message about a write is shown once, on the next page, and is in no URL.
func TestMessagesAreShownOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	answer(t, s, id)
	bob := s.SignedIn("bob")
	const message = "It waits for the consultants&#39; review"
	next := bob.Post(path+"/complete", bob.Get(path).Want(http.StatusOK).Form()).Want(http.StatusSeeOther).Location()
	if next != path {
		t.Errorf("the message is in the URL %s", next)
	}
	bob.Get(next).Want(http.StatusOK, message)
	wantNot(t, bob.Get(next).Want(http.StatusOK), message)
	wantNot(t, bob.Get(path+"?done=deactivated").Want(http.StatusOK), "Deactivated.")
}

var doneKeys = regexp.MustCompile(`\bdone\(.*, "([a-z-]+)"\)|(?:\bdone(?::| :?=)|(?:afterStep|Outcome)\(.*?,?) "([a-z-]+)"`)

// Every write has a message.
func TestEveryMessageHasWords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range doneKeys.FindAllStringSubmatch(string(source), -1) {
			found++
			if key := match[1] + match[2]; console.DoneTexts[key] == "" {
				t.Errorf("%s: there is no text for %q", file, key)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d messages were found", found)
	}
}
