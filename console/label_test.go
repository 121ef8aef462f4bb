package console_test

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

var (
	labelBox  = regexp.MustCompile(`<svg class="qr" viewBox="0 0 (\d+) (\d+)"`)
	labelRuns = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)
)

// The code of a label is read as a telephone would: it is the address of the node's page.
func TestTheLabelLeadsToTheNode(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for _, node := range []string{"ahu1", "annex", "mast"} {
		path := "/console/inventory/" + s.ID(node)
		body := s.SignedIn("ann").Get(path + "/label").Want(http.StatusOK).Body
		box := labelBox.FindStringSubmatch(body)
		if len(box) != 3 || box[1] != box[2] {
			t.Fatalf("the label is %s", body)
		}
		const quiet = 4
		all, _ := strconv.Atoi(box[1])
		code := make([][]bool, all-2*quiet)
		for y := range code {
			code[y] = make([]bool, len(code))
		}
		for _, run := range labelRuns.FindAllStringSubmatch(body, -1) {
			x, _ := strconv.Atoi(run[1])
			y, _ := strconv.Atoi(run[2])
			n, _ := strconv.Atoi(run[3])
			for i := range n {
				code[y-quiet][x-quiet+i] = true
			}
		}
		servicetest.Expect(t, "the code", readCode(t, code), s.URL+path)
	}
}

// readCode decodes a QR code of the versions 1 to 6 with bytes and the error correction M,
// without correcting errors (ISO/IEC 18004).
func readCode(t *testing.T, dark [][]bool) string {
	t.Helper()
	size := len(dark)
	version := (size - 17) / 4
	if version < 1 || version > 6 || size != 17+4*version {
		t.Fatalf("a code of %d modules", size)
	}
	at := func(row, column int) int {
		if dark[row][column] {
			return 1
		}
		return 0
	}
	// The format is next to the upper left finder: the level, the mask and their check bits.
	format := 0
	for _, place := range [][2]int{{8, 0}, {8, 1}, {8, 2}, {8, 3}, {8, 4}, {8, 5}, {8, 7}, {8, 8}, {7, 8}, {5, 8}, {4, 8}, {3, 8}, {2, 8}, {1, 8}, {0, 8}} {
		format = format<<1 | at(place[0], place[1])
	}
	format ^= 0b101010000010010
	if format>>13 != 0 {
		t.Fatalf("the error correction is %b, not M", format>>13)
	}
	masks := []func(i, j int) bool{
		func(i, j int) bool { return (i+j)%2 == 0 }, func(i, _ int) bool { return i%2 == 0 }, func(_, j int) bool { return j%3 == 0 }, func(i, j int) bool { return (i+j)%3 == 0 },
		func(i, j int) bool { return (i/2+j/3)%2 == 0 }, func(i, j int) bool { return i*j%2+i*j%3 == 0 }, func(i, j int) bool { return (i*j%2+i*j%3)%2 == 0 }, func(i, j int) bool { return ((i+j)%2+i*j%3)%2 == 0 },
	}
	mask := masks[format>>10&7]
	alignment := size - 7
	isFunction := func(i, j int) bool {
		finder := i < 9 && (j < 9 || j >= size-8) || i >= size-8 && j < 9
		aligns := version > 1 && i >= alignment-2 && i <= alignment+2 && j >= alignment-2 && j <= alignment+2
		return finder || aligns || i == 6 || j == 6
	}
	var words []byte
	bits, word := 0, byte(0)
	for right, up := size-1, true; right > 0; right, up = right-2, !up {
		if right == 6 {
			right--
		}
		for n := range size {
			i := n
			if up {
				i = size - 1 - n
			}
			for _, j := range []int{right, right - 1} {
				if isFunction(i, j) {
					continue
				}
				word <<= 1
				if dark[i][j] != mask(i, j) {
					word |= 1
				}
				if bits++; bits%8 == 0 {
					words, word = append(words, word), 0
				}
			}
		}
	}
	// The words of the blocks alternate.
	blocks := []struct{ count, words int }{{}, {1, 16}, {1, 28}, {1, 44}, {2, 32}, {2, 43}, {4, 27}}[version]
	var data []byte
	for b := range blocks.count {
		for n := range blocks.words {
			data = append(data, words[n*blocks.count+b])
		}
	}
	if data[0]>>4 != 0b0100 {
		t.Fatalf("the mode is %b, not that of bytes", data[0]>>4)
	}
	text := make([]byte, data[0]<<4|data[1]>>4)
	for i := range text {
		text[i] = data[i+1]<<4 | data[i+2]>>4
	}
	return string(text)
}
