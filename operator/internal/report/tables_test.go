package report

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
)

func ownTables(t *testing.T, tables ...assayv1alpha1.ReportTable) (*analysis.Analysis, []OwnTable) {
	t.Helper()
	exp, result := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Report = &assayv1alpha1.Report{Tables: tables}
	}, nil)
	return result, OwnTables(exp, result)
}

// cells reads a table's CSV as records by column.
func cells(t *testing.T, table OwnTable) []map[string]string {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(string(table.CSV()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, line := range lines[1:] {
		record := map[string]string{}
		for i, cell := range line {
			record[lines[0][i]] = cell
		}
		out = append(out, record)
	}
	return out
}

// at reports whether a row is about a point.
func at(point string, row map[string]string) bool {
	return point == "batchSize="+row["batchSize"]+",pendingDelta="+row["pendingDelta"]
}

func near(t *testing.T, what, got string, want float64) {
	t.Helper()
	value, err := strconv.ParseFloat(got, 64)
	if err != nil || value < want*(1-1e-9) || value > want*(1+1e-9) {
		t.Errorf("%s is %q, and the analysis has %g", what, got, want)
	}
}

func TestTable_CustomColumnsAndScale(t *testing.T) {
	analyzed, tables := ownTables(t, assayv1alpha1.ReportTable{
		Name: "document", Title: "The document's table", Arms: []string{"loop", "fused-m4r"},
		Columns: []assayv1alpha1.ReportColumn{
			{Title: "ms/batch", Metric: "latency", Scale: "m"},
			{Title: "queries/s", Metric: "throughput"},
			{Title: "against loop", Metric: "throughput", Compared: true},
		},
	})
	rows := cells(t, tables[0])
	checked := 0
	for _, row := range rows {
		for _, result := range analyzed.Arms {
			if result.Arm == row["arm"] && at(result.Point, row) && result.Metric == "latency" && result.Statistic == experiment.StatisticMedian {
				near(t, "ms/batch", row["ms/batch"], 1000*result.Estimate.Value)
				near(t, "the lower end", row["ms/batch low"], 1000**result.Estimate.Low)
				near(t, "the upper end", row["ms/batch high"], 1000**result.Estimate.High)
				checked++
			}
		}
		if row["share of ceiling"] == "" || row["ceiling"] != "readBandwidth" {
			t.Errorf("a share without its ceiling: %v", row)
		}
		if row["arm"] == "loop" && row["against loop"] != "" {
			t.Errorf("the baseline is compared with itself: %v", row)
		}
		if row["arm"] == "fused-m4r" && row["against loop low"] == "" {
			t.Errorf("a ratio has no interval: %v", row)
		}
	}
	if checked == 0 || checked != len(rows) {
		t.Errorf("%d of %d rows have a latency", checked, len(rows))
	}
	if page := string(tables[0].Markdown()); !strings.HasPrefix(page, "### The document's table\n") ||
		strings.Count(page, "\n") != len(rows)+4 {
		t.Errorf("the page is:\n%s", page)
	}
}

func TestTable_PhasesWithShareOfTotal(t *testing.T) {
	result, tables := ownTables(t, assayv1alpha1.ReportTable{Name: "phases", Rows: assayv1alpha1.PhaseRows, Unit: "us",
		Arms: []string{"loop"}})
	if len(result.Phases) == 0 {
		t.Fatal("the simulated program has no phases")
	}
	shares := map[string]float64{}
	for _, row := range cells(t, tables[0]) {
		share, err := strconv.ParseFloat(row["share"], 64)
		if err != nil {
			t.Fatalf("%v: %v", row, err)
		}
		shares[row["batchSize"]+","+row["pendingDelta"]] += share
		for _, phase := range result.Phases {
			if phase.Arm == "loop" && phase.Phase == row["phase"] && at(phase.Point, row) {
				near(t, "the time", row["time (us)"], 1e6*phase.Estimate.Value)
			}
		}
	}
	for point, sum := range shares {
		if sum < 99.9 || sum > 100.1 {
			t.Errorf("at %s the shares add up to %g %%", point, sum)
		}
	}
}

func TestTable_MissingValueIsEmpty(t *testing.T) {
	_, tables := ownTables(t, assayv1alpha1.ReportTable{Name: "absent",
		Columns: []assayv1alpha1.ReportColumn{{Title: "sleep", Phase: "sleep"}}})
	for _, row := range cells(t, tables[0]) {
		if row["sleep"] != "" {
			t.Errorf("a phase that never was has %q", row["sleep"])
		}
	}
}
