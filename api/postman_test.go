package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const postmanFile = "../docs/postman.json"

var updatePostman = flag.Bool("update", false, "write docs/postman.json again")

// openAPIDocument is the part of openapi.json that the collection needs.
type openAPIDocument struct {
	Info struct{ Title, Version string }
	Tags []struct{ Name, Description string }
	// Paths have the operations by their methods.
	Paths map[string]map[string]openAPIOperation
}

type openAPIOperation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Parameters                        []struct {
		Name, In, Description string
		Example               any
	}
	RequestBody *struct {
		Content map[string]struct {
			Example  any
			Examples map[string]struct{ Value any }
		}
	}
	Responses map[string]any
}

// postmanTags are the folders, in the order in which the collection runs: later ones need the ids of earlier ones.
var postmanTags = []string{"OAuth", "Integration", "Inventory", "Forms", "People and teams", "Work orders", "Feedback"}

// postmanBodies replace the examples of bodies that name records of the organization.
var postmanBodies = map[string]object{
	"create-work-order": {"inventory_id": "{{equipment}}", "title": "Replace filter", "assignees": []string{"{{identity}}"}, "external_id": "ERP-7781"},
	"assign-work-order": {"assignees": []string{"{{people}}"}},
	"answer-work-order": {"answers": []any{}},
	"create-issue":      {"inventory_id": "{{locations}}", "subject": "The light flickers", "external_id": "{{$guid}}"},
}

// getPostmanToken gets a token before the first request, and again after forgetPostmanToken.
const (
	getPostmanToken = `if (!pm.variables.get("token")) {
  const credentials = pm.variables.get("clientId") + ":" + pm.variables.get("clientSecret");
  pm.sendRequest({
    url: pm.variables.get("baseUrl") + "/oauth/token", method: "POST",
    header: { Authorization: "Basic " + Buffer.from(credentials).toString("base64") },
    body: { mode: "urlencoded", urlencoded: [{ key: "grant_type", value: "client_credentials" }] },
  }, (error, response) => {
    if (error || response.code !== 200) throw new Error("No token: set the variables clientId and clientSecret.");
    pm.collectionVariables.set("token", response.json().access_token);
  });
}`
	forgetPostmanToken = `if (pm.response.code === 401) pm.collectionVariables.unset("token");`
)

// postmanScript tests the status of a response, and keeps what later requests need.
func postmanScript(path, method string, op openAPIOperation) string {
	status := slices.Sorted(maps.Keys(op.Responses))[0]
	script := `pm.test("The status is ` + status + `", () => pm.response.to.have.status(` + status + `));`
	list := strings.TrimPrefix(path, "/")
	switch {
	case path == "/me":
		script += "\npm.collectionVariables.set(\"identity\", pm.response.json().identity_id);"
	case path == "/oauth/revoke":
		script += "\npm.collectionVariables.unset(\"token\");"
	case status == "201":
		script += "\npm.collectionVariables.set(\"" + list + "\", pm.response.json().id);"
	case method == "GET" && !strings.Contains(path, "{"):
		script += "\nconst [first] = pm.response.json().data;\nif (first) pm.collectionVariables.set(\"" + list + "\", first.id);"
	}
	return script
}

// postmanEvent runs a script, before or after ("test") each request.
func postmanEvent(when, script string) object {
	return object{"listen": when, "script": object{"type": "text/javascript", "exec": strings.Split(script, "\n")}}
}

// postmanCollection makes a Postman collection (version 2.1) of the document: a folder for
// each tag, a request for each operation, with its test. Tokens and ids are variables.
func postmanCollection(doc openAPIDocument) object {
	folders := map[string][]any{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			folders[op.Tags[0]] = append(folders[op.Tags[0]], postmanRequest(path, strings.ToUpper(method), op))
		}
	}
	descriptions := map[string]string{}
	for _, tag := range doc.Tags {
		descriptions[tag.Name] = tag.Description
	}
	var items []any
	for _, name := range postmanTags {
		items = append(items, object{"name": name, "description": descriptions[name], "item": folders[name]})
	}
	value := func(key, value string) object { return object{"key": key, "value": value, "type": "string"} }
	return object{
		"info": object{
			"name": doc.Info.Title, "version": doc.Info.Version,
			"description": "Set the variables baseUrl, clientId and clientSecret. Run all requests in order, in Postman or with newman: each keeps the ids that later ones need. " +
				"There must be a record of every kind, and the newest person must be connected to the newest equipment.",
			"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
		},
		"auth":     object{"type": "bearer", "bearer": []any{value("token", "{{token}}")}},
		"event":    []any{postmanEvent("prerequest", getPostmanToken), postmanEvent("test", forgetPostmanToken)},
		"variable": []any{value("baseUrl", "http://127.0.0.1:8080/v1"), value("clientId", ""), value("clientSecret", "")},
		"item":     items,
	}
}

func postmanRequest(path, method string, op openAPIOperation) object {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, "{"); ok {
			segments[i] = ":" + strings.TrimSuffix(name, "}")
		}
	}
	variables, query, headers := []any{}, []any{}, []any{}
	for _, p := range op.Parameters {
		example := ""
		if p.Example != nil {
			text, _ := json.Marshal(p.Example) // it was JSON
			example = strings.Trim(string(text), `"`)
		}
		one := object{"key": p.Name, "value": example, "description": p.Description}
		switch p.In {
		case "path":
			list, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
			if p.Name == "identity_id" {
				list = "people"
			}
			one["value"] = "{{" + list + "}}"
			variables = append(variables, one)
		case "query":
			one["disabled"] = true
			query = append(query, one)
		case "header":
			if p.Name == "Idempotency-Key" {
				one["value"] = "{{$guid}}"
			} else {
				one["disabled"] = true
			}
			headers = append(headers, one)
		}
	}
	request := object{
		"method": method, "description": op.Description, "header": headers,
		"url": object{"raw": "{{baseUrl}}/" + strings.Join(segments, "/"), "host": []any{"{{baseUrl}}"}, "path": segments, "query": query, "variable": variables},
	}
	if op.RequestBody != nil {
		if content, ok := op.RequestBody.Content["application/json"]; ok {
			raw := exampleOf(content.Example, content.Examples)
			if body := postmanBodies[op.OperationID]; body != nil {
				raw = exampleOf(body, nil)
			}
			request["body"] = object{"mode": "raw", "raw": raw, "options": object{"raw": object{"language": "json"}}}
			request["header"] = append(headers, object{"key": "Content-Type", "value": "application/json"})
		} else { // the OAuth endpoints: forms, and the client's credentials
			field, given := "token", "{{token}}"
			if path == "/oauth/token" {
				field, given = "grant_type", "client_credentials"
			}
			request["body"] = object{"mode": "urlencoded", "urlencoded": []any{object{"key": field, "value": given}}}
			request["auth"] = object{"type": "basic", "basic": []any{
				object{"key": "username", "value": "{{clientId}}", "type": "string"}, object{"key": "password", "value": "{{clientSecret}}", "type": "string"},
			}}
		}
	}
	name := op.Summary
	if name == "" {
		name = op.OperationID
	}
	return object{"name": name, "request": request, "event": []any{postmanEvent("test", postmanScript(path, method, op))}}
}

// exampleOf returns the first example as text.
func exampleOf(one any, named map[string]struct{ Value any }) string {
	if names := slices.Sorted(maps.Keys(named)); one == nil && len(names) > 0 {
		one = named[names[0]].Value
	}
	text, _ := json.MarshalIndent(one, "", "  ") // it was JSON
	return string(text)
}

// docs/postman.json has every operation of openapi.json, and is up to date.
func TestPostmanCollectionIsCurrent(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc openAPIDocument
	if err := json.Unmarshal(content, &doc); err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(postmanCollection(doc)); err != nil {
		t.Fatal(err)
	}
	if *updatePostman {
		if err := os.WriteFile(postmanFile, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(postmanFile)
	if err != nil || !bytes.Equal(stored, made.Bytes()) {
		t.Errorf("docs/postman.json is not what openapi.json says (%v): run this test with -update", err)
	}
	requests, operations := 0, 0
	for _, folder := range postmanCollection(doc)["item"].([]any) {
		requests += len(folder.(object)["item"].([]any))
	}
	for _, methods := range doc.Paths {
		operations += len(methods)
	}
	want(t, "requests, one for each operation", requests, operations)
}
