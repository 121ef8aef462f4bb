package imports

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// MaxFile is the size of the largest import file, in bytes. Decoding takes about
// sixty times as much memory.
const MaxFile = 8 << 20

// Further limits of an import file.
const (
	// maxImportValues and maxImportDepth bound the values of a file, and the lists and
	// mappings inside each other, with its aliases expanded: a few lines of nested
	// aliases can stand for billions of values.
	maxImportValues = 500_000
	maxImportDepth  = 64
)

// tooDeep is the message for a file that exceeds maxImportDepth.
var tooDeep = fmt.Sprintf("it is nested deeper than %d levels", maxImportDepth)

// checkImportSize returns why a parsed file is too large to decode, or "".
func checkImportSize(document *yaml.Node) string {
	size := importMeasure{}.of(document)
	switch {
	case size.values > maxImportValues:
		return fmt.Sprintf("with its aliases expanded it has more than %d values", maxImportValues)
	case size.depth > maxImportDepth:
		return tooDeep
	}
	return ""
}

// importSize is the size of a part of a file with its aliases expanded.
type importSize struct{ values, depth int }

// importMeasure holds the sizes of the parts that aliases name. A part that contains
// itself counts once; decoding rejects it.
type importMeasure map[*yaml.Node]importSize

// of returns the size of the part, up to maxImportValues + 1 values.
func (m importMeasure) of(part *yaml.Node) importSize {
	if part.Kind == yaml.AliasNode {
		return m[part.Alias]
	}
	size := importSize{values: 1}
	for _, child := range part.Content {
		inner := m.of(child)
		size.values = min(size.values+inner.values, maxImportValues+1)
		size.depth = max(size.depth, inner.depth)
	}
	if part.Kind == yaml.SequenceNode || part.Kind == yaml.MappingNode {
		size.depth++
	}
	if part.Anchor != "" {
		m[part] = size
	}
	return size
}
