package series

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
)

// schema is the version of the file format. A file of another version is rejected by name.
const schema = "assay.dev/history/v1alpha2"

// Size limits of a file. Files are untrusted, because everyone with write access to a history's folder or bucket can create them, and the
// operator reads those of all namespaces.
const (
	// mostRecords is one point per hour for eleven years.
	mostRecords = 100_000
	// mostFile bounds the file, and mostExpanded its lines after decompression.
	mostFile, mostExpanded = 32 << 20, 64 << 20
	// window is the memory in bytes in which the encoder finds repetitions; it has several hundred lines.
	window = 256 << 10
)

// header is the first line of a file.
type header struct {
	Schema string `json:"schema"`
	Key    Key    `json:"key"`
}

// strict rejects the fields of other versions.
var strict = json.RejectUnknownMembers(true)

// Encode writes the records of one series, as lines of JSON below a header, compressed with zstd. Equal sets of records give equal bytes.
func Encode(key Key, records []Record) ([]byte, error) {
	fail := func(err error) error { return fmt.Errorf("series %q: %w", key, err) }
	if err := key.Check(); err != nil {
		return nil, err
	}
	distinct := Merge(records, nil)
	if len(distinct) > mostRecords {
		return nil, fail(fmt.Errorf("found %d records; at most %d fit in a file; start another series", len(distinct), mostRecords))
	}
	lines := make([]any, 0, len(distinct)+1)
	lines = append(lines, header{schema, key})
	for i := range distinct {
		lines = append(lines, &distinct[i])
	}
	var text bytes.Buffer
	for _, line := range lines {
		if err := json.MarshalWrite(&text, line); err != nil {
			return nil, fail(err)
		}
		text.WriteByte('\n')
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(window))
	if err != nil {
		return nil, fail(err)
	}
	data := encoder.EncodeAll(text.Bytes(), nil)
	// An unreadable file would lose the whole series.
	if text.Len() > mostExpanded || len(data) > mostFile {
		return nil, fail(fmt.Errorf("the encoded file would be unreadable: found %d bytes, compressed %d; at most %d and %d are allowed; "+
			"start another series", text.Len(), len(data), mostExpanded, mostFile))
	}
	return data, nil
}

// expand decompresses an untrusted file into its key and the lines of its records.
func expand(data []byte) (key Key, lines []byte, err error) {
	if len(data) > mostFile {
		return key, nil, fmt.Errorf("the file has %d bytes; at most %d are allowed", len(data), mostFile)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostExpanded))
	if err != nil {
		return key, nil, err
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return key, nil, fmt.Errorf("the file is not compressed with zstd, or damaged: %w", err)
	}
	first, lines, _ := bytes.Cut(text, []byte("\n"))
	var found header
	if err := json.Unmarshal(first, &found, strict); err != nil {
		return key, nil, fmt.Errorf("invalid header in the first line: %w", err)
	}
	if found.Schema != schema {
		return key, nil, fmt.Errorf("schema: found %q; %q is allowed", found.Schema, schema)
	}
	return found.Key, lines, nil
}

// Decode reads a file that Encode wrote. It rejects files of another series or schema.
func Decode(key Key, data []byte) ([]Record, error) {
	fail := func(err error) error {
		return fmt.Errorf("history of series %q: %w: delete the file and rebuild it from the ledgers", key, err)
	}
	found, lines, err := expand(data)
	if err != nil {
		return nil, fail(err)
	}
	if found != key {
		return nil, fail(fmt.Errorf("the file belongs to series %q", found))
	}
	// A short line takes much more memory as a record.
	count := bytes.Count(lines, []byte("\n"))
	if count > mostRecords {
		return nil, fail(fmt.Errorf("the file has %d records; at most %d are allowed", count, mostRecords))
	}
	out := make([]Record, 0, count)
	for line := range bytes.Lines(lines) {
		var r Record
		if err := json.Unmarshal(line, &r, strict); err != nil {
			return nil, fail(fmt.Errorf("line %d: %w", len(out)+2, err))
		}
		r.At = r.At.UTC()
		out = append(out, r)
	}
	return out, nil
}

// KeyOf returns the key of the series in a file.
func KeyOf(data []byte) (Key, error) {
	key, _, err := expand(data)
	if err != nil {
		return Key{}, fmt.Errorf("history: %w", err)
	}
	return key, nil
}

// Merge returns the union of two sets of records, in the order of the series. Copies are merged, even if their ledgers have moved.
// Different records of one run are all retained, and Of selects among them.
func Merge(a, b []Record) []Record {
	all := slices.Concat(a, b)
	for i := range all {
		// Match the precision of a file, which is UTC in microseconds.
		all[i].At = all[i].At.UTC().Truncate(time.Microsecond)
	}
	distinct := slices.CompactFunc(inPrint(all), func(x, y *printed) bool { return x.fingerprint() == y.fingerprint() })
	out := all[:0]
	for _, r := range distinct {
		out = append(out, r.Record)
	}
	return out
}
