package imported

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/history/series"
)

var at = time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)

func TestRead_EveryFormat(t *testing.T) {
	for name, tc := range map[string]struct {
		format, raw string
		columns     Columns
		want        []Value
	}{
		"CSV": {"csv", "series,revision,value,at\nsort,r1,1.5,2026-03-01T04:00:00Z\nsort,r2,2,\n", Columns{},
			[]Value{{"sort", "r1", at, 1.5}, {"sort", "r2", time.Time{}, 2}}},
		"CSV with other columns": {"csv", "Index,GHC,Measurement\n1,508559,1.5\n", Columns{Revision: "GHC", Value: "Measurement"},
			[]Value{{"Measurement", "508559", time.Time{}, 1.5}}},
		"JSON": {"json", `[{"series":"sort","revision":"r1","at":"2026-03-01T04:00:00Z","values":[1,2]},{"series":"sort","revision":"r2","value":3}]`,
			Columns{}, []Value{{"sort", "r1", at, 1}, {"sort", "r1", at, 2}, {"sort", "r2", time.Time{}, 3}}},
		"Otava": {"otava", "time,commit,latency,size\n2026-03-01 04:00:00 +0000,r1,1.5,7\n1772337600,r2,,8\n", Columns{},
			[]Value{{"latency", "r1", at, 1.5}, {"size", "r1", at, 7}, {"size", "r2", at, 8}}},
		"github-action-benchmark": {"github-action-benchmark", fmt.Sprintf(`window.BENCHMARK_DATA = {"entries": {"Go": [{"commit": {"id": "r1"},
			"date": %d, "tool": "go", "benches": [{"name": "Sort", "value": 12.5, "unit": "ns/op"}]}]}};`, at.UnixMilli()), Columns{},
			[]Value{{"Go Sort", "r1", at, 12.5}}},
		"asv": {"asv", fmt.Sprintf(`{"commit_hash": "r1", "date": %d, "result_columns": ["result", "params"], "results": {
			"time_sort": [[1, null, 3, 4], [["10", "20"], ["'a'", "'b'"]]], "time_one": [[5], []], "broken": [null]}}`, at.UnixMilli()), Columns{},
			[]Value{{"time_one", "r1", at, 5}, {"time_sort(10, 'a')", "r1", at, 1}, {"time_sort(20, 'a')", "r1", at, 3},
				{"time_sort(20, 'b')", "r1", at, 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tc.format, []byte(tc.raw), tc.columns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRead_InvalidInputIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ format, raw, says string }{
		"an unknown format":      {"excel", "", "invalid format"},
		"no rows":                {"csv", "revision,value\n", "at least one row"},
		"a missing column":       {"csv", "revision,size\nr1,1\n", `column "value" is missing`},
		"a text":                 {"csv", "revision,value\nr1,fast\n", `row 2: value: found "fast"`},
		"a value of 0":           {"csv", "revision,value\nr1,0\n", "above 0 is required"},
		"an infinite value":      {"csv", "revision,value\nr1,Inf\n", "above 0 is required"},
		"NaN":                    {"csv", "revision,value\nr1,NaN\n", "above 0 is required"},
		"a name of a terminal":   {"csv", "revision,value\n\x1b[31mr1,1\n", "printable"},
		"a name with directions": {"json", `[{"series":"a\u202eb","revision":"r","value":1}]`, "printable"},
		"a long name":            {"json", `[{"series":"` + strings.Repeat("a", 300) + `","revision":"r","value":1}]`, "at most 256"},
		"no revision":            {"json", `[{"series":"a","value":1}]`, "revision: found an empty name"},
		"an unknown field":       {"json", `[{"series":"a","revision":"r","valeu":1}]`, "valeu"},
		"no value":               {"json", `[{"series":"a","revision":"r"}]`, "value and values are empty"},
		"an odd time":            {"otava", "time,m\nyesterday,1\n", "RFC 3339"},
		"another asv file":       {"asv", `{"version": 1}`, "version 2"},
		"a file that is too big": {"json", strings.Repeat(" ", MostBytes+1), "at most"},
	} {
		if _, err := Read(tc.format, []byte(tc.raw), Columns{}); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, tc.says)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("asv", []byte(`{"commit_hash":"r","result_columns":["result","params"],"results":{"a":[[1],[[]]]}}`))
	f.Add("csv", []byte("revision,value\nr1,1\n"))
	f.Add("github-action-benchmark", []byte("window.X = {};"))
	f.Fuzz(func(t *testing.T, format string, raw []byte) {
		values, err := Read(format, raw, Columns{})
		if err != nil {
			return
		}
		for _, keyed := range Records("p", values, at) {
			if err := keyed.Record.Check(); err != nil {
				t.Fatalf("%+v: %v", keyed.Record, err)
			}
		}
	})
}

// Records of a file are valid, unpaired, and the same when it is imported again.
func TestRecords_AreASeriesOfUnpairedPoints(t *testing.T) {
	var values []Value
	for build := range 40 {
		level := 1.0
		if build >= 25 {
			level = 1.2
		}
		for row := range 1 + build%3 {
			values = append(values, Value{Series: "sort", Revision: fmt.Sprint("r", build), Value: level * (1 + 0.001*float64((build*7+row*3)%5))})
		}
	}
	records := Records("p", values, at)
	if diff := cmp.Diff(records, Records("p", values, at)); diff != "" || len(records) != 40 {
		t.Fatalf("%d records; the second time:\n%s", len(records), diff)
	}
	var all []series.Record
	for _, r := range records {
		all = append(all, r.Record)
	}
	s, err := series.Of(records[0].Key, append(all, all...))
	if err != nil || len(s.Problems) > 0 || len(s.Segments) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	segment := s.Current()
	if !segment.Unpaired || segment.Anchor != "r0" || len(segment.Points) != 40 || segment.Points[0].Ratio.LogRatio != 0 {
		t.Errorf("%+v", segment)
	}
	if p := segment.Points[0]; p.Ratio.DF != 0 || p.Ratio.SE != 0 {
		t.Errorf("one value has the error %+v", p.Ratio)
	}
	if p := segment.Points[39]; math.Abs(p.Ratio.LogRatio-math.Log(1.2)) > 0.01 {
		t.Errorf("the last point is %+v", p.Ratio)
	}
	if again, err := series.Encode(records[0].Key, all); err != nil {
		t.Error(err)
	} else if read, err := series.Decode(records[0].Key, again); err != nil || len(read) != len(all) {
		t.Errorf("read %d records: %v", len(read), err)
	}
}
