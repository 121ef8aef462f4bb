package console

import (
	"fmt"
	"html/template"
	"image"
	"strings"

	"github.com/boombuler/barcode/qr"

	"millwright/service/inventory"
)

// labelView is a label of a node to print.
type labelView struct {
	Node             inventory.NodeView
	Code, Where, URL string
	OrganizationName string
	Picture          template.HTML
}

var labelPage = newPage[labelView]("label.html")

func (c *Console) showLabel(r *request) error {
	node, err := c.service.Inventory.NodeForPerson(r.ctx(), r.actor(), r.Param("id"))
	if err != nil {
		return err
	}
	address := c.options.PublicURL + nodeURL(node.ID)
	picture, err := qrPicture(address)
	if err != nil {
		return err
	}
	where := stringsOf(crumbsOf(node), func(above shortcut) string { return above.Text })
	return labelPage.show(r, labelView{
		Node: node, Code: valueOf(node.ExternalID), Where: strings.Join(where, " › "), URL: address, OrganizationName: r.viewer.OrganizationName, Picture: picture,
	})
}

// quietZone is the margin that readers of QR codes need, in modules.
const quietZone = 4

// qrPicture draws the QR code of a string as SVG: one path of the dark modules, row by row. A
// code can still be read when 15 % of it are scratched. Errors: a string over 2,331 bytes.
func qrPicture(text string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", err
	}
	size := code.Bounds().Dx()
	var path strings.Builder
	for y := range size {
		for x := 0; x < size; x++ {
			from := x
			for x < size && isDark(code, x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from+quietZone, y+quietZone, x-from, x-from)
			}
		}
	}
	all := size + 2*quietZone
	return template.HTML(fmt.Sprintf(`<svg class="qr" viewBox="0 0 %d %d" role="img" aria-label="QR code of this page's address" shape-rendering="crispEdges"><path d=%q/></svg>`, //nolint:gosec // only numbers
		all, all, path.String())), nil
}

func isDark(code image.Image, x, y int) bool {
	luminance, _, _, _ := code.At(x, y).RGBA()
	return luminance == 0
}
