package service

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of an import file. Decoding takes about a hundred times the file's size.
const (
	maxImportFile = 8 << 20
	// maxImportValues bounds the values of a file with its aliases expanded: a few
	// lines of nested aliases can stand for billions of values.
	maxImportValues = 500_000
)

// checkImportSize returns why a file is too large to decode, or "".
func checkImportSize(text []byte) string {
	if len(text) > maxImportFile {
		return fmt.Sprintf("it is larger than %d MiB", maxImportFile>>20)
	}
	if !bytes.ContainsRune(text, '*') {
		return "" // without aliases it has no more values than bytes
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return "" // decoding reports what is wrong
	}
	anchors := map[string]int{}
	values := 0
	for _, doc := range file.Docs {
		values += countValues(doc.Body, anchors)
	}
	if values > maxImportValues {
		return fmt.Sprintf("with its aliases expanded it has more than %d values", maxImportValues)
	}
	return ""
}

// countValues counts the values of a node with its aliases expanded, up to
// maxImportValues + 1. It adds the count of each anchor to anchors.
func countValues(node ast.Node, anchors map[string]int) int {
	count := 1
	add := func(nodes ...ast.Node) {
		for _, n := range nodes {
			count = min(count+countValues(n, anchors), maxImportValues+1)
		}
	}
	switch n := node.(type) {
	case nil:
		return 0
	case *ast.AliasNode:
		return anchors[n.Value.GetToken().Value]
	case *ast.AnchorNode:
		add(n.Value)
		anchors[n.Name.GetToken().Value] = count
	case *ast.TagNode:
		add(n.Value)
	case *ast.MappingNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		add(n.Value)
	case *ast.SequenceNode:
		add(n.Values...)
	}
	return count
}
