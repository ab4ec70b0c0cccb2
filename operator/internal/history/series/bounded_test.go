package series

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

var nightly = Key{Project: "team", Benchmark: "scan", Metric: "throughput", Statistic: "median"}

// manyNights returns records as a schedule writes them.
func manyNights(count int) []Record {
	out := make([]Record, 0, count)
	for i := range count {
		r := Record{
			Kind: Measured, ID: fmt.Sprintf("0f2c3a9d-%08d", i), Analysis: 1, Schedule: "nightly", Sequence: int64(i + 1),
			At: time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Hour), Head: fmt.Sprintf("%07x", i*7919), Anchor: "0000000",
			Image: "ghcr.io/acme/app@sha256:" + strings.Repeat("0", 64), Machine: "m", Workload: "w", Ledger: fmt.Sprintf("s3://assay/runs/%d", i),
			Ratio: Estimate{LogRatio: float64(i%13) / 1000, SE: 0.01, DF: 9, Blocks: 10},
		}
		if i%3 == 1 {
			r.Predecessor, r.Step = fmt.Sprintf("%07x", (i-1)*7919), &Estimate{LogRatio: 0.001, SE: 0.01, DF: 9, Blocks: 10}
		}
		if i%17 == 5 {
			r.Kind, r.Reason, r.Ratio = Gap, "its tag had vanished", Estimate{}
		}
		out = append(out, r)
	}
	return out
}

// forged is a file split into its pages and its footer.
type forged struct {
	pages  []byte
	footer format.FileMetaData
}

func split(t *testing.T, file []byte) *forged {
	t.Helper()
	length := int(binary.LittleEndian.Uint32(file[len(file)-tail:]))
	out := &forged{pages: slices.Clone(file[:len(file)-tail-length])}
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, file[len(file)-tail-length:len(file)-tail], &out.footer); err != nil {
		t.Fatal(err)
	}
	return out
}

func withFooter(pages, footer []byte) []byte {
	out := append(slices.Clone(pages), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), "PAR1"...)
}

func (f *forged) join(t *testing.T) []byte {
	t.Helper()
	footer, err := thrift.Marshal(&thrift.CompactProtocol{}, &f.footer)
	if err != nil {
		t.Fatal(err)
	}
	return withFooter(f.pages, footer)
}

func (f *forged) column(name string) *format.ColumnMetaData {
	for i := range f.footer.RowGroups[0].Columns {
		if is := &f.footer.RowGroups[0].Columns[i].MetaData; is.PathInSchema[0] == name {
			return is
		}
	}
	panic("no column " + name)
}

// page modifies the last page of a column, and the sizes in the column metadata accordingly.
func (f *forged) page(t *testing.T, name string, change func(header *format.PageHeader, body []byte) []byte) {
	t.Helper()
	is := f.column(name)
	start := is.DataPageOffset
	if is.DictionaryPageOffset > 0 {
		start = is.DictionaryPageOffset
	}
	chunk := f.pages[start : start+is.TotalCompressedSize]
	at := int64(0)
	for rest := chunk; len(rest) > 0; {
		after, err := skipStruct(rest, 0)
		if err != nil {
			t.Fatal(err)
		}
		raw := rest[:len(rest)-len(after)]
		var header format.PageHeader
		if err := thrift.Unmarshal(&thrift.CompactProtocol{}, raw, &header); err != nil {
			t.Fatal(err)
		}
		body := after[:header.CompressedPageSize]
		rest = after[header.CompressedPageSize:]
		if len(rest) > 0 {
			at = int64(len(chunk) - len(rest))
			continue
		}
		header.CRC = 0
		body = change(&header, slices.Clone(body))
		written, err := thrift.Marshal(&thrift.CompactProtocol{}, &header)
		if err != nil {
			t.Fatal(err)
		}
		anew := slices.Concat(chunk[:at], written, body)
		moved := int64(len(f.pages))
		f.pages = append(f.pages, anew...)
		if is.DictionaryPageOffset > 0 {
			is.DictionaryPageOffset = moved
		}
		is.DataPageOffset, is.TotalCompressedSize = moved+at, int64(len(anew))
		return
	}
}

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll(data, nil)
}

// room returns the bytes that a function allocates.
func room(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// mostRoom is the maximum allocation for reading a small file, whose header is not trusted.
const mostRoom = 192 << 20

func TestDecode_DeclaredSizesAreValidated(t *testing.T) {
	whole, err := Encode(nightly, manyNights(40))
	if err != nil {
		t.Fatal(err)
	}
	// A count of 2^31 - 1, which exceeds the content.
	many := binary.AppendUvarint(nil, math.MaxInt32)
	footer := func(raw ...byte) func(*testing.T, *forged) []byte {
		return func(_ *testing.T, f *forged) []byte { return withFooter(f.pages, raw) }
	}
	changed := func(change func(f *forged)) func(*testing.T, *forged) []byte {
		return func(t *testing.T, f *forged) []byte {
			change(f)
			return f.join(t)
		}
	}
	paged := func(column string, change func(h *format.PageHeader, body []byte) []byte) func(*testing.T, *forged) []byte {
		return func(t *testing.T, f *forged) []byte {
			f.page(t, column, change)
			return f.join(t)
		}
	}
	cases := map[string]struct {
		forge func(*testing.T, *forged) []byte
		says  string
	}{
		"an empty file": {func(*testing.T, *forged) []byte { return nil }, "too short for Parquet"},
		"a footer longer than the file": {func(_ *testing.T, f *forged) []byte {
			return []byte("PAR1\xff\xff\x00\x00PAR1PAR1\xf0\xff\x00\x00PAR1")
		}, "exceeds the limit"},
		"a footer of gigabytes":                  {func(_ *testing.T, f *forged) []byte { return append(f.pages, "\xff\xff\xff\xffPAR1"...) }, "exceeds the limit"},
		"a list longer than the file":            {footer(append([]byte{0x15, 0x04, 0x19, 0xfc}, append(many, 0)...)...), "declares more than it holds"},
		"a list of numbers longer than the file": {footer(append([]byte{0x19, 0xf5}, append(many, 0)...)...), "declares more than it holds"},
		"a text longer than the file":            {footer(append([]byte{0x18}, append(many, 0)...)...), "declares more than it holds"},
		"deeply nested structures":               {footer([]byte(strings.Repeat("\x1c", 1000))...), "declares more than it holds"},
		"deeply nested lists":                    {footer([]byte(strings.Repeat("\x19", 1000))...), "declares more than it holds"},
		"a map, which Parquet does not use":      {footer(0x1b, 0x05, 0x55, 0), "declares more than it holds"},

		"more records than the limit":  {changed(func(f *forged) { f.footer.NumRows, f.footer.RowGroups[0].NumRows = 1<<40, 1<<40 }), "more than 100000 records"},
		"a negative number of records": {changed(func(f *forged) { f.footer.NumRows, f.footer.RowGroups[0].NumRows = -1, -1 }), "-1"},
		"more records than its groups": {changed(func(f *forged) { f.footer.NumRows = 50_000 }), "its row groups have 40"},
		"a repeated group": {changed(func(f *forged) {
			f.footer.NumRows, f.footer.RowGroups = 40*4000, slices.Repeat(f.footer.RowGroups, 4000)
		}), "exceeds the limit"},
		"a column with more values than records": {changed(func(f *forged) { f.column("id").NumValues = 99_999 }), "declares 99999 values for 40"},
		"a column beyond the end of the file":    {changed(func(f *forged) { f.column("id").DataPageOffset = 1 << 40 }), "bytes at offset"},
		"a column with a negative offset":        {changed(func(f *forged) { f.column("id").DataPageOffset = -8 }), "bytes at offset"},
		"a column longer than the file":          {changed(func(f *forged) { f.column("id").TotalCompressedSize = math.MaxInt64 }), "bytes at offset"},
		"a column in another file":               {changed(func(f *forged) { f.footer.RowGroups[0].Columns[0].FilePath = "/etc/passwd" }), "another file"},
		"a column without pages":                 {changed(func(f *forged) { f.column("id").TotalCompressedSize = 0 }), "have 0 values for 40"},
		"a missing column": {changed(func(f *forged) {
			f.footer.RowGroups[0].Columns = f.footer.RowGroups[0].Columns[1:]
		}), ""},
		"another compression": {changed(func(f *forged) { f.column("id").Codec = format.Brotli }), "a history uses ZSTD"},
		"another schema":      {changed(func(f *forged) { f.footer.KeyValueMetadata = nil }), "is allowed"},
		"other columns":       {changed(func(f *forged) { f.footer.Schema[1].Name = "projekt" }), ""},

		"a page with more values than its column": {paged("id", func(h *format.PageHeader, body []byte) []byte {
			h.DataPageHeaderV2.V.NumValues = math.MaxInt32
			return body
		}), "a page declares 2147483647 values"},
		"a page longer than its column": {paged("id", func(h *format.PageHeader, body []byte) []byte {
			h.CompressedPageSize = math.MaxInt32
			return body
		}), "a page declares 2147483647 bytes"},
		"a page of gigabytes": {paged("id", func(h *format.PageHeader, body []byte) []byte {
			h.UncompressedPageSize = math.MaxInt32
			return body
		}), "decompressed bytes"},
		"a page that decompresses to an enormous size": {paged("id", func(h *format.PageHeader, _ []byte) []byte {
			body := packed(t, make([]byte, 256<<20))
			h.CompressedPageSize, h.UncompressedPageSize, h.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(body)), 256<<20, 0
			return body
		}), ""},
		"lengths of more texts than values": {paged("id", func(h *format.PageHeader, _ []byte) []byte {
			plain := append(binary.AppendUvarint(binary.AppendUvarint(nil, 128), 4), append(many, 0)...)
			body := packed(t, plain)
			h.CompressedPageSize, h.UncompressedPageSize, h.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(body)), int32(len(plain)), 0
			return body
		}), "2147483647 differences for 40"},
		"a run longer than the number of values": {paged("kind", func(h *format.PageHeader, _ []byte) []byte {
			plain := append([]byte{8}, append(binary.AppendUvarint(nil, 90_000<<1), 0)...)
			body := packed(t, plain)
			h.CompressedPageSize, h.UncompressedPageSize, h.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(body)), int32(len(plain)), 0
			return body
		}), "runs have at least 90000 values; 40 are declared"},
		"a huge number of packed groups of zero bits": {paged("kind", func(h *format.PageHeader, _ []byte) []byte {
			plain := append([]byte{0}, binary.AppendUvarint(nil, math.MaxInt32<<1|1)...)
			body := packed(t, plain)
			h.CompressedPageSize, h.UncompressedPageSize, h.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(body)), int32(len(plain)), 0
			return body
		}), "runs have at least"},
		"levels of more values than declared": {paged("log_ratio", func(h *format.PageHeader, body []byte) []byte {
			levels := append(binary.AppendUvarint(nil, 90_000<<1), 1)
			was := h.DataPageHeaderV2.V.DefinitionLevelsByteLength
			h.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(levels))
			h.CompressedPageSize += int32(len(levels)) - was
			h.UncompressedPageSize += int32(len(levels)) - was
			return append(levels, body[was:]...)
		}), "runs have at least 90000 values; 40 are declared"},
		"an index outside the dictionary": {paged("kind", func(h *format.PageHeader, _ []byte) []byte {
			plain := append([]byte{8}, append(binary.AppendUvarint(nil, 40<<1), 200)...)
			body := packed(t, plain)
			h.CompressedPageSize, h.UncompressedPageSize, h.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(body)), int32(len(plain)), 0
			return body
		}), ""},
		"an unsupported kind of page": {paged("id", func(h *format.PageHeader, body []byte) []byte {
			h.Type = format.IndexPage
			return body
		}), "unsupported"},
		"an unsupported encoding": {paged("id", func(h *format.PageHeader, body []byte) []byte {
			h.DataPageHeaderV2.V.Encoding = format.DeltaByteArray
			return body
		}), "unsupported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := tc.forge(t, split(t, whole))
			taken := room(func() { _, err = Decode(nightly, file) })
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
			if taken > mostRoom {
				t.Errorf("reading %d bytes took %d", len(file), taken)
			}
			if _, err := KeyOf(file); err == nil && tc.says != "" {
				t.Error("KeyOf returns a key")
			}
		})
	}
}

// Decode of a damaged file returns its records or an error, within the memory limit.
func TestDecode_DamagedFileIsRefusedOrRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	whole, err := Encode(nightly, manyNights(25))
	if err != nil {
		t.Fatal(err)
	}
	files := 4000
	if testing.Short() {
		files = 600
	}
	for range files {
		file := slices.Clone(whole)
		for range 1 + random.IntN(4) {
			at := random.IntN(len(file))
			switch random.IntN(5) {
			case 0:
				file[at] ^= 1 << random.IntN(8)
			case 1:
				file[at] = byte(random.Uint32())
			case 2:
				file = slices.Delete(file, at, min(len(file), at+1+random.IntN(8)))
			case 3:
				file = slices.Insert(file, at, 0xff, 0xff, 0xff, 0xff, 0x07)
			case 4:
				// The footer, which has most of the declared sizes.
				file[max(0, len(file)-1-random.IntN(min(len(file), 3000)))] = byte(random.Uint32())
			}
		}
		taken := room(func() { _, _ = Decode(nightly, file) })
		if taken > mostRoom {
			t.Fatalf("reading %d bytes took %d:\n%x", len(file), taken, file)
		}
	}
}

func TestEncode_OutputIsReadable(t *testing.T) {
	for _, count := range []int{1, 2, 7, 8, 9, 127, 128, 129, 1000, 5000, 20_000} {
		records := Merge(manyNights(count), nil)
		file, err := Encode(nightly, records)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Decode(nightly, file)
		if err != nil || !reflect.DeepEqual(read, records) {
			t.Errorf("%d records were written, %d were read (%v)", count, len(read), err)
		}
		if key, err := KeyOf(file); err != nil || key != nightly {
			t.Errorf("key %v (%v)", key, err)
		}
	}
	large := manyNights(40)
	for i := range large {
		large[i].Ledger = strings.Repeat(fmt.Sprint(i), 1<<20)
	}
	if _, err := Encode(nightly, large); err == nil || !strings.Contains(err.Error(), "would be unreadable") {
		t.Errorf("more text than the limit: %v", err)
	}
	if _, err := Encode(nightly, manyNights(mostRecords+1)); err == nil || !strings.Contains(err.Error(), "at most 100000 fit") {
		t.Errorf("more records than the limit: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, count := range []int{1, 40} {
		file, err := Encode(nightly, manyNights(count))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if taken := room(func() { _, _ = Decode(nightly, file) }); taken > mostRoom {
			t.Errorf("reading %d bytes took %d", len(file), taken)
		}
	})
}
