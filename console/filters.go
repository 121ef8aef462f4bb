package console

// choice returns a select of a filter, for {{template "filter-select" .}}.
func choice(name, label string, options []option) field {
	return field{Name: name, Label: label, Type: "select", Options: options}
}
