package console

import (
	"slices"
	"strings"

	"millwright/models"
)

// placeView is a node with the path to it ({{template "place" .}}).
type placeView struct {
	// Path are the names from the root down, without the node.
	Path []string
	Name string
	// URL is where the name leads, "" for nowhere.
	URL string
}

// text is the place in one line.
func (p placeView) text() string {
	return strings.Join(slices.Concat(p.Path, []string{p.Name}), " › ")
}

// placeAt shows the node of a record, whose name links to the URL.
func placeAt(node models.NodeReference, to string) placeView {
	return placeView{Path: namesOfPath(node.Path), Name: node.Name, URL: to}
}

// whereOf joins the names on the path to a node.
func whereOf(path []models.PathNode) string { return strings.Join(namesOfPath(path), " › ") }

func namesOfPath(path []models.PathNode) []string {
	return stringsOf(path, func(node models.PathNode) string { return node.Name })
}
