package history

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/test/clitest"
)

// A table is as wide as its widest cell in every row: one name of a megabyte would be thousands of them.
func TestHistory_LongNameIsTruncated(t *testing.T) {
	const points = 200
	var records []series.Record
	estimate := series.Estimate{LogRatio: 0.1, SE: 0.01, DF: 9, Blocks: 10}
	for i := range points {
		records = append(records, series.Record{
			Kind: series.Measured, ID: fmt.Sprint("run-", i), Schedule: "nightly", Sequence: int64(i), At: time.Unix(1e9, 0),
			Head: fmt.Sprint("r", i), Anchor: "r0", Machine: "m", Workload: "w", Ratio: estimate, Predecessor: "p", Step: &estimate,
		})
	}
	records[points-1].Head, records[points-1].Predecessor = strings.Repeat("long", 1<<17), strings.Repeat("long", 1<<17)
	found, err := series.Of(series.Key{Project: "bench", Benchmark: "sort", Metric: "latency", Statistic: "median"}, records)
	if err != nil {
		t.Fatal(err)
	}
	view := viewSeries(found, change.Book{})
	for name, print := range map[string]func(io.Writer) error{
		"a series":   view.print,
		"all series": func(out io.Writer) error { return printSeries(out, slices.Repeat([]HistoryView{view}, points)) },
	} {
		var out bytes.Buffer
		if err := print(&out); err != nil {
			t.Fatal(err)
		}
		if out.Len() > 1<<20 || !strings.Contains(out.String(), "longlong") {
			t.Errorf("%s of %d points has %d bytes", name, points, out.Len())
		}
	}
}

func TestHistory_HostileTextIsEscaped(t *testing.T) {
	found, changed, when := clitest.HostileSeries(t)
	view := viewSeries(found, change.Book{Changes: []change.Change{changed}})
	for name, print := range map[string]func(io.Writer) error{
		"all series": func(out io.Writer) error { return printSeries(out, []HistoryView{view}) },
		"a series":   view.print,
		"changes": (&changesView{
			Changes: []change.Change{changed}, Series: map[string]string{clitest.HostileKey().ID(): clitest.Hostile}, Silent: []change.Alert{{Series: []string{clitest.Hostile}, Since: when}},
		}).print,
		"ledgers without a report": func(out io.Writer) error {
			(&SiteWritten{Missing: []string{clitest.Hostile + ": \x9b2J"}}).warn(out)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckPrintable(t, print, false) })
	}
}
