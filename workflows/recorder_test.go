package workflows_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
)

// See testdata/README.md.
var (
	record   = flag.String("record", "", "the id of a workflow whose history to record before replaying, or \"id run\"")
	recordTo = flag.String("to", "", "with -record, the file in testdata to write")
)

// recorder replaces the process and host in a recorded history.
const recorder = "recorder"

// recordHistory writes the history of the workflow's run, by default the newest, to the file: one event per line, without
// the machine's names.
func recordHistory(t *testing.T, workflow, file string) {
	t.Helper()
	id, run, _ := strings.Cut(workflow, " ")
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort:  os.Getenv("TEMPORAL_ADDRESS"),
		Namespace: os.Getenv("TEMPORAL_NAMESPACE"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var lines []string
	events := c.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, eventJSON(t, event))
	}
	text := "{\"events\": [\n" + strings.Join(lines, ",\n") + "\n]}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// eventJSON encodes the event without the machine's names.
func eventJSON(t *testing.T, event *history.HistoryEvent) string {
	t.Helper()
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	anonymize(value)
	line, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// anonymize replaces the names of the process, its host and its binary.
func anonymize(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			anonymize(element)
		}
	case map[string]any:
		if value["kind"] == "TASK_QUEUE_KIND_STICKY" {
			value["name"] = recorder
		}
		for name, element := range value {
			switch name {
			case "identity", "binaryChecksum", "buildId":
				value[name] = recorder
			default:
				anonymize(element)
			}
		}
	}
}
