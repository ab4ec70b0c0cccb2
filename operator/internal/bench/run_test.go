package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestQuestion_FreezesToCommands(t *testing.T) {
	goUsual := []string{"-test.run=^$", "-test.bench=^BenchmarkA$/^b\\.c$", "-test.benchtime=50ms", "-test.benchmem"}
	for name, tc := range map[string]struct {
		commands [][]string
		figures  Figures
		require  []string
		argv     [][]string
		gate     string
	}{
		"words that differ": {
			commands: [][]string{{"/f", "-n", "$(x)"}, {"/g", "-n", "$(x)"}}, argv: [][]string{{"/f", "-n", "$(x)"}, {"/g", "-n", "$(x)"}},
			gate: "faster process.wallTime RatioAtMost 1",
		},
		"numbers of words that differ": {
			commands: [][]string{{"/f", "it's"}, {"/f"}}, argv: [][]string{{"/usr/bin/env", "-S", `'/f' 'it\'s'`}, {"/usr/bin/env", "-S", "'/f'"}},
			gate: "faster process.wallTime RatioAtMost 1",
		},
		"test binaries of Go": {
			commands: [][]string{{"/old.test"}, {"/new.test"}}, figures: Figures{Format: assayv1alpha1.GoBenchOutput, Benchmark: "BenchmarkA/b.c"},
			argv: [][]string{append([]string{"/old.test"}, goUsual...), append([]string{"/new.test"}, goUsual...)}, gate: "faster time RatioAtMost 1",
		},
		"a figure of which more is better": {
			commands: [][]string{{"/a"}, {"/b"}}, figures: Figures{Format: assayv1alpha1.GoogleBenchmarkOutput, Metric: "items_per_second"},
			argv: [][]string{{"/a", "--benchmark_format=json"}, {"/b", "--benchmark_format=json"}}, gate: "faster itemsPerSecond RatioAtLeast 1",
		},
		"a table, and a requirement of its column": {
			commands: [][]string{{"/a"}, {"/b"}}, figures: Figures{Format: assayv1alpha1.CSVOutput, Metric: "p_50"}, require: []string{"p50 <= 3"},
			argv: [][]string{{"/a"}, {"/b"}}, gate: "require-1 p50 AtMost 3",
		},
		"a requirement of a reading of the runner": {
			commands: [][]string{{"/a"}, {"/b"}}, require: []string{"peakMemory<=200Mi"}, argv: [][]string{{"/a"}, {"/b"}},
			gate: "require-1 process.peakMemory AtMost 200Mi",
		},
		"a multiple of the baseline's": {
			commands: [][]string{{"/a"}, {"/b"}}, require: []string{"wallTime <= 0.9x"}, argv: [][]string{{"/a"}, {"/b"}},
			gate: "require-1 process.wallTime RatioAtMost 0.9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.figures.Format == "" {
				tc.figures.Format = assayv1alpha1.NoOutput
			}
			question := Question{
				Commands: tc.commands, Names: []string{"old", "new"}, Figures: tc.figures, Requirements: tc.require, Blocks: 10, CPUs: 1,
				Budget: time.Minute, OnViolation: assayv1alpha1.ViolationRetry,
			}
			run, err := question.BenchmarkRun()
			if err != nil {
				t.Fatal(err)
			}
			frozen, err := experiment.Freeze(record.Run{Name: "bench"}, run.Spec, *run.Spec.Template)
			if err != nil {
				t.Fatal(err)
			}
			for i, cell := range frozen.Cells {
				if !slices.Equal(cell.Argv, tc.argv[i]) {
					t.Errorf("%q, want %q", cell.Argv, tc.argv[i])
				}
			}
			gate := run.Spec.Gates[0]
			if got := strings.Join([]string{gate.Name, gate.Metric, string(gate.Op), gate.Bound}, " "); got != tc.gate {
				t.Errorf("gate %q, want %q", got, tc.gate)
			}
		})
	}
}

func TestQuestion_EveryFormatFreezesOrIsRejected(t *testing.T) {
	for _, name := range FormatNames() {
		format, err := ParseFormat(strings.ToLower(name))
		if err != nil {
			t.Fatal(err)
		}
		question := Question{
			Commands: [][]string{{"/a"}, {"/b"}}, Names: []string{"a", "b"}, Figures: Figures{Format: format}, Blocks: 10, CPUs: 1,
			Budget: time.Minute, OnViolation: assayv1alpha1.ViolationWarn,
		}
		run, err := question.BenchmarkRun()
		if err != nil {
			if !strings.Contains(err.Error(), "--metric") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if _, err := experiment.Freeze(record.Run{Name: "bench"}, run.Spec, *run.Spec.Template); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Commands whose benchmarks have different names are compared if each name is given.
func TestBenchmarkRun_BenchmarksOfEachCommand(t *testing.T) {
	question := Question{
		Commands: [][]string{{"/old.test"}, {"/new.test"}}, Names: []string{"old", "new"}, Blocks: 10, CPUs: 1, Budget: time.Minute,
		Figures: Figures{Format: assayv1alpha1.GoBenchOutput}, Benchmarks: []string{"BenchmarkOld", "BenchmarkNew/8"},
		OnViolation: assayv1alpha1.ViolationWarn,
	}
	run, err := question.BenchmarkRun()
	if err != nil {
		t.Fatal(err)
	}
	exp, err := experiment.Freeze(record.Run{Namespace: "n", Name: "bench", UID: "0d9f5c1e-6a57-4b6e-8d8f-3f6f2a9b7c10"}, run.Spec,
		*run.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	if from := exp.Plan.Workload.Output.Metrics[0].Benchmark; from != "$(benchmark)" {
		t.Errorf("from.benchmark is %q", from)
	}
	for i, want := range []string{"BenchmarkOld", "BenchmarkNew/8"} {
		cell := exp.Cells[i]
		argv := strings.Join(cell.Argv, " ")
		filter := "-test.bench=^" + strings.ReplaceAll(want, "/", "$/^") + "$ "
		if cell.Parameters["benchmark"] != want || !strings.Contains(argv, filter) || strings.Contains(argv, "--benchmark") {
			t.Errorf("cell %d: %v, %s", i, cell.Parameters, argv)
		}
	}
	question.Benchmarks = append(question.Benchmarks, "BenchmarkMore")
	if _, err := question.BenchmarkRun(); err == nil || !strings.Contains(err.Error(), "3 names for 2 commands") {
		t.Errorf("got %v", err)
	}
	question.Benchmarks, question.Figures.Format = question.Benchmarks[:2], assayv1alpha1.NoOutput
	if _, err := question.BenchmarkRun(); err == nil || !strings.Contains(err.Error(), "--format") {
		t.Errorf("got %v", err)
	}
}

func frozen(t *testing.T, question *Question) *experiment.Experiment {
	t.Helper()
	run, err := question.BenchmarkRun()
	if err != nil {
		t.Fatal(err)
	}
	out, err := experiment.Freeze(record.Run{Name: "bench"}, run.Spec, *run.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// One figure decides, and it is fixed in the run before the first trial. The other one never does.
func TestQuestion_DecidingFigureIsFixedBeforeFirstTrial(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Question)
		want string
		says string
	}{
		"wall time by default":          {func(*Question) {}, "faster process.wallTime Blocking, beside process.cpuTime Advisory", ""},
		"wall time by name":             {func(q *Question) { q.By = WallTime }, "faster process.wallTime Blocking, beside process.cpuTime Advisory", ""},
		"CPU time":                      {func(q *Question) { q.By = CPUTime }, "faster process.cpuTime Blocking, beside process.wallTime Advisory", ""},
		"a figure that is not known":    {func(q *Question) { q.By = "cpus" }, "", `invalid --by "cpus": did you mean cpu? Allowed are wall, cpu`},
		"a figure beside a requirement": {func(q *Question) { q.By, q.Requirements = CPUTime, []string{"wallTime<=1x"} }, "", "use one of them"},
		"a figure beside that of an output": {func(q *Question) { q.By, q.Figures.Format = CPUTime, assayv1alpha1.HyperfineOutput }, "",
			"use one of them"},
		"a requirement": {func(q *Question) { q.Requirements = []string{"cpuTime<=1x"} }, "require-1 process.cpuTime Blocking", ""},
	} {
		t.Run(name, func(t *testing.T) {
			question := Question{
				Commands: [][]string{{"/a"}, {"/b"}}, Names: []string{"a", "b"}, Figures: Figures{Format: assayv1alpha1.NoOutput}, CPUs: 1,
				Budget: time.Minute, OnViolation: assayv1alpha1.ViolationWarn,
			}
			c.edit(&question)
			if _, err := question.BenchmarkRun(); c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want one that says %q", err, c.says)
				}
				return
			}
			var got []string
			exp := frozen(t, &question)
			for _, gate := range exp.Plan.Gates {
				if gate.Metric != "" {
					got = append(got, gate.Name+" "+gate.Metric+" "+string(gate.Severity))
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("gates %s, want %s", text, c.want)
			}
			if stop := exp.Plan.Design.Stop; stop == nil || stop.RelativeHalfWidth != 0.01 || exp.Plan.Design.Blocks.Min != LeastBlocks {
				t.Errorf("blocks %+v until %+v", exp.Plan.Design.Blocks, stop)
			}
		})
	}
}
