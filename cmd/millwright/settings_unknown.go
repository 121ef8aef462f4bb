package main

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// programNames are variables that are no settings: of commands, and of builds for tests.
var programNames = regexp.MustCompile(`^(WEBHOOK_SECRET|MILLWRIGHT_PROFILE_ADDR|MILLWRIGHT_FAILPOINT_.*)$`)

// serviceLink are the variables that Kubernetes and Docker add to a container for each service
// of its namespace.
var serviceLink = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT(_\d+_(TCP|UDP)(_[A-Z]+)?)?$`)

// settingNames returns the names of the settings, with the names for files with secrets.
func settingNames() (names []string) {
	for _, tag := range settingTags() {
		names = append(names, tag.Get("env"))
		if tag.Get("secret") == "true" {
			names = append(names, tag.Get("env")+fileSuffix)
		}
	}
	return names
}

// unknownSettings returns a sentence for each variable that is probably a misspelt setting, one
// or two letters from a known one, and the names of the others that begin like settings.
func unknownSettings(variables iter.Seq[string]) (misspelt, unknown []string) {
	names := settingNames()
	prefixes := map[string]bool{}
	for _, name := range names {
		if prefix, _, several := strings.Cut(name, "_"); several && prefix != "OTEL" { // the SDK has more
			prefixes[prefix] = true
		}
	}
	for _, variable := range slices.Sorted(variables) {
		prefix, _, _ := strings.Cut(variable, "_")
		if !prefixes[prefix] || slices.Contains(names, variable) || programNames.MatchString(variable) || serviceLink.MatchString(variable) {
			continue
		}
		i := slices.IndexFunc(names, func(name string) bool { return edits(name, variable) <= 2 })
		if i < 0 {
			unknown = append(unknown, variable)
			continue
		}
		misspelt = append(misspelt, fmt.Sprintf("%s is no setting; is it %s?", variable, names[i]))
	}
	return misspelt, unknown
}

// edits counts the letters to insert, remove or replace to turn one name into the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
