package web

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"math/rand/v2"
	"testing"
)

// listPage returns a page of 50 work orders, as the API shows them.
func listPage() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	id := func(prefix string) string {
		const digits = "0123456789abcdefghjkmnpqrstvwxyz"
		text := []byte(prefix + "_01jd8q4v6c")
		for range 16 {
			text = append(text, digits[random.IntN(len(digits))])
		}
		return string(text)
	}
	titles := []string{"Replace filter", "Check pressure of the boiler", "Inspect fan", "Repair door closer", "Calibrate sensor"}
	organization, building, erp := id("idn"), id("loc"), id("idn")
	page := []byte(`{"data":[`)
	for n := range 50 {
		node := id("eqp")
		page = fmt.Appendf(page, `{"id":%q,"organization_id":%q,"number":%d,"inventory_id":%q,"inventory":{"id":%q,"kind":"equipment","name":"AHU %d","external_id":"AHU-%d","path":[{"id":%q,"kind":"location","name":"Headquarters"}]},"title":%q,"description":null,"priority":"medium","target_date":"2026-12-%02dT12:00:00.000Z","form_id":null,"assignees":[%q],"consultants":[],"external_id":"ERP-%d","status":{"code":"open","name":"Open"},"cancel_reason":null,"created_by":%q,"created_at":"2026-11-%02dT0%d:15:%02d.%03dZ","changed_at":"2026-11-%02dT0%d:15:%02d.%03dZ","completed_at":null,"cancelled_at":null},`,
			id("wo"), organization, 1000+n, node, node, n, n, building, titles[random.IntN(len(titles))], 1+n%28, id("idn"), random.IntN(10000), erp,
			1+n%28, n%10, n, random.IntN(1000), 1+n%28, n%10, n, random.IntN(1000))
	}
	return append(page[:len(page)-1], `],"has_more":true,"next_cursor":"AX0AAAGTUXK2vGZpbHRlcnMtYW5kLXBvc2l0aW9u"}`...)
}

// BenchmarkCompress compresses a page of 50 work orders with each coding, and with the
// standard library's gzip.
func BenchmarkCompress(b *testing.B) {
	page := listPage()
	standard, err := stdgzip.NewWriterLevel(nil, stdgzip.BestSpeed)
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]packer{
		"gzip":          packers[codingGzip].Get().(packer),
		"zstd":          packers[codingZstd].Get().(packer),
		"standard gzip": standard,
	} {
		b.Run(name, func(b *testing.B) {
			var packed bytes.Buffer
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				packed.Reset()
				p.Reset(&packed)
				_, _ = p.Write(page)
				_ = p.Close()
			}
			b.ReportMetric(float64(packed.Len()), "packed-bytes")
		})
	}
}
