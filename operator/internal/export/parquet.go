package export

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// rowsPerWrite is the maximum number of rows that are buffered before encoding.
const rowsPerWrite = 4096

// Parquet is one row per attempt, metric and statistic. The same evidence gives the same bytes.
func Parquet(exp *experiment.Experiment, result *analysis.Analysis, evidence record.Evidence) ([]byte, error) {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[Row](&out,
		parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("assay", "v1alpha1", "parquet-go"),
		parquet.KeyValueMetadata("assay.schema", "assay.dev/attempts/v1alpha1"),
		parquet.KeyValueMetadata("assay.evidence", result.Evidence))
	batch := make([]Row, 0, rowsPerWrite)
	flush := func() error {
		_, err := w.Write(batch)
		batch = batch[:0]
		return err
	}
	for row := range rows(exp, result, evidence) {
		if batch = append(batch, row.published()); len(batch) == rowsPerWrite {
			if err := flush(); err != nil {
				return nil, fmt.Errorf("parquet: %w", err)
			}
		}
	}
	if err := cmp.Or(flush(), w.Close()); err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	return out.Bytes(), nil
}
