package console_test

import (
	"image"
	"image/color"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/boombuler/barcode/qr"

	"millwright/console/consoletest"
)

var labelRuns = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)

// The label of a node draws the code of its page's address, with a margin of four modules.
func TestTheLabelLeadsToTheNode(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	path := "/console/inventory/" + s.ID("ahu1")
	code, err := qr.Encode(s.URL+path, qr.M, qr.Auto)
	if err != nil {
		t.Fatal(err)
	}
	size := code.Bounds().Dx()
	all := strconv.Itoa(size + 8)
	page := s.SignedIn("ann").Get(path+"/label").Want(http.StatusOK, `<svg class="qr" viewBox="0 0 `+all+" "+all+`"`)
	drawn := map[image.Point]bool{}
	for _, run := range labelRuns.FindAllStringSubmatch(page.Body, -1) {
		x, _ := strconv.Atoi(run[1])
		y, _ := strconv.Atoi(run[2])
		n, _ := strconv.Atoi(run[3])
		for i := range n {
			drawn[image.Pt(x-4+i, y-4)] = true
		}
	}
	dark := 0
	for at := range size * size {
		if place := image.Pt(at%size, at/size); code.At(place.X, place.Y) == color.Black {
			if dark++; !drawn[place] {
				t.Errorf("the module at %v is not dark", place)
			}
		}
	}
	if dark == 0 || len(drawn) != dark {
		t.Errorf("%d modules are dark, want %d", len(drawn), dark)
	}
}
