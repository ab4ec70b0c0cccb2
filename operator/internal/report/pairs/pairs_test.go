package pairs

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/compare"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/clitest"
)

// simulated is a run whose arms take a multiple of their usual time.
func simulated(t *testing.T, name string, seed uint64, slower float64) Run {
	t.Helper()
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	exp.Run.Name = name
	wave, err := fixture.Wave(exp, 0, 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(point record.Point, arm string) float64 { return slower * fixture.ScanSeconds(point, arm) }
	attempts := fixture.Machine{Seed: seed, Seconds: seconds, Noise: fixture.Noise{Trial: 0.01}}.Run(exp, wave)
	found := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
	return Run{Run: compare.Run{Experiment: exp, Analysis: found}, Where: "ledgers/" + name, Began: attempts[0].StartedAt}
}

func render(t *testing.T, runs ...Run) string {
	t.Helper()
	raw, err := Page(runs)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// of returns the comparison of two runs in a page.
func of(t *testing.T, page string, a, b int) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, fmt.Sprintf(`<section class="pair" id="pair-%d-%d">`, a, b))
	if !ok {
		t.Fatalf("no comparison of %d and %d", a, b)
	}
	part, _, _ := strings.Cut(rest, "</section>")
	return part
}

func TestPage_AnyTwoRunsAreComparedInBothOrders(t *testing.T) {
	page := render(t, simulated(t, "monday", 1, 1), simulated(t, "tuesday", 2, 1.1), simulated(t, "wednesday", 3, 1))
	for a := range 3 {
		for b := range 3 {
			selected := fmt.Sprintf("main:has(#a%d:checked):has(#b%d:checked) ", a, b)
			if a == b {
				selected += ".same"
			} else {
				selected += fmt.Sprintf("#pair-%d-%d", a, b)
				of(t, page, a, b)
			}
			if !strings.Contains(page, selected) {
				t.Errorf("nothing is shown for %s", selected)
			}
		}
	}
	for _, want := range []string{"<strong>benchmarks/monday</strong>", "ledgers/wednesday", "Go</span>"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	slower, equal := of(t, page, 0, 1), of(t, page, 0, 2)
	if !strings.Contains(slower, "benchmarks/tuesday over benchmarks/monday") || !strings.Contains(slower, `class="apart">1.`) {
		t.Errorf("the slower run is not apart:\n%s", slower)
	}
	if faster := of(t, page, 1, 0); !strings.Contains(faster, `class="apart">0.9`) {
		t.Errorf("the ratio is not inverted in the other order:\n%s", faster)
	}
	if strings.Count(equal, "apart") >= strings.Count(slower, "apart")/2 {
		t.Errorf("equal runs are apart:\n%s", equal)
	}
}

func TestPage_RunsOfOneNameAreToldApart(t *testing.T) {
	one, other := simulated(t, "bench", 1, 1), simulated(t, "bench", 2, 1)
	one.Where, other.Where = "ledgers/before", "ledgers/after"
	const want = "benchmarks/bench in ledgers/after over benchmarks/bench in ledgers/before"
	if part := of(t, render(t, one, other), 0, 1); !strings.Contains(part, want) {
		t.Errorf("no %q in\n%s", want, part)
	}
}

func TestPage_DifferentMachinesHaveNoRatios(t *testing.T) {
	one, other := simulated(t, "a", 1, 1), simulated(t, "b", 2, 1)
	other.Analysis.Environment = map[string]any{"cpuModel": "another CPU"}
	part := of(t, render(t, one, other), 0, 1)
	if !strings.Contains(part, "another CPU") || !strings.Contains(part, "No ratios") || strings.Contains(part, "excludes 1") {
		t.Error(part)
	}
}

func TestPage_TextOfLedgersIsEscaped(t *testing.T) {
	const markup = `<script>alert(1)</script>"><img src=x>` + clitest.Hostile
	one, other := simulated(t, markup, 1, 1), simulated(t, "b", 2, 1)
	one.Where, one.Analysis.Run.Name, one.Analysis.Warnings = markup, markup, []string{markup}
	one.Analysis.Environment = map[string]any{"cpuModel": markup}
	for i := range one.Analysis.Arms {
		one.Analysis.Arms[i].Arm += markup
	}
	one.Analysis.Verdict = markup
	page := render(t, one, other)
	for _, unwanted := range []string{"<script", "<img", "\x1b", "\u202e", "\u009b"} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page has %q", unwanted)
		}
	}
}

func TestPage_SizeIsBounded(t *testing.T) {
	one := simulated(t, "a", 1, 1)
	for count, allowed := range map[int]bool{0: false, 1: false, 2: true, MostRuns: true, MostRuns + 1: false} {
		runs := make([]Run, count)
		for i := range runs {
			runs[i] = one
		}
		if _, err := Page(runs); (err == nil) != allowed {
			t.Errorf("%d runs: %v", count, err)
		}
	}
	large := *one.Analysis
	large.Arms = nil
	for i := range mostRows/2 + 1 {
		large.Arms = append(large.Arms, analysis.ArmResult{
			Point: fmt.Sprint(i), Arm: "x", Metric: "time", Estimate: analysis.Estimate{Value: 1, Unit: "s"},
		})
	}
	one.Analysis = &large
	if _, err := Page([]Run{one, one}); err == nil || !strings.Contains(err.Error(), "name fewer runs") {
		t.Errorf("a page of %d rows: %v", mostRows+2, err)
	}
}

func TestPage_UnknownTimesAndNumbersAreNotZero(t *testing.T) {
	one, other := simulated(t, "a", 1, 1), simulated(t, "b", 2, 1)
	one.Began = time.Time{}
	other.Analysis.Arms[0].Estimate = analysis.Estimate{Value: math.Inf(1), Unit: other.Analysis.Arms[0].Estimate.Unit}
	page := render(t, one, other)
	if !strings.Contains(page, `<td class="date">unknown</td>`) || strings.Contains(page, "0001-01-01") || strings.Contains(page, "NaN") {
		t.Error("an unknown time or number has a value")
	}
}
