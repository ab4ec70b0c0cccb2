package series

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
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

// packed compresses lines as Encode does.
func packed(t testing.TB, lines ...string) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll([]byte(strings.Join(lines, "")), nil)
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

// first is the header of the series nightly.
const first = `{"schema":"assay.dev/history/v1alpha2","key":{"Project":"team","Benchmark":"scan","Arm":"","Point":"",` +
	`"Metric":"throughput","Statistic":"median"}}` + "\n"

func TestDecode_UntrustedFileIsRefusedWithinTheMemoryLimit(t *testing.T) {
	cases := map[string]struct {
		file []byte
		says string
	}{
		"an empty file":                 {nil, "invalid header"},
		"a file that is not compressed": {[]byte(first), "not compressed with zstd"},
		"a truncated file":              {packed(t, first)[:20], "damaged"},
		"a file of another format":      {[]byte("PAR1....PAR1"), "not compressed with zstd"},
		"a file beyond the limit":       {make([]byte, mostFile+1), "are allowed"},
		"a file that expands beyond it": {packed(t, first, strings.Repeat(" ", 256<<20)), "damaged"},
		"another version":               {packed(t, strings.Replace(first, "v1alpha2", "v1alpha1", 1)), `found "assay.dev/history/v1alpha1"`},
		"a header with another field":   {packed(t, strings.Replace(first, `"key"`, `"more":1,"key"`, 1)), "unknown object member"},
		"another series":                {packed(t, strings.Replace(first, "scan", "sort", 1)), `belongs to series "team sort`},
		"a record with another field":   {packed(t, first, `{"kind":"Gap","more":1}`+"\n"), `unknown object member name "more"`},
		"a record that is no object":    {packed(t, first, "[]\n"), "line 2"},
		"a record that is cut off":      {packed(t, first, `{"kind":"Gap"`), "line 2"},
		"a number that is too large":    {packed(t, first, `{"sequence":1e400}`+"\n"), "line 2"},
		"many records in few bytes":     {packed(t, first, strings.Repeat("{}\n", 20<<20)), "at most 100000 are allowed"},
		"a record beyond the last line": {packed(t, first, strings.Repeat("{}\n", mostRecords), "{"), fmt.Sprintf("line %d", mostRecords+2)},
		"a declared size of terabytes":  {[]byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x04\x00\x00\x01\x00\x00"), "damaged"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			taken := room(func() { _, err = Decode(nightly, tc.file) })
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
			if taken > mostRoom {
				t.Errorf("reading %d bytes took %d", len(tc.file), taken)
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
				// The header of the compressed frame, which declares its size.
				file[random.IntN(min(len(file), 14))] = byte(random.Uint32())
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
