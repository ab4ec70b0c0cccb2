package experiment

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
)

// fields are the top-level fields of an experiment.json.
type fields map[string]json.RawMessage

func (f fields) without(names ...string) fields {
	for _, name := range names {
		delete(f, name)
	}
	return f
}

func (f fields) replace(name, from, to string) fields {
	f[name] = json.RawMessage(strings.Replace(string(f[name]), from, to, 1))
	return f
}

// parse parses the fields, with the digest that the first error reports.
func (f fields) parse(t *testing.T) (*Experiment, error) {
	t.Helper()
	for range 2 {
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(raw)
		if err == nil {
			return e, nil
		}
		said := regexp.MustCompile(`the content has (sha256:[0-9a-f]{64})`).FindStringSubmatch(err.Error())
		if said == nil {
			return nil, err
		}
		f["digest"] = json.RawMessage(`"` + said[1] + `"`)
	}
	t.Fatal("the digest that it asked for is not the one it takes")
	return nil, nil
}

// planned replaces the plan by the one that the error for a missing one shows.
func (f fields) planned(t *testing.T) fields {
	t.Helper()
	_, err := f.without("plan").parse(t)
	if _, plan, ok := strings.Cut(errorText(err), "plan is missing: write "); ok {
		f["plan"] = json.RawMessage(plan)
	}
	return f
}

// inFormat adds format and version of the API to an object.
func inFormat(raw string) []byte {
	return []byte(strings.Replace(raw, "{", fmt.Sprintf(`{"format":%d,"api":%q,`, Format, assayv1alpha1.GroupVersion), 1))
}

// A ledger is untrusted and has not passed the API. Each quantity must be parsed or rejected in bounded time.
func TestParse_HugeQuantityIsRejectedQuickly(t *testing.T) {
	const endless = `1e-4000000`
	for name, tc := range map[string]struct{ raw, says string }{
		"a spec":               {`{"spec":{"placement":{"memory":"` + endless + `"}}}`, "spec.placement.memory: invalid value"},
		"as a number":          {`{"spec":{"placement":{"memory":` + endless + `}}}`, "spec.placement.memory: invalid value"},
		"twice":                {`{"spec":{"placement":{"memory":"` + endless + `","memory":"1Gi"}}}`, "spec.placement.memory: invalid value"},
		"a plan":               {`{"plan":{"placement":{"memory":"` + endless + `"}}}`, "plan.placement.memory: invalid value"},
		"a search":             {`{"spec":{"search":{"over":{"high":"` + endless + `"}}}}`, "spec.search.over.high: invalid value"},
		"a bound":              {`{"template":{"parameters":[{},{"maximum":"` + endless + `"}]}}`, "template.parameters[1].maximum: invalid"},
		"many digits":          {`{"spec":{"placement":{"memory":"` + strings.Repeat("9", 1<<22) + `"}}}`, "numbers of up to 256"},
		"another of that name": {`{"spec":{"arms":[{"parameters":{"memory":"` + endless + `"}}]}}`, "template and spec are required"},
	} {
		used := cputime.Start()
		if _, err := Parse(inFormat(tc.raw)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		}
		if took := used(); took > time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// Memory must grow linearly with the nesting depth. Paths to every value took gigabytes for a file of one megabyte.
func TestParse_DeepNestingTakesBoundedMemory(t *testing.T) {
	const deep = 5000
	named := strings.Repeat(`{"`+strings.Repeat("a", 100)+`":`, deep) + "1" + strings.Repeat("}", deep)
	listed := strings.Repeat("[", deep) + strings.Repeat("]", deep)
	for name, raw := range map[string]string{
		"at the top level":      `{"other":` + named + `}`,
		"in a spec":             `{"spec":{"other":` + named + `}}`,
		"in a plan's arguments": `{"plan":{"workload":{"other":` + named + `}}}`,
		"in place of a name":    `{"spec":{"arms":[{"name":` + named + `}]}}`,
		"in place of a spec":    `{"spec":` + listed + `}`,
		"of lists of arms":      `{"spec":{"arms":` + listed + `}}`,
		"in place of memory":    `{"spec":{"placement":{"memory":` + listed + `}}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(inFormat(raw))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 32<<20 {
			t.Errorf("%s: %d bytes of it took %d MiB (%v)", name, len(raw), took>>20, err != nil)
		}
	}
}

func TestParse_FrozenAndHandwrittenExperiments(t *testing.T) {
	const bound = `"bound":"1.5"`
	cases := map[string]struct {
		edit func(fields) fields
		says string // Of the error; empty where it is read.
		want float64
	}{
		"as it was frozen":                    {func(f fields) fields { return f }, "", 1.5},
		"without the version of the API":      {func(f fields) fields { return f.without("api") }, `invalid api "": this program reads "assay.dev/v1alpha1"`, 0},
		"by hand, with another bound":         {func(f fields) fields { return f.replace("spec", bound, `"bound":"2"`).planned(t) }, "", 2},
		"by hand, with an invalid bound":      {func(f fields) fields { return f.without("plan").replace("spec", bound, `"bound":"fast"`) }, `spec.gates[0].bound: invalid bound "fast"`, 0},
		"by hand, with a ratio of nothing":    {func(f fields) fields { return f.without("plan").replace("spec", bound, `"bound":"0"`) }, "spec.gates[0].bound: invalid bound 0: a ratio is always positive", 0},
		"a changed spec beside the plan":      {func(f fields) fields { return f.replace("spec", bound, `"bound":"1.1"`) }, "plan differs from spec and template", 0},
		"a changed plan beside the spec":      {func(f fields) fields { return f.replace("plan", `"bound":1.5`, `"bound":1.1`) }, "plan differs from spec and template", 0},
		"a plan of another version":           {func(f fields) fields { return f.replace("plan", PlanVersion, "experiment/v9") }, `invalid plan.version "experiment/v9"`, 0},
		"a plan with a field that is unknown": {func(f fields) fields { return f.replace("plan", `"version"`, `"more":1,"version"`) }, `unknown field "plan.more"`, 0},
		"a spec in another version of the API": {func(f fields) fields {
			f["api"] = json.RawMessage(`"assay.dev/v2"`)
			return f
		}, `invalid api "assay.dev/v2": this program reads "assay.dev/v1alpha1"`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.Gates = []assayv1alpha1.Gate{{Name: "gain", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}}
			frozen, err := freezeAndCheck(t, spec, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(frozen)
			if err != nil {
				t.Fatal(err)
			}
			var f fields
			if err := json.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			got, err := tc.edit(f).parse(t)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("error %v, want %q", err, tc.says)
			}
			if err != nil {
				return
			}
			want := frozen.Plan
			want.Gates[0].Bound = &tc.want
			if diff := cmp.Diff(want, got.Plan); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// handwritten is an experiment with its spec and template, before it has a plan.
type handwritten struct {
	Format int    `json:"format"`
	Schema string `json:"schema"`
	API    string `json:"api"`
	written
	Run    record.Run     `json:"run"`
	Points []record.Point `json:"points"`
	Arms   []record.Arm   `json:"arms"`
	Cells  []record.Cell  `json:"cells"`
}

// An experiment that was written by hand has passed neither the API server nor Freeze.
func TestParse_InvalidHandwrittenExperimentsAreRejected(t *testing.T) {
	search := func(w *handwritten) {
		w.Spec.Gates, w.Spec.Predictions, w.Spec.Sweep = nil, nil, nil
		w.Spec.Search = &assayv1alpha1.Search{
			Over: assayv1alpha1.SearchAxis{Axis: "batchSize", Low: resource.MustParse("1"), High: resource.MustParse("8"), Resolution: "5%"}, Maximize: "throughput",
			SubjectTo: []assayv1alpha1.Constraint{{Metric: "latency", Op: assayv1alpha1.AtMost, Bound: "1"}},
		}
	}
	cases := map[string]struct {
		edit func(*handwritten)
		says string // With the field; empty where it is read.
	}{
		"as it is":                          {func(*handwritten) {}, ""},
		"without words that have a meaning": {func(w *handwritten) { w.Spec.Design.Order, w.Spec.Placement.Exclusive = "", "" }, ""},
		"no seed":                           {func(w *handwritten) { w.Spec.Design.Seed = 0 }, "spec.design.seed is missing"},
		"an unknown order":                  {func(w *handwritten) { w.Spec.Design.Order = "BAAB" }, `spec.design.order: invalid value "BAAB": allowed are ABBA, Random, Sequential`},
		"an unknown exclusivity":            {func(w *handwritten) { w.Spec.Placement.Exclusive = "Rack" }, `spec.placement.exclusive: invalid value "Rack"`},
		"an unknown parity":                 {func(w *handwritten) { w.Spec.Parity = "Some" }, `spec.parity: invalid value "Some"`},
		"an unknown parity of outputs":      {func(w *handwritten) { w.Template.Parity = "Some" }, `template.parity: invalid value "Some"`},
		"an unknown violation policy":       {func(w *handwritten) { w.Spec.Environment = &assayv1alpha1.Environment{OnViolation: "Ignore"} }, `spec.environment.onViolation: invalid value "Ignore"`},
		"an unknown direction":              {func(w *handwritten) { w.Template.Metrics[1].Direction = "lower" }, `template.metrics[1].direction: invalid value "lower": did you mean LowerIsBetter? Allowed are LowerIsBetter, HigherIsBetter`},
		"no statistic":                      {func(w *handwritten) { w.Template.Metrics[0].Statistic = "" }, `template.metrics[0].statistic: invalid value ""`},
		"an unknown statistic of a gate":    {func(w *handwritten) { w.Spec.Gates[0].Statistic = "p97" }, `spec.gates[0].statistic: invalid value "p97"`},
		"an unknown operator of a gate":     {func(w *handwritten) { w.Spec.Gates[0].Op = "Better" }, `spec.gates[0].op: invalid value "Better"`},
		"no severity":                       {func(w *handwritten) { w.Spec.Gates[0].Severity = "" }, `spec.gates[0].severity: invalid value ""`},
		"a metric named twice":              {func(w *handwritten) { w.Template.Metrics[1].Name = "latency" }, `template.metrics[1].name: "latency" is used twice`},
		"a gate named twice":                {func(w *handwritten) { w.Spec.Gates = append(w.Spec.Gates, w.Spec.Gates[0]) }, `spec.gates[1].name: "gain" is used twice`},
		"a point named twice":               {func(w *handwritten) { w.Points[1].Key = w.Points[0].Key }, `points[1].key "batchSize=1" is used twice`},
		"an arm named twice":                {func(w *handwritten) { w.Spec.Arms[1].Name, w.Arms[1].Name = "loop", "loop" }, `spec.arms[1].name: "loop" is used twice`},
		"two baselines":                     {func(w *handwritten) { w.Spec.Arms[1].Baseline, w.Arms[1].Baseline = true, true }, "arms[1].baseline is true and so is an earlier"},
		"arms that are not the spec's":      {func(w *handwritten) { w.Arms[1].Name = "other" }, "arms[1] is"},
		"a cell that is missing":            {func(w *handwritten) { w.Cells = w.Cells[1:] }, "cells has 3"},
		"a metric of the runner":            {func(w *handwritten) { w.Template.Metrics[0].Name = "process.cpuTime" }, `template.metrics[0].name: invalid value "process.cpuTime"`},
		"metrics without an output":         {func(w *handwritten) { w.Template.Output.Format = assayv1alpha1.NoOutput }, "template.metrics: 2 metrics are named and output.format is None"},
		"a gate on a missing metric":        {func(w *handwritten) { w.Spec.Gates[0].Metric = "speed" }, `spec.gates[0].metric: the template has no metric "speed"`},
		"a gate on a missing arm":           {func(w *handwritten) { w.Spec.Gates[0].Candidate = "loop" }, `spec.gates[0].candidate: invalid candidate "loop": allowed is fused`},
		"a gate at no point":                {func(w *handwritten) { w.Spec.Gates[0].At = values{"batchSize": "3"} }, "spec.gates[0].at: no point matches batchSize=3"},
		"a gate at no axis":                 {func(w *handwritten) { w.Spec.Gates[0].At = values{"rows": "3"} }, `spec.gates[0].at.rows: invalid axis "rows": allowed is batchSize`},
		"a gate on outputs without parity": {func(w *handwritten) {
			w.Template.Parity = ""
			w.Spec.Gates[0] = assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual, Severity: assayv1alpha1.Blocking}
		}, "template.parity is missing, and a gate of op ParityEqual compares the outputs of all trials"},
		"no parity and no gate on outputs":       {func(w *handwritten) { w.Template.Parity = "" }, ""},
		"a prediction of a missing metric":       {func(w *handwritten) { w.Spec.Predictions[0].Metric = "speed" }, `spec.predictions[0].metric: the template has no metric "speed"`},
		"a prediction of a negative ratio":       {func(w *handwritten) { w.Spec.Predictions[0].Ratio = "-1" }, `spec.predictions[0].ratio: invalid value "-1"`},
		"a confidence out of range":              {func(w *handwritten) { w.Spec.Design.Confidence = "95" }, `spec.design.confidence: invalid value "95"`},
		"a gateConfidence below confidence":      {func(w *handwritten) { w.Spec.Design.GateConfidence = "0.9" }, "spec.design.gateConfidence: value 0.9 is below spec.design.confidence 0.95"},
		"a rare slowdown that narrows intervals": {func(w *handwritten) { w.Spec.Design.RareSlowdown = "-50%" }, `spec.design.rareSlowdown: invalid value "-50%"`},
		"a correlation out of range":             {func(w *handwritten) { w.Spec.Design.BlockCorrelation = "1.5" }, `spec.design.blockCorrelation: invalid value "1.5"`},
		"a stopping width of zero":               {func(w *handwritten) { w.Spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: "0%"} }, `spec.design.stop.relativeHalfWidth: invalid value "0%"`},
		"too few blocks for a stopping rule": {func(w *handwritten) {
			w.Spec.Design.Stop, w.Spec.Design.Blocks.Min = &assayv1alpha1.Stop{RelativeHalfWidth: "1%"}, 4
		}, "spec.design.stop: spec.design.blocks.min is 4 and a stopping rule needs at least 10"},
		"a bound beyond all numbers": {func(w *handwritten) {
			w.Spec.Gates[0].Op, w.Spec.Gates[0].Bound = assayv1alpha1.AtMost, strings.Repeat("9", 308)+"Ti"
		}, "spec.gates[0].bound: "},
		"a search without loads":               {func(w *handwritten) { search(w); w.Points[0].Parameters = nil }, "points[0] has no value of batchSize, the axis of spec.search"},
		"a search for a missing metric":        {func(w *handwritten) { search(w); w.Spec.Search.Maximize = "speed" }, `spec.search.maximize: the template has no metric "speed"`},
		"a constraint on a missing metric":     {func(w *handwritten) { search(w); w.Spec.Search.SubjectTo[0].Metric = "speed" }, `spec.search.subjectTo[0].metric: the template has no metric "speed"`},
		"a constraint on a ratio":              {func(w *handwritten) { search(w); w.Spec.Search.SubjectTo[0].Op = assayv1alpha1.RatioAtMost }, `spec.search.subjectTo[0].op: invalid value "RatioAtMost"`},
		"an unknown statistic of a constraint": {func(w *handwritten) { search(w); w.Spec.Search.SubjectTo[0].Statistic = "p97" }, `spec.search.subjectTo[0].statistic: invalid value "p97"`},
		"a constraint without a bound":         {func(w *handwritten) { search(w); w.Spec.Search.SubjectTo[0].Bound = "" }, "spec.search.subjectTo[0].bound: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.Gates = []assayv1alpha1.Gate{{Name: "gain", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}}
			spec.Predictions = []assayv1alpha1.Prediction{{Metric: "throughput", Ratio: "2"}}
			frozen, err := freezeAndCheck(t, spec, testTemplate())
			if err != nil {
				t.Fatal(err)
			}
			from, err := frozen.written()
			if err != nil {
				t.Fatal(err)
			}
			w := &handwritten{Format, Schema, frozen.API, *from, frozen.Run, frozen.Points, frozen.Arms, frozen.Cells}
			tc.edit(w)
			raw, err := json.Marshal(w)
			if err != nil {
				t.Fatal(err)
			}
			var f fields
			if err := json.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			if _, err := f.planned(t).parse(t); (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
		})
	}
}
