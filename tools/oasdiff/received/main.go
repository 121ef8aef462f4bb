// Command received rewrites an OpenAPI document for oasdiff: each webhook becomes a
// GET whose response is the payload. oasdiff treats a webhook's payload as a request,
// in which a new required field breaks callers. But a receiver ignores additional
// fields, as the client of a response does.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type object = map[string]any

func main() {
	var document object
	err := json.NewDecoder(os.Stdin).Decode(&document)
	if err == nil {
		rewrite(document)
		err = json.NewEncoder(os.Stdout).Encode(document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "received:", err)
		os.Exit(1)
	}
}

func rewrite(document object) {
	webhooks, _ := document["webhooks"].(object)
	paths, _ := document["paths"].(object)
	for name, item := range webhooks {
		path, _ := item.(object)
		operation, _ := path["post"].(object)
		body, _ := operation["requestBody"].(object)
		paths["/webhooks/"+name] = object{"get": object{
			"operationId": operation["operationId"],
			"responses":   object{"200": object{"description": "The payload.", "content": body["content"]}},
		}}
	}
	delete(document, "webhooks")
}
