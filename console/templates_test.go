package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/people"
)

// hostile is a string that must never be markup.
const hostile = `<script>alert(1)</script>"'&{{.}} \u202egnp.exe`

// fill sets every field of a view to something: strings to hostile, lists to two
// elements, numbers to 2, pointers to values.
func fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time, models.Time, template.HTML, url.Values:
		return
	}
	switch v.Kind() { //nolint:exhaustive // views have no others
	case reflect.String:
		v.SetString(hostile)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Float64:
		v.SetFloat(2)
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range 2 {
				fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("name").Convert(v.Type().Key()), reflect.ValueOf(hostile).Convert(v.Type().Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// Every template can be executed with an empty view and with a hostile one, whose strings
// stay text.
func TestEveryTemplateShowsItsView(t *testing.T) {
	viewer := people.Viewer{Grants: models.AllOrganizationGrants, OrganizationName: hostile, ReadOnly: true}
	viewer.Name = hostile
	for _, p := range allPages {
		for _, filled := range []bool{false, true} {
			for _, seen := range []*people.Viewer{nil, &viewer} {
				t.Run(fmt.Sprintf("%s filled %v viewer %v", p.file, filled, seen != nil), func(t *testing.T) {
					view := reflect.ValueOf(p.newView()).Elem()
					if filled {
						fill(view, 0)
					}
					var body bytes.Buffer
					f := frame{Viewer: seen, View: view.Interface(), Nav: []navGroup{{hostile, []navItem{{Text: hostile, URL: hostile, Icon: "home", Count: 100, Counts: true}}}}}
					if err := p.template().Execute(&body, f); err != nil {
						t.Fatal(err)
					}
					text := strings.ReplaceAll(body.String(), "<wbr>", "")
					for _, never := range []string{"<script>", "onclick", "style=", "<style", "ZgotmplZ", "<no value>", "{{"} {
						if strings.Contains(strings.ReplaceAll(text, "{{.}}", ""), never) {
							t.Errorf("the page contains %s:\n%s", never, text)
						}
					}
					if !strings.HasSuffix(strings.TrimSpace(text), "</html>") {
						t.Error("the page is cut short")
					}
				})
			}
		}
	}
}

// The scripts of others are the released files.
func TestHtmxIsPinned(t *testing.T) {
	script, err := assetFiles.ReadFile("assets/htmx/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	sums, _ := assetFiles.ReadFile("assets/htmx/SHA256SUMS")
	version, _ := assetFiles.ReadFile("assets/htmx/VERSION")
	license, _ := assetFiles.ReadFile("assets/htmx/LICENSE")
	sum := sha256.Sum256(script)
	if string(sums) != hex.EncodeToString(sum[:])+"  htmx.min.js\n" {
		t.Errorf("the checksum is %x, not that of SHA256SUMS", sum)
	}
	number := strings.TrimPrefix(strings.TrimSpace(string(version)), "htmx.org ")
	if number == "" || !bytes.Contains(script, []byte(`"`+number+`"`)) {
		t.Errorf("the script is not version %q", version)
	}
	if !bytes.Contains(license, []byte("Zero-Clause BSD")) {
		t.Error("the licence is missing")
	}
}
