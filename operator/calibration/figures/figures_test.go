package figures

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

// measured is the scan experiment on a simulated machine. loop takes 13 ms per query, fused-m4r 2 ms at 8.
func measured(t *testing.T) (*experiment.Experiment, *analysis.Analysis) {
	t.Helper()
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 1, 8)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 7, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	return exp, analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
}

func set(t *testing.T, rules string) Run {
	t.Helper()
	parsed, err := Parse([]byte("runs:\n- file: run.yaml\n  figures:\n" + rules))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Runs[0]
}

func names(of []Figure) []string {
	var out []string
	for _, figure := range of {
		out = append(out, figure.Figure)
	}
	return out
}

func TestOf_FiguresEqualTheEstimates(t *testing.T) {
	exp, result := measured(t)
	const at8 = "at: {batchSize: '8', pendingDelta: '0'}"
	for name, tc := range map[string]struct {
		rule, unit string
		from, to   float64
	}{
		"a level":           {"{figure: f, metric: latency, arms: [loop], " + at8 + "}", "s", 0.10, 0.11},
		"a level in millis": {"{figure: f, metric: latency, arms: [loop], scale: m, " + at8 + "}", "ms", 100, 110},
		"one of several":    {"{figure: f, metric: latency, arms: [loop], scale: m, per: 8, " + at8 + "}", "ms", 12.5, 13.8},
		"another statistic": {"{figure: f, metric: latency, statistic: p95, arms: [loop], " + at8 + "}", "s", 0.10, 0.13},
		"a ratio":           {"{figure: f, metric: latency, arms: [fused-m4r], compared: true, " + at8 + "}", "x", 0.14, 0.17},
		"a speedup":         {"{figure: f, metric: latency, arms: [fused-m4r], compared: true, inverse: true, " + at8 + "}", "x", 6, 7},
		"a phase in millis": {"{figure: f, phase: expand, arms: [loop], scale: m, " + at8 + "}", "ms", 10, 11},
	} {
		t.Run(name, func(t *testing.T) {
			run := set(t, "  - "+tc.rule)
			if err := run.Check(exp); err != nil {
				t.Fatal(err)
			}
			out, missing := run.Of(exp, result)
			if len(out) != 1 || len(missing) != 0 {
				t.Fatalf("got %v, and %v is missing", out, missing)
			}
			got := out[0]
			within := got.Low <= got.Value && got.Value <= got.High
			if got.Unit != tc.unit || got.Value < tc.from || got.Value > tc.to || got.Samples != 8 || !within {
				t.Errorf("got %+v, want a value from %g to %g in %q of 8 blocks within its interval", got, tc.from, tc.to, tc.unit)
			}
		})
	}
	t.Run("the interval of the analysis in the figure's unit", func(t *testing.T) {
		out, _ := set(t, "  - {figure: f, metric: latency, arms: [fused-m4r], compared: true, inverse: true, "+at8+"}").Of(exp, result)
		i := slices.IndexFunc(result.Ratios, func(r analysis.RatioResult) bool {
			return r.Point == "batchSize=8,pendingDelta=0" && r.Candidate == "fused-m4r" && r.Metric == "latency" && r.Statistic == "median"
		})
		want := result.Ratios[i].Estimate
		if math.Abs(out[0].Low**want.High-1) > 1e-12 || math.Abs(out[0].High**want.Low-1) > 1e-12 {
			t.Errorf("got [%g, %g] of the ratio [%g, %g]", out[0].Low, out[0].High, *want.Low, *want.High)
		}
	})
}

// With several statistics of a metric, a figure uses the one in its rule.
func TestOf_FigureUsesTheStatisticOfItsRule(t *testing.T) {
	exp, result := measured(t)
	// Make all estimates distinct.
	for i := range result.Arms {
		result.Arms[i].Estimate.Value += float64(i)
	}
	for i := range result.Ratios {
		result.Ratios[i].Estimate.Value += float64(i)
	}
	const point, arm = "batchSize=8,pendingDelta=0", "fused-m4r"
	for _, statistic := range []experiment.Statistic{"median", "p95"} {
		level := result.Arms[slices.IndexFunc(result.Arms, func(r analysis.ArmResult) bool {
			return r.Point == point && r.Arm == arm && r.Metric == "latency" && r.Statistic == statistic
		})].Estimate
		ratio := result.Ratios[slices.IndexFunc(result.Ratios, func(r analysis.RatioResult) bool {
			return r.Point == point && r.Candidate == arm && r.Metric == "latency" && r.Statistic == statistic
		})].Estimate
		rule := "{metric: latency, statistic: " + string(statistic) + ", arms: [fused-m4r], at: {batchSize: '8', pendingDelta: '0'}, figure: "
		out, missing := set(t, "  - "+rule+"level, target: ≤ 1 s}\n  - "+rule+"ratio, compared: true}").Of(exp, result)
		want := []Figure{
			{"level", level.Value, "s", *level.Low, *level.High, level.Blocks, "", "≤ 1 s"},
			{"ratio", ratio.Value, "x", *ratio.Low, *ratio.High, ratio.Blocks, "", ""},
		}
		if diff := cmp.Diff(want, out); diff != "" || len(missing) > 0 {
			t.Errorf("%s: %s\nmissing: %v", statistic, diff, missing)
		}
	}
}

func TestOf_FigurePerSelectedPointAndArm(t *testing.T) {
	exp, result := measured(t)
	run := set(t, `  - {figure: "q{batchSize}.{arm}", metric: throughput, at: {pendingDelta: "1"}, compared: true}
  - {figure: "q{batchSize}.{arm}", metric: latency, at: {pendingDelta: "0"}}`)
	if err := run.Check(exp); err != nil {
		t.Fatal(err)
	}
	out, missing := run.Of(exp, result)
	// The first matching rule has precedence, so the second adds only the baseline.
	want := []string{"q1.fused_naive", "q1.fused_m4r", "q8.fused_naive", "q8.fused_m4r", "q1.loop", "q8.loop"}
	if diff := cmp.Diff(want, names(out)); diff != "" || len(missing) > 0 {
		t.Errorf("%s\nmissing: %v", diff, missing)
	}
	for i, unit := range []string{"x", "x", "x", "x", "s", "s"} {
		if out[i].Unit != unit {
			t.Errorf("%s is in %q, want %q", out[i].Figure, out[i].Unit, unit)
		}
	}
}

func TestOf_MissingEstimates(t *testing.T) {
	exp, result := measured(t)
	lost := *result
	lost.Arms = slices.DeleteFunc(slices.Clone(result.Arms), func(r analysis.ArmResult) bool { return r.Arm == "fused-m4r" })
	for i := range lost.Arms {
		if lost.Arms[i].Arm == "fused-naive" {
			lost.Arms[i].Estimate.Low = nil
		}
	}
	const at = "at: {batchSize: '1', pendingDelta: '0'}"
	for name, tc := range map[string]struct {
		rules         string
		want, missing []string
	}{
		"an arm without a result is missing":         {"  - {figure: f, metric: latency, arms: [fused-m4r], " + at + "}", nil, []string{"f"}},
		"an estimate without an interval is missing": {"  - {figure: f, metric: latency, arms: [fused-naive], " + at + "}", nil, []string{"f"}},
		"an unreported phase is missing":             {"  - {figure: f, phase: sort, arms: [loop], " + at + "}", nil, []string{"f"}},
		"an optional figure may be missing":          {"  - {figure: f, metric: latency, arms: [fused-m4r], optional: true, " + at + "}", nil, nil},
		"a missing optional figure is taken from the next rule": {"  - {figure: f, metric: latency, arms: [fused-m4r], optional: true, " + at + "}\n" +
			"  - {figure: f, metric: latency, arms: [loop], " + at + "}", []string{"f"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, missing := set(t, tc.rules).Of(exp, &lost)
			if !slices.Equal(names(out), tc.want) || !slices.Equal(missing, tc.missing) {
				t.Errorf("got %v, missing %v", out, missing)
			}
		})
	}
}

func TestCheck_RefusesImpossibleRules(t *testing.T) {
	exp, _ := measured(t)
	for name, tc := range map[string]struct{ rule, says string }{
		"an unknown metric":                 {"{figure: f, metric: speed}", `no metric "speed"`},
		"an unknown arm":                    {"{figure: f, metric: latency, arms: [m4r]}", `no arm "m4r": did you mean fused-m4r? Allowed are loop, fused-naive, fused-m4r`},
		"an unknown point":                  {"{figure: f, metric: latency, arms: [loop], at: {batchSize: '3'}}", "selects no point"},
		"an unknown axis":                   {"{figure: f, metric: latency, arms: [loop], at: {size: '3'}}", "selects no point"},
		"an unknown placeholder":            {"{figure: 'f.{size}', metric: latency, arms: [loop], at: {batchSize: '1'}}", "{size} names neither {arm} nor an axis"},
		"a duplicate name":                  {"{figure: f, metric: latency, at: {batchSize: '1', pendingDelta: '0'}}", "gives f more than once"},
		"the baseline compared with itself": {"{figure: f, metric: latency, arms: [loop], compared: true}", `arm "loop" is the baseline`},
		"inverse without compared":          {"{figure: f, metric: latency, arms: [loop], inverse: true}", "inverse requires compared"},
		"a ratio with a unit":               {"{figure: f, metric: latency, arms: [fused-m4r], compared: true, scale: m}", "a ratio has no unit"},
		"an invalid scale":                  {"{figure: f, metric: latency, arms: [loop], scale: q}", `invalid scale "q"`},
		"a negative divisor":                {"{figure: f, metric: latency, arms: [loop], per: -1}", "invalid per -1"},
		"a phase and a metric":              {"{figure: f, phase: expand, metric: latency, arms: [loop]}", `phase "expand" has a mean only`},
		"a compared phase":                  {"{figure: f, phase: expand, arms: [fused-m4r], compared: true}", "omit metric, statistic and compared"},
		"neither phase nor metric":          {"{figure: f, arms: [loop]}", `no metric ""`},
		"a figure without a name":           {"{metric: latency, arms: [loop]}", "the name is empty"},
		"a statistic that no gate requests": {"{figure: f, metric: throughput, statistic: p99, arms: [loop], at: {batchSize: '1', pendingDelta: '0'}}", "p99"},
	} {
		t.Run(name, func(t *testing.T) {
			err := set(t, "  - "+tc.rule).Check(exp)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "run.yaml: figures[0]") {
				t.Errorf("got %v, want an error with the rule and %q", err, tc.says)
			}
		})
	}
	for name, tc := range map[string]struct{ file, says string }{
		"an unknown field":      {"runs: [{file: a.yaml, figures: [{figure: f, metrics: m}]}]", `unknown field "metrics"`},
		"no run":                {"runs: []", "runs is empty"},
		"a run without figures": {"runs: [{file: a.yaml}]", "at least one figure"},
	} {
		if _, err := Parse([]byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
}

func TestWrite_OneLineOfJSON(t *testing.T) {
	var out bytes.Buffer
	if err := (Figure{"a \"b\"", 1.5, "x", 1, 2, 20, "", "≥ 1"}).Write(&out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v in %q", err, out.String())
	}
	if diff := cmp.Diff(map[string]any{"figure": `a "b"`, "value": 1.5, "unit": "x", "low": 1.0, "high": 2.0, "samples": 20.0}, got); diff != "" {
		t.Error(diff)
	}
}

// Detect a figure that no run can produce before measuring.
func TestFigures_OfTheTreeCanBeMeasured(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	sets, err := filepath.Glob(filepath.Join(root, "workflows", "figures", "*.yaml"))
	if err != nil || len(sets) == 0 {
		t.Fatalf("no figures found: %v", err)
	}
	named, used := map[string]string{}, map[string]bool{}
	for _, file := range sets {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set, err := Parse(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, run := range set.Runs {
			path := filepath.Join(filepath.Dir(file), run.File)
			used[path] = true
			exp := freeze(t, root, path)
			if err := run.Check(exp); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if len(exp.Plan.Gates) > 0 {
				t.Errorf("%s has gates; a run of figures must end after its blocks without a decision", path)
			}
			for _, rule := range run.Figures {
				for _, of := range rule.selected(exp) {
					if other, twice := named[of.name]; twice && other != path {
						t.Errorf("%s is defined by both %s and %s", of.name, other, path)
					}
					named[of.name] = path
				}
			}
		}
	}
	all, err := filepath.Glob(filepath.Join(root, "workflows", "figures", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kernels := map[string]bool{}
	for _, path := range all {
		kernels[filepath.Base(filepath.Dir(path))] = true
		if !used[path] {
			t.Errorf("%s is in no set of figures, so it is never executed", path)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "workloads", "*", "*", "README.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages of workloads found: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, figure := range regexp.MustCompile("`([a-z0-9]+)(\\.[a-z0-9_]+)+`").FindAllStringSubmatch(string(text), -1) {
			if name := strings.Trim(figure[0], "`"); kernels[figure[1]] && named[name] == "" {
				t.Errorf("%s names the figure %s, which no run produces", page, name)
			}
		}
	}
}

func freeze(t *testing.T, root, path string) *experiment.Experiment {
	t.Helper()
	read, err := manifest.Read(path, filepath.Join(root, "charts", "assay", "files", "benchmarktemplates"))
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Runs) != 1 {
		t.Fatalf("%s has %d runs", path, len(read.Runs))
	}
	template, err := read.Template(&read.Runs[0])
	if err != nil {
		t.Fatal(err)
	}
	exp, err := experiment.Freeze(record.Run{Name: read.Runs[0].Name, UID: "u"}, read.Runs[0].Spec, *template)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return exp
}
