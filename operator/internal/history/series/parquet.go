package series

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const schema = "assay.dev/history/v1alpha1"

// row is the file format of a record; docs/history.md describes the columns.
type row struct {
	Key

	Kind     string    `parquet:"kind,dict"`
	ID       string    `parquet:"id"`
	Analysis int64     `parquet:"analysis"`
	Schedule string    `parquet:"schedule,dict"`
	Sequence int64     `parquet:"sequence"`
	At       time.Time `parquet:"at,timestamp(microsecond)"`
	Head     string    `parquet:"head,dict"`
	Image    string    `parquet:"image,dict"`
	Anchor   string    `parquet:"anchor,dict"`

	LogRatio *float64 `parquet:"log_ratio,optional"`
	SE       *float64 `parquet:"se,optional"`
	DF       *float64 `parquet:"df,optional"`
	Blocks   *int64   `parquet:"blocks,optional"`

	Predecessor  string   `parquet:"predecessor,dict"`
	StepLogRatio *float64 `parquet:"step_log_ratio,optional"`
	StepSE       *float64 `parquet:"step_se,optional"`
	StepDF       *float64 `parquet:"step_df,optional"`
	StepBlocks   *int64   `parquet:"step_blocks,optional"`

	Machine  string `parquet:"machine,dict"`
	Workload string `parquet:"workload,dict"`
	Ledger   string `parquet:"ledger"`
	Reason   string `parquet:"reason,dict"`
}

// Encode writes the records of one series. Equal sets of records give equal bytes.
func Encode(key Key, records []Record) ([]byte, error) {
	if err := key.Check(); err != nil {
		return nil, err
	}
	distinct := Merge(records, nil)
	if len(distinct) > mostRecords {
		return nil, fmt.Errorf("series %q: found %d records; at most %d fit in a file; start another series", key, len(distinct),
			mostRecords)
	}
	rows := make([]row, 0, len(distinct))
	for _, r := range distinct {
		rows = append(rows, toRow(key, r))
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out,
		parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("assay", "v1alpha1", "parquet-go"),
		parquet.KeyValueMetadata("assay.schema", schema))
	_, err := w.Write(rows)
	if err = cmp.Or(err, w.Close()); err != nil {
		return nil, fmt.Errorf("series %q: parquet: %w", key, err)
	}
	// An unreadable file would lose the whole series.
	if _, err := openFile(out.Bytes()); err != nil {
		return nil, fmt.Errorf("series %q: the encoded file would be unreadable: %w", key, err)
	}
	return out.Bytes(), nil
}

// Decode reads a file that Encode wrote. It rejects files of another series or schema.
func Decode(key Key, data []byte) ([]Record, error) {
	fail := func(err error) ([]Record, error) {
		return nil, fmt.Errorf("history of series %q: %w: delete the file and rebuild it from the ledgers", key, err)
	}
	rows, err := rowsOf(data, mostRecords)
	if err != nil {
		return fail(err)
	}
	out := make([]Record, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		if r.Key != key {
			return fail(fmt.Errorf("row %d belongs to series %q", i, r.Key))
		}
		out = append(out, r.record())
	}
	return out, nil
}

// KeyOf returns the key of the series in a file.
func KeyOf(data []byte) (Key, error) {
	rows, err := rowsOf(data, 1)
	if err != nil {
		return Key{}, fmt.Errorf("history: %w", err)
	}
	if len(rows) == 0 {
		return Key{}, errors.New("history: no row names the series")
	}
	return rows[0].Key, nil
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

func toRow(key Key, r Record) row {
	out := row{
		Key: key, Kind: string(r.Kind), ID: r.ID, Analysis: r.Analysis, Schedule: r.Schedule, Sequence: r.Sequence, At: r.At,
		Head: r.Head, Image: r.Image, Anchor: r.Anchor, Predecessor: r.Predecessor,
		Machine: r.Machine, Workload: r.Workload, Ledger: r.Ledger, Reason: r.Reason,
	}
	if r.Kind != Gap {
		out.LogRatio, out.SE, out.DF, out.Blocks = columns(&r.Ratio)
	}
	if r.Step != nil {
		out.StepLogRatio, out.StepSE, out.StepDF, out.StepBlocks = columns(r.Step)
	}
	return out
}

func columns(e *Estimate) (logRatio, se, df *float64, blocks *int64) {
	n := int64(e.Blocks)
	return &e.LogRatio, &e.SE, &e.DF, &n
}

func (r *row) record() Record {
	out := Record{
		Kind: Kind(r.Kind), ID: r.ID, Analysis: r.Analysis, Schedule: r.Schedule, Sequence: r.Sequence, At: r.At.UTC(),
		Head: r.Head, Image: r.Image, Anchor: r.Anchor, Predecessor: r.Predecessor,
		Machine: r.Machine, Workload: r.Workload, Ledger: r.Ledger, Reason: r.Reason,
	}
	if e := fromColumns(r.LogRatio, r.SE, r.DF, r.Blocks); e != nil {
		out.Ratio = *e
	}
	out.Step = fromColumns(r.StepLogRatio, r.StepSE, r.StepDF, r.StepBlocks)
	return out
}

func fromColumns(logRatio, se, df *float64, blocks *int64) *Estimate {
	if logRatio == nil || se == nil || df == nil || blocks == nil {
		return nil
	}
	return &Estimate{LogRatio: *logRatio, SE: *se, DF: *df, Blocks: int(*blocks)}
}
