package api_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// documented is a key with its description.
type documented struct{ Key, Description string }

// docs/postman.json has a request for each operation of the document, with its parameters and what is said of them.
// A new one is a copy of another; newman runs all of them (e2e).
func TestPostmanCollectionIsCurrent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/postman.json")
	if err != nil {
		t.Fatal(err)
	}
	var collection struct {
		Item []struct {
			Item []struct {
				Name    string
				Request struct {
					Method, Description string
					Header              []documented
					URL                 struct {
						Path            []string
						Query, Variable []documented
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &collection); err != nil {
		t.Fatal(err)
	}
	shown := func(name, description string, parameters []documented) string {
		lines := []string{name, description}
		for _, p := range parameters {
			if p.Description != "" { // unlike Content-Type
				lines = append(lines, p.Key+": "+p.Description)
			}
		}
		slices.Sort(lines[2:])
		return strings.Join(lines, "\n")
	}
	requests := map[string]string{}
	for _, folder := range collection.Item {
		for _, item := range folder.Item {
			r := item.Request
			requests[r.Method+" /"+strings.Join(r.URL.Path, "/")] = shown(item.Name, r.Description, slices.Concat(r.URL.Query, r.URL.Variable, r.Header))
		}
	}
	operations := 0
	eachOperation(document(t), func(name string, op object) {
		section, call, _ := strings.Cut(name, " ")
		if section != "paths" {
			return
		}
		operations++
		method, path, _ := strings.Cut(call, " ")
		call = strings.ToUpper(method) + " " + strings.NewReplacer("{", ":", "}", "").Replace(path)
		var parameters []documented
		list, _ := op["parameters"].([]any)
		for _, p := range list {
			parameters = append(parameters, documented{p.(object)["name"].(string), p.(object)["description"].(string)})
		}
		want(t, call, requests[call], shown(op["summary"].(string), op["description"].(string), parameters))
	})
	want(t, "requests", len(requests), operations)
}
