package trial

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/record"
)

// encodeHistogram encodes a histogram of any geometry, with counts as a program may write them.
func encodeHistogram(t *testing.T, digits int32, lowest, highest int64, counts []byte) string {
	t.Helper()
	var inner, outer, compressed bytes.Buffer
	put := func(to *bytes.Buffer, values ...any) {
		for _, value := range values {
			if err := binary.Write(to, binary.BigEndian, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(&inner, hdrhistogram.V2EncodingCookieBase|0x10, int32(len(counts)), int32(0), digits, lowest, highest, 1.0, counts)
	w := zlib.NewWriter(&compressed)
	_, err := w.Write(inner.Bytes())
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	put(&outer, hdrhistogram.V2CompressedEncodingCookieBase|0x10, int32(compressed.Len()), compressed.Bytes())
	return base64.StdEncoding.EncodeToString(outer.Bytes())
}

func TestDecode_BarsEqualTheLibrarys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		digits, lowest := random.Int32N(5), int64(1)<<random.IntN(20)+random.Int64N(3)
		counts := make([]byte, random.IntN(30))
		for i := range counts {
			// Below 128 an even number is a count, and an odd one a stretch of empty buckets.
			counts[i] = byte(random.IntN(128))
		}
		data := encodeHistogram(t, digits, lowest, 1<<62, counts)
		found, err := hdrhistogram.Decode([]byte(data))
		if err != nil {
			continue // More buckets than it has.
		}
		var want []bar
		for _, b := range found.Distribution() {
			if b.Count > 0 {
				want = append(want, bar{float64(b.To) * 1e-9, b.Count})
			}
		}
		histograms, histogram := Histograms{}, &record.Histogram{Scale: 1e-9, Count: found.TotalCount(), Data: data}
		if err := histograms.Decode(histogram); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, histograms[histogram].bars, cmp.AllowUnexported(bar{})); diff != "" {
			t.Fatalf("%d digits from %d on (-want +got):\n%s", digits, lowest, diff)
		}
	}
}

// TestDecode_MemoryIsBounded: a few bytes of a histogram may encode millions of values.
func TestDecode_MemoryIsBounded(t *testing.T) {
	// lastBucket is 6,000,000 empty ones and one that is not, as signed numbers of seven bits each.
	lastBucket := []byte{0xff, 0xb5, 0xdc, 0x05, 2}
	for name, tc := range map[string]struct {
		counts []byte
		count  int64
		says   string
	}{
		"a value in each bucket":         {bytes.Repeat([]byte{2}, 6_000_000), 6_000_000, "record fewer significant digits"},
		"more values than a list has":    {bytes.Repeat([]byte{2}, mostBars+1), mostBars + 1, "record fewer significant digits"},
		"as many values as a list has":   {bytes.Repeat([]byte{2}, mostBars), mostBars, ""},
		"one value, in a far-off bucket": {lastBucket, 1, ""},
		"more values than any trial has": {binary.AppendVarint(nil, MostValues+1), MostValues + 1, "at most 68719476736 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			histogram := &record.Histogram{Scale: 1e-9, Count: tc.count, Data: encodeHistogram(t, 5, 1, 1<<62, tc.counts)}
			histograms := Histograms{}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := histograms.Decode(histogram)
			runtime.ReadMemStats(&after)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
				t.Errorf("%d bytes take %d MiB", len(histogram.Data), took)
			}
			if err == nil && int64(histograms.Distinct(record.Metric{Histogram: histogram})) != tc.count {
				t.Errorf("it has %d values, want %d", len(histograms[histogram].bars), tc.count)
			}
		})
	}
}
