package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"millwright/models"
)

// readImportFileUntil is readImportFile until the context ends: a large file takes
// seconds.
func readImportFileUntil(ctx context.Context, text []byte) (*importFile, error) {
	var file *importFile
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		file, err = readImportFile(text)
	}()
	select {
	case <-done:
		return file, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// parseImportFile decodes a file within its limits. Problems with its form are
// added to the problems, each with its line.
func parseImportFile(text []byte, file *importFile, problems *FileError) {
	if len(text) > MaxFile {
		problems.add("it is larger than %d MiB", MaxFile>>20)
		return
	}
	document, documents := yaml.Node{}, yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&document); err != nil {
		if !errors.Is(err, io.EOF) { // an empty file lacks an organization
			problems.addYAML(err)
		}
		return
	}
	if err := documents.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		problems.add("it has more than one YAML document")
		return
	}
	if problem := checkImportSize(&document); problem != "" {
		problems.add("%s", problem)
		return
	}
	problems.checkTexts(&document)
	if problems.orNil() != nil {
		return
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(file); err != nil {
		problems.addYAML(err)
	}
	models.NFC(file)
}

// addYAML adds an error of the YAML library in the words of a file's author.
func (e *FileError) addYAML(err error) {
	mismatches, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		problem := strings.TrimPrefix(err.Error(), "yaml: ")
		if strings.Contains(problem, "exceeded max depth") { // the library's own limit
			problem = tooDeep
		}
		e.add("%s", problem)
		return
	}
	for _, mismatch := range mismatches.Errors {
		if m := unknownImportField.FindStringSubmatch(mismatch); m != nil {
			mismatch = fmt.Sprintf("%sunknown field %q", m[1], m[2])
		} else if m := wrongImportType.FindStringSubmatch(mismatch); m != nil {
			mismatch = m[1] + "expected " + importTypeName(m[2]) // not what is there: it may be a secret
		}
		e.add("%s", mismatch)
	}
}

// checkTexts reports strings that the service does not store, each with its line.
func (e *FileError) checkTexts(part *yaml.Node) {
	if part.Kind == yaml.ScalarNode && (part.ShortTag() == "!!binary" || !models.IsPlain(part.Value)) {
		e.add("line %d: %s", part.Line, models.PlainTextRule)
	}
	for _, child := range part.Content {
		e.checkTexts(child)
	}
}

// The library's sentences, which name Go types.
var (
	unknownImportField = regexp.MustCompile(`(?s)^(line \d+: )field (.*) not found in type \S+$`)
	wrongImportType    = regexp.MustCompile(`(?s)^(line \d+: )cannot unmarshal .* into (\S+)$`)
)

// importTypeName names a Go type of an import file for its author.
func importTypeName(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string":
		return "a string"
	case goType == "int":
		return "an integer"
	case goType == "bool":
		return "true or false"
	}
	return "a mapping"
}
