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

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
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

// inFormat adds the format to an object.
func inFormat(raw string) []byte {
	return []byte(strings.Replace(raw, "{", fmt.Sprintf(`{"format":%d,`, Format), 1))
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
		"another of that name": {`{"spec":{"arms":[{"parameters":{"memory":"` + endless + `"}}]}}`, "invalid schema"},
	} {
		began := time.Now()
		if _, err := Parse(inFormat(tc.raw)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		}
		if took := time.Since(began); took > time.Second {
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
		"as it was frozen":                        {func(f fields) fields { return f }, "", 1.5},
		"by hand, without the version of the API": {func(f fields) fields { return f.without("api", "plan") }, "api, template and spec are required", 0},
		"by hand, with another bound":             {func(f fields) fields { return f.replace("spec", bound, `"bound":"2"`).planned(t) }, "", 2},
		"by hand, with an invalid bound":          {func(f fields) fields { return f.without("plan").replace("spec", bound, `"bound":"fast"`) }, `spec.gates[0].bound: invalid bound "fast"`, 0},
		"by hand, with a ratio of nothing":        {func(f fields) fields { return f.without("plan").replace("spec", bound, `"bound":"0"`) }, "spec.gates[0].bound: invalid bound 0: a ratio is always positive", 0},
		"a changed spec beside the plan":          {func(f fields) fields { return f.replace("spec", bound, `"bound":"1.1"`) }, "plan differs from spec and template", 0},
		"a changed plan beside the spec":          {func(f fields) fields { return f.replace("plan", `"bound":1.5`, `"bound":1.1`) }, "plan differs from spec and template", 0},
		"a plan of another version":               {func(f fields) fields { return f.later().replace("plan", PlanVersion, "experiment/v9") }, `plan.version is "experiment/v9"`, 0},
		"a plan with a field that is unknown":     {func(f fields) fields { return f.replace("plan", `"version"`, `"more":1,"version"`) }, `unknown field "plan.more"`, 0},
		"a spec in a later version of the API":    {func(f fields) fields { return f.later() }, "", 1.5},
		"and a plan with an unknown op":           {func(f fields) fields { return f.later().replace("plan", `"op":"RatioAtLeast"`, `"op":"Better"`) }, `plan.gates[0].op: invalid value "Better"`, 0},
		"and a plan without the bound of a gate": {func(f fields) fields {
			return f.later().replace("plan", `"bound":1.5,`, "").replace("plan", `,"bound":1.5`, "")
		}, "plan.gates[0].bound is missing", 0},
		"and a plan with a confidence out of range": {func(f fields) fields { return f.later().replace("plan", `"confidence":0.95`, `"confidence":95`) }, "plan.design.confidence: invalid value 95: allowed are numbers from 0.5 to below 1", 0},
		"and a plan with gateConfidence below confidence": {func(f fields) fields {
			return f.later().replace("plan", `"gateConfidence":0.995`, `"gateConfidence":0.9`)
		}, "plan.design.gateConfidence: invalid value 0.9", 0},
		"and a plan whose rare slowdown would make intervals narrower": {func(f fields) fields {
			return f.later().replace("plan", `"seed":`, `"rareSlowdown":-0.5,"seed":`)
		}, "plan.design.rareSlowdown: invalid value -0.5: allowed are numbers from 0 to 10", 0},
		"and a plan with a correlation out of range": {func(f fields) fields {
			return f.later().replace("plan", `"seed":`, `"blockCorrelation":1.5,"seed":`)
		}, "plan.design.blockCorrelation: invalid value 1.5", 0},
		"and a plan with a zero stopping width": {func(f fields) fields {
			return f.later().replace("plan", `"seed":`, `"stop":{"relativeHalfWidth":-1},"seed":`)
		}, "plan.design.stop.relativeHalfWidth: invalid value -1", 0},
		"and a plan with too few blocks for its stopping rule": {func(f fields) fields {
			stops := f.later().replace("plan", `"seed":`, `"stop":{"relativeHalfWidth":0.01},"seed":`)
			return stops.replace("plan", `"blocks":{"min":10`, `"blocks":{"min":4`)
		}, "plan.design.blocks.min: invalid value 4: a stopping rule (plan.design.stop) needs at least 10 blocks", 0},
		"and a plan with a gate on a missing metric": {func(f fields) fields { return f.later().replace("plan", `"metric":"throughput"`, `"metric":"speed"`) }, `plan.gates[0].metric is "speed"`, 0},
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

// planned replaces the plan by the one that the error for a missing one shows.
func (f fields) planned(t *testing.T) fields {
	t.Helper()
	_, err := f.without("plan").parse(t)
	_, plan, ok := strings.Cut(errorText(err), "plan is missing: write ")
	if !ok {
		t.Fatalf("error %v, want one that has the plan", err)
	}
	f["plan"] = json.RawMessage(plan)
	return f
}

// later changes the API version to an unknown one.
func (f fields) later() fields {
	f["api"], f["spec"], f["template"] = json.RawMessage(`"assay.dev/v2"`), json.RawMessage(`{"of":"its own"}`), json.RawMessage(`{}`)
	return f
}
