package export

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/trial"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/scanned"
)

type story struct {
	exp      *experiment.Experiment
	result   *analysis.Analysis
	evidence record.Evidence
}

// simulated is a run of two blocks on the simulated machine; tamper changes its attempts.
func simulated(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec),
	tamper func([]record.Attempt)) story {
	t.Helper()
	machine := scanned.Noisy
	machine.Seed, machine.Noise.Block = 3, 0.02
	exp, result, evidence := scanned.Run(t, machine, 3, edit, tamper)
	return story{exp, result, evidence}
}

func (s story) parquet(t *testing.T) []Row {
	t.Helper()
	raw, err := Parquet(s.exp, s.result, s.evidence)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parquet(s.exp, s.result, s.evidence)
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the same evidence gives other bytes (%v)", err)
	}
	rows, err := parquet.Read[Row](bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestParquet_EveryAttempt(t *testing.T) {
	const failing, noisy = 7, 20
	s := simulated(t, nil, func(attempts []record.Attempt) {
		attempts[failing].Outcome, attempts[failing].Result, attempts[failing].Message = record.Failed, nil, "exit status 1"
		attempts[noisy].Run.UID = "another"
	})
	used, seen := map[string]bool{}, map[string]bool{}
	for _, row := range s.parquet(t) {
		seen[row.Attempt] = true
		attempt := s.evidence.Attempts[indexOf(t, s.evidence.Attempts, row.Attempt)]
		if !row.StartedAt.Equal(attempt.StartedAt) || row.Point != attempt.Point || row.Arm != attempt.Arm || row.Slot != int32(attempt.Slot) ||
			row.Purpose != "screen" {
			t.Fatalf("row %+v is not of attempt %+v", row, attempt)
		}
		if diff := cmp.Diff(attempt.Parameters, row.Parameters); diff != "" {
			t.Fatalf("parameters (-want +got):\n%s", diff)
		}
		if row.Used {
			used[row.Attempt] = true
		}
		switch row.Attempt {
		case s.evidence.Attempts[failing].ID:
			if row.Metric != "" || row.Value != nil || row.Outcome != "Failed" || row.Used {
				t.Errorf("a failed attempt has no metric and is not used: %+v", row)
			}
		case s.evidence.Attempts[noisy].ID:
			if row.Used || row.Excluded == "" {
				t.Errorf("an excluded attempt says why: %+v", row)
			}
		}
	}
	if len(seen) != len(s.evidence.Attempts) {
		t.Errorf("%d attempts in the table, %d in the ledger", len(seen), len(s.evidence.Attempts))
	}
	if len(used) != s.result.Trials.Used {
		t.Errorf("%d attempts are marked used, the analysis used %d", len(used), s.result.Trials.Used)
	}
}

func TestParquet_NamesNoFileOfThisMachine(t *testing.T) {
	s := simulated(t, nil, func(attempts []record.Attempt) {
		for i := range attempts {
			attempts[i].Parameters = map[string]string{"input": "file:///home/ada/secret/matrix.bin"}
		}
		attempts[3].Outcome, attempts[3].Result, attempts[3].Message = record.Failed, nil, "cannot read file:///home/ada/secret/matrix.bin"
	})
	for i := range s.result.Excluded {
		s.result.Excluded[i].Reason = "of file:///home/ada/secret/matrix.bin"
	}
	for _, row := range s.parquet(t) {
		if row.Parameters["input"] != "matrix.bin" || strings.Contains(row.Excluded, "secret") {
			t.Fatalf("%+v", row)
		}
	}
	raw, err := Parquet(s.exp, s.result, s.evidence)
	if err != nil || bytes.Contains(raw, []byte("file:/")) {
		t.Errorf("the table names a file of this machine (%v)", err)
	}
}

func TestParquet_EveryStatistic(t *testing.T) {
	s := simulated(t, nil, nil)
	attempt := s.evidence.Attempts[0]
	got := map[string]float64{}
	for _, row := range s.parquet(t) {
		if row.Attempt == attempt.ID && row.Metric == "latency" {
			got[row.Statistic] = *row.Value
			if row.Unit != "s" || row.Direction != "lower" || *row.Samples != int64(len(attempt.Result.Metrics["latency"].Samples)) {
				t.Errorf("row %+v", row)
			}
		}
	}
	if len(got) != 4 || got["min"] > got["median"] || got["median"] > got["max"] || got["min"] >= got["mean"] {
		t.Errorf("statistics %v, want min, median, mean and max in order", got)
	}
}

func indexOf(t *testing.T, attempts []record.Attempt, id string) int {
	t.Helper()
	for i := range attempts {
		if attempts[i].ID == id {
			return i
		}
	}
	t.Fatalf("no attempt %s", id)
	return -1
}

// The reference names every column with its type, and no other.
func TestParquet_ColumnsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z0-9<>, ]+?)(, optional)? \\|")
	for _, line := range row.FindAllStringSubmatch(string(page), -1) {
		described = append(described, line[1]+" "+line[2]+line[3])
	}
	var columns []string
	for _, field := range parquet.SchemaOf(Row{}).Fields() {
		kind := map[string]string{"STRING": "string", "BOOLEAN": "boolean", "DOUBLE": "double", "INT(32,true)": "int32", "INT(64,true)": "int64",
			"MAP": "map<string, string>"}[field.Type().String()]
		if strings.HasPrefix(field.Type().String(), "TIMESTAMP") {
			kind = "timestamp"
		}
		if kind == "" {
			kind = field.Type().String()
		}
		if field.Optional() {
			kind += ", optional"
		}
		columns = append(columns, field.Name()+" "+kind)
	}
	if diff := cmp.Diff(columns, described); diff != "" {
		t.Errorf("docs/reference/exports.md (-schema +described):\n%s", diff)
	}
}

// read parses with the parser that benchstat has.
func read(t *testing.T, raw []byte) (results []*benchfmt.Result, units benchfmt.UnitMetadataMap) {
	t.Helper()
	reader := benchfmt.NewReader(bytes.NewReader(raw), "results")
	for reader.Scan() {
		switch result := reader.Result().(type) {
		case *benchfmt.Result:
			results = append(results, result.Clone())
		case *benchfmt.SyntaxError:
			t.Errorf("line cannot be read: %v", result)
		}
	}
	if err := reader.Err(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return results, reader.Units()
}

func TestBenchstat_ReadsMeasurements(t *testing.T) {
	s := simulated(t, nil, func(attempts []record.Attempt) {
		attempts[7].Outcome, attempts[7].Result = record.Failed, nil
	})
	raw, err := Benchstat(s.exp, s.result, s.evidence)
	if err != nil {
		t.Fatal(err)
	}
	results, units := read(t, raw)
	if len(results) != s.result.Trials.Used {
		t.Errorf("%d lines, and %d trials were used:\n%.400s", len(results), s.result.Trials.Used, raw)
	}
	if units.GetBetter("latency-sec") != -1 || units.GetBetter("throughput-queries/s") != 1 {
		t.Errorf("directions are wrong:\n%.400s", raw)
	}
	first := results[0]
	if !regexp.MustCompile(`^PirScan/batchSize=[0-9]+/pendingDelta=[0-9]+/arm=[a-z0-9-]+-1$`).MatchString(first.Name.String()) {
		t.Errorf("name %q", first.Name)
	}
	for _, attempt := range s.evidence.Attempts {
		if attempt.Warmup {
			continue
		}
		seconds, ok := first.Value("latency-sec")
		statistics, samples, err := trial.Statistics(*attempt.Result.Metrics["latency"])
		if err != nil || !ok || seconds != statistics[0].Value || first.Iters != int(samples) {
			t.Errorf("the first line has %v s of %d samples, want %v of %d", seconds, first.Iters, statistics[0].Value, samples)
		}
		break
	}
}

func TestBenchstat_TextsAreEscaped(t *testing.T) {
	s := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Arms[1].Name, spec.Gates = "avx-512", nil
		spec.Predictions = nil
		for i := range template.Parameters {
			if template.Parameters[i].Name == "batchSize" {
				template.Parameters[i].Type = assayv1alpha1.StringParameter
				template.Parameters[i].Minimum, template.Parameters[i].Maximum = nil, nil
			}
		}
		spec.Sweep.Axes[0].Values = []string{"1", "a/b c\nBenchmarkX 1 2 ns/op"}
	}, nil)
	// The API has not validated the names in an experiment from a file.
	const line = "a\nBenchmarkX 1 2 ns/op"
	s.exp.Run.Name, s.exp.Run.Namespace, s.exp.Run.UID, s.exp.Plan.Template, s.result.Evidence = line, line, line, line, line
	s.exp.Plan.Metrics = append(s.exp.Plan.Metrics, experiment.Metric{Name: line, Unit: line})
	raw, err := Benchstat(s.exp, s.result, s.evidence)
	if err != nil {
		t.Fatal(err)
	}
	results, _ := read(t, raw)
	if len(results) != s.result.Trials.Used {
		t.Fatalf("%d lines, and %d trials were used", len(results), s.result.Trials.Used)
	}
	arms := map[string]bool{}
	for _, result := range results {
		base, parts := result.Name.Parts()
		if len(parts) != 4 || string(parts[3]) != "-1" {
			t.Fatalf("name %q has parts %q and %q", result.Name, base, parts)
		}
		arms[string(parts[2])] = true
	}
	if !arms["/arm=avx-512"] {
		t.Errorf("arms are %v: the 512 of avx-512 was taken for a number of CPUs", arms)
	}
}

// The names of runs, analyses, machines and metrics are untrusted text.
func TestBenchstat_HostileTextMakesNoLine(t *testing.T) {
	const hostile = "é b\x1b[2J\nBenchmarkForged 1 2 latency-sec\nUnit latency-sec better=higher\n\u2028x/%\xff"
	simulate := func() story {
		return simulated(t, nil, func(attempts []record.Attempt) {
			for i := range attempts {
				attempts[i].Result.Metrics[hostile] = &record.Metric{Unit: hostile, Value: ptr.To(1.0)}
			}
		})
	}
	plain := simulate()
	for name, edit := range map[string]func(s *story){
		"the metrics of a program": func(*story) {},
		"the namespace":            func(s *story) { s.exp.Run.Namespace = hostile },
		"the run":                  func(s *story) { s.exp.Run.Name, s.exp.Plan.Template = hostile, "" },
		"the run's identity":       func(s *story) { s.exp.Run.UID = hostile },
		"the template":             func(s *story) { s.exp.Plan.Template = hostile },
		"the evidence":             func(s *story) { s.result.Evidence = hostile },
		"the machine": func(s *story) {
			s.result.Environment = map[string]any{"architecture": hostile, "cpuModel": hostile}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := simulate()
			edit(&s)
			raw, err := Benchstat(s.exp, s.result, s.evidence)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Benchstat(plain.exp, plain.result, plain.evidence)
			if err != nil || bytes.Count(raw, []byte("\n")) != bytes.Count(want, []byte("\n")) {
				t.Errorf("it has %d lines and without that text %d (%v):\n%.600q", bytes.Count(raw, []byte("\n")), bytes.Count(want, []byte("\n")),
					err, raw)
			}
			results, units := read(t, raw)
			if len(results) != s.result.Trials.Used || len(results[0].Values) != 3 || units.GetBetter("latency-sec") != -1 {
				t.Errorf("%d results of %d trials that were used, the first with %v", len(results), s.result.Trials.Used, results[0].Values)
			}
			for _, r := range string(raw) {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Fatalf("it has %q:\n%.600q", r, raw)
				}
			}
		})
	}
}

func TestBenchstat_KnownUnits(t *testing.T) {
	for name, tc := range map[string]struct{ metric, unit, want, tidy string }{
		"seconds":                        {"latency", "s", "latency-sec", "latency-sec"},
		"bytes per second":               {"copied", "By/s", "copied-B/s", "copied-B/s"},
		"a ratio":                        {"recall", "1", "recall", "recall"},
		"nanoseconds are normalized":     {"latency", "ns", "latency-ns", "latency-sec"},
		"a unit of several words":        {"cost", "euro cents", "cost-euro%20cents", "cost-euro%20cents"},
		"a metric that is called a unit": {"ns", "s", "ns_-sec", "ns_-sec"},
	} {
		t.Run(name, func(t *testing.T) {
			got := unitOf(tc.metric, tc.unit)
			if _, tidied := benchunit.Tidy(1, got); got != tc.want || tidied != tc.tidy {
				t.Errorf("unit %q (tidied %q), want %q (%q)", got, tidied, tc.want, tc.tidy)
			}
		})
	}
}

func TestExport_ProcessMetricsOfRun(t *testing.T) {
	s := simulated(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Predictions = nil
		spec.Gates = []assayv1alpha1.Gate{{Name: "memory", Metric: "process.peakMemory", Op: assayv1alpha1.RatioAtMost, Bound: "1.1"}}
		template.Metrics, template.Parity, template.Output.Format = nil, assayv1alpha1.ParityNone, assayv1alpha1.NoOutput
	}, func(attempts []record.Attempt) {
		for i := range attempts {
			attempts[i].Result = nil // The program reports nothing.
		}
	})
	seen := map[string]int{}
	for _, row := range s.parquet(t) {
		if row.Metric == "process.peakMemory" &&
			(row.Unit != "By" || row.Direction != "lower" || *row.Value != 75497472 || !row.Used && !row.Warmup) {
			t.Fatalf("row %+v", row)
		}
		seen[row.Metric]++
	}
	// The CPU time is known only in part, and so of no trial.
	if n := len(s.evidence.Attempts); seen["process.peakMemory"] != n || seen["process.wallTime"] != n || seen["process.cpuTime"] != 0 {
		t.Errorf("of %d attempts: %v", n, seen)
	}
	raw, err := Benchstat(s.exp, s.result, s.evidence)
	if err != nil || !strings.Contains(string(raw), " process.peakMemory-B") || !strings.Contains(string(raw), " process.wallTime-sec") {
		t.Errorf("%v:\n%.600s", err, raw)
	}
}
