package analyze_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/fixture/analyzed"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

func TestExperiment_InvalidFieldIsReported(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"an absent seed":                   {`"seed":1,`, ``, "spec.design.seed is missing"},
		"an absent confidence":             {`"confidence":"0.95",`, ``, `spec.design.confidence: invalid value ""`},
		"an invalid confidence":            {`"confidence":"0.95"`, `"confidence":"high"`, `spec.design.confidence: invalid value "high"`},
		"a confidence that is NaN":         {`"confidence":"0.95"`, `"confidence":"NaN"`, `spec.design.confidence: invalid value "NaN"`},
		"an absent gateConfidence":         {`,"gateConfidence":"0.995"`, ``, `spec.design.gateConfidence: invalid value ""`},
		"a gateConfidence of words":        {`"gateConfidence":"0.995"`, `"gateConfidence":"very high"`, `spec.design.gateConfidence: invalid value "very high"`},
		"a gateConfidence of 99.5":         {`"gateConfidence":"0.995"`, `"gateConfidence":"99.5"`, `spec.design.gateConfidence: invalid value "99.5"`},
		"a gateConfidence below the other": {`"gateConfidence":"0.995"`, `"gateConfidence":"0.9"`, "would rest on less than the results"},
		"an unknown op":                    {`"op":"RatioAtLeast"`, `"op":"RatioAtleast"`, `spec.gates[0].op: invalid value "RatioAtleast": allowed are RatioAtLeast`},
		"an unknown severity":              {`"severity":"Blocking"`, `"severity":"Important"`, `spec.gates[0].severity: invalid value "Important"`},
		"an unknown statistic":             {`"statistic":"median"`, `"statistic":"average"`, `template.metrics[0].statistic: invalid value "average"`},
		"an unknown direction":             {`"direction":"LowerIsBetter"`, `"direction":"Lower"`, `template.metrics[0].direction: invalid value "Lower"`},
		"an unknown order":                 {`"order":"ABBA"`, `"order":"ABAB"`, `spec.design.order: invalid value "ABAB"`},
		"an unknown exclusivity":           {`"exclusive":"CPUs"`, `"exclusive":"All"`, `spec.placement.exclusive: invalid value "All"`},
		"an unknown parity":                {`"parity":"Required"`, `"parity":"Maybe"`, `template.parity: invalid value "Maybe"`},
		"an unknown field":                 {`"spec":{`, `"spec":{"sead":2,`, `unknown field "spec.sead"`},
		"a gate on no metric":              {`"metric":"throughput","at"`, `"metric":"speed","at"`, `spec.gates[0].metric is "speed"`},
		"a gate on no arm":                 {`"op":"RatioAtLeast"`, `"candidate":"fused-m5","op":"RatioAtLeast"`, `spec.gates[0].candidate: invalid value "fused-m5"`},
		"a gate on no point":               {`"at":{"batchSize":"8"`, `"at":{"batchSize":"9"`, `spec.gates[0].at is map[batchSize:9`},
		"a metric with the name of a reading of the runner": {
			`"name":"latency"`, `"name":"process.wallTime"`, `template.metrics[0].name: invalid value "process.wallTime"`,
		},
		"metrics of a program that reports nothing": {
			`"format":"AssayResult"`, `"format":"None"`, `template.metrics: 2 metrics are named and output.format is None`,
		},
		"two arms of one name":             {`{"name":"fused-m4r","baseline":false}`, `{"name":"fused-naive","baseline":false}`, `arms[2]`},
		"a baseline that the spec has not": {`{"name":"fused-m4r","baseline":false}`, `{"name":"fused-m4r","baseline":true}`, `arms[2] is {Name:fused-m4r Baseline:true`},
		"a cell of no arm":                 {`{"point":0,"arm":2`, `{"point":0,"arm":7`, "cells[2] is arm 7 at point 0"},
		"a cell that is there twice":       {`{"point":0,"arm":2`, `{"point":0,"arm":1`, "cells[2] is arm 1 at point 0, which another one is already"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFolderLedger(t)
			l.Edit(c.from, c.to)
			if _, err := l.Open(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "experiment.json") {
				t.Errorf("%v, want an error with %q", err, c.says)
			}
		})
	}
}

// Without a plan the words of the spec are read first.
func TestHandWrittenExperiment_InvalidFieldIsReported(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"a stopping rule that always holds": {
			`"seed":1,`, `"seed":1,"stop":{"relativeHalfWidth":"Inf%"},`, `spec.design.stop.relativeHalfWidth: invalid value "Inf%"`,
		},
		"a stopping rule that is NaN": {
			`"seed":1,`, `"seed":1,"stop":{"relativeHalfWidth":"NaN%"},`, `spec.design.stop.relativeHalfWidth: invalid value "NaN%"`,
		},
		"a noise limit that is NaN": {
			`"gates":[`, `"environment":{"noise":{"steal":"NaN%"}},"gates":[`, `spec.environment.noise.steal: invalid value "NaN%"`,
		},
		"a prediction of anything": {
			`"gates":[`, `"predictions":[{"metric":"throughput","candidate":"fused-m4r","ratio":"Inf"}],"gates":[`,
			`spec.predictions[0].ratio: invalid value "Inf"`,
		},
		"outputs that are compared and not required": {
			`"gates":[`, `"gates":[{"name":"same","op":"ParityEqual","severity":"Blocking"},`, "template.parity is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFolderLedger(t)
			l.ByHand()
			l.Edit(`"parity":"Required",`, ``)
			if _, err := l.Open(); err == nil || !strings.Contains(err.Error(), "plan is missing") {
				t.Fatal(err)
			}
			l.Edit(c.from, c.to)
			if _, err := l.Open(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "experiment.json") {
				t.Errorf("%v, want an error with %q", err, c.says)
			}
		})
	}
}

func TestMissingWave_GapsAndAlterationsAreReported(t *testing.T) {
	const trial = "attempts/w000-b0001/pod-w000-b0001/w000-b0001-s00003.json"
	for name, c := range map[string]struct {
		spoil func(*folderLedger)
		says  string // Part of an exclusion or a warning.
	}{
		"a missing attempt": {func(l *folderLedger) { l.Remove(trial) }, "1 missing), first w000-b0001-s00003"},
		"Succeeded beside an exit code": {
			func(l *folderLedger) { l.Replace(trial, `"exitCode":0`, `"exitCode":3`) }, "outcome is Succeeded and exitCode 3",
		},
		"Succeeded beside a signal": {func(l *folderLedger) { l.Replace(trial, `"exitCode":0`, `"signal":9`) }, "outcome is Succeeded and signal 9"},
		"Failed beside a result": {
			func(l *folderLedger) { l.Replace(trial, `"outcome":"Succeeded"`, `"outcome":"Failed"`) }, "exitCode is 0 and there is a result",
		},
		"NotStarted beside a result": {
			func(l *folderLedger) { l.Replace(trial, `"outcome":"Succeeded"`, `"outcome":"NotStarted"`) }, "it did start, and counts as failed",
		},
		"an unknown outcome":   {func(l *folderLedger) { l.Replace(trial, `"outcome":"Succeeded"`, `"outcome":"Fine"`) }, "$.outcome"},
		"an unknown isolation": {func(l *folderLedger) { l.Replace(trial, `"level":"ExclusiveCPUs"`, `"level":"Alone"`) }, "$.isolation.level"},
		"an unknown purpose": {
			func(l *folderLedger) { l.Replace("waves/000/wave.json", `"purpose":"screen"`, `"purpose":"show"`) }, "$.purpose",
		},
		"an unknown field": {func(l *folderLedger) { l.Replace(trial, `"slot":3`, `"slot":3,"slat":4`) }, "slat"},
		"a number of 1e300": {func(l *folderLedger) {
			l.Replace(trial, `"latency":{"unit":"s","samples":[`, `"latency":{"unit":"s","samples":[1e300,`)
		}, "allowed are 0 and magnitudes"},
		"a number beyond JSON's": {
			func(l *folderLedger) {
				l.Replace(trial, `"latency":{"unit":"s","samples":[`, `"latency":{"unit":"s","samples":[1e999,`)
			}, "w000-b0001-s00003",
		},
		"a negative time": {func(l *folderLedger) {
			l.Replace(trial, `"latency":{"unit":"s","samples":[`, `"latency":{"unit":"s","samples":[-1,`)
		}, "negative time"},
		"a negative duration": {func(l *folderLedger) { l.Replace(trial, `"durationSeconds":`, `"durationSeconds":-`) }, "$.durationSeconds"},
		"a duration far shorter than the samples": {
			func(l *folderLedger) {
				l.Write(trial, regexp.MustCompile(`"durationSeconds":[0-9.]+`).ReplaceAll(l.Read(trial), []byte(`"durationSeconds":0.001`)))
			}, "contradicts the runner's readings in 1 trials: pod-",
		},
		"an object too large": {
			func(l *folderLedger) { l.Write(trial, make([]byte, 64<<20+1)) }, "it has 67108865 bytes and at most 67108864 are read",
		},
		"a block that is there twice": {
			func(l *folderLedger) { l.Replace("waves/000/wave.json", `"id":"w000-b0002"`, `"id":"w000-b0001"`) },
			`blocks[2].id "w000-b0001" is used twice`,
		},
		"a slot of no cell": {
			func(l *folderLedger) { l.Replace("waves/000/wave.json", `"warmup":[0,`, `"warmup":[99,`) }, "has cell 99 in slot 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFolderLedger(t)
			c.spoil(l)
			got := l.Analyze()
			named := func(text string) bool { return strings.Contains(text, c.says) }
			if !slices.ContainsFunc(got.Warnings, named) &&
				!slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool { return named(e.Attempt + " " + e.Reason) }) {
				t.Errorf("excluded %+v, warnings %q: want %q", got.Excluded, got.Warnings, c.says)
			}
			// The list of the objects read can be parsed.
			l.Analyze()
		})
	}
}

func TestMissingWave_IsReportedAndPreventsDecision(t *testing.T) {
	for name, spoil := range map[string]func(*analyzed.Run){
		"the plan and all of it": func(l *analyzed.Run) {
			l.Waves = slices.Delete(l.Waves, 1, 2)
			l.Retain(func(a record.Attempt) bool { return a.Wave != 1 })
		},
		"the plan": func(l *analyzed.Run) { l.Waves = slices.Delete(l.Waves, 1, 2) },
		"the plans and one wave's attempts": func(l *analyzed.Run) {
			l.Waves = nil
			l.Retain(func(a record.Attempt) bool { return a.Wave != 1 })
		},
		"the newest plan": func(l *analyzed.Run) { l.Waves = l.Waves[:2] },
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 0.94, nil)
			world := fixture.NewWorld(fixture.Scenarios()[0], -0.06, 1, 2)
			for number := 1; number < 3; number++ {
				wave, err := fixture.Wave(l.Exp, number, 10*number, 10)
				if err != nil {
					t.Fatal(err)
				}
				l.Attempts = append(l.Attempts, world.Run(l.Exp, wave)...)
				l.Waves = append(l.Waves, *wave)
			}
			through := func() *analysis.Analysis {
				return analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts}, 2)
			}
			if got := through(); got.Verdict != fixture.Go {
				t.Fatalf("the whole ledger: %s", got.Candidates[0].Reason)
			}
			spoil(l)
			got := through()
			if got.Verdict != fixture.Inconclusive || !strings.Contains(got.Candidates[0].Reason, "is missing, cannot be read or contradicts") {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
			if !slices.ContainsFunc(got.Excluded, func(e analysis.Exclusion) bool { return strings.HasPrefix(e.Attempt, "waves/00") }) {
				t.Errorf("excluded %+v", got.Excluded[:min(2, len(got.Excluded))])
			}
		})
	}
}

// An object may claim any wave number. Of the missing waves before it only the first are listed.
func TestWaveNumber_LargeValueIsCheap(t *testing.T) {
	const far = 300_000
	for name, spoil := range map[string]func(*analyzed.Run){
		"an attempt": func(l *analyzed.Run) {
			attempt := l.Attempts[0]
			attempt.Wave, attempt.Block = far, record.BlockName(far, 0)
			attempt.Trial = record.TrialName(attempt.Block, 0, false)
			attempt.ID = "simulated/" + attempt.Trial
			l.Attempts = append(l.Attempts, attempt)
		},
		"a plan that cannot be read": func(l *analyzed.Run) {
			l.Problems = append(l.Problems, record.Problem{Source: record.Source{Key: record.WaveKey(far)}, Reason: "it is truncated"})
		},
	} {
		l := analyzed.SimulatePair(t, 0.94, nil)
		spoil(l)
		got := analyze.Evidence(l.Exp, record.Evidence{Waves: l.Waves, Attempts: l.Attempts, Problems: l.Problems}, far)
		if got.Verdict != fixture.Inconclusive || !strings.Contains(got.Candidates[0].Reason, "waves/001/wave.json is missing") {
			t.Errorf("%s: %s: %s", name, got.Verdict, got.Candidates[0].Reason)
		}
		if named := len(got.Excluded); named > 200 {
			t.Errorf("%s: %d objects are named as missing", name, named)
		}
	}
}

// Equal outputs and completed trials are not a Go either if a part of the evidence is missing or duplicated. Differing outputs and failed
// trials still are a NoGo.
func TestEvidence_IncompletePreventsGo(t *testing.T) {
	gap := func(l *analyzed.Run) {
		l.Problems = append(l.Problems, record.Problem{Source: record.Source{Key: record.WaveKey(0)}, Reason: "it is truncated"})
	}
	twice := func(l *analyzed.Run) {
		var first *record.Attempt
		l.EachOf("fused-m4r", func(a *record.Attempt) {
			switch {
			case a.Warmup:
			case first == nil:
				first = a
			case a.Block == "w000-b0001":
				a.StartedAt, a.DurationSeconds = first.StartedAt, first.DurationSeconds
			}
		})
	}
	wrong := func(l *analyzed.Run) {
		l.EachOf("fused-m4r", func(a *record.Attempt) { a.Result.Parity.Digest = strings.Repeat("f", 64) })
	}
	crash := func(l *analyzed.Run) {
		l.EachOf("fused-m4r", func(a *record.Attempt) { a.Outcome, a.Result, a.ExitCode = record.Failed, nil, ptr.To(1) })
	}
	type run = []func(*analyzed.Run)
	time := fixture.GainAt8("1.1")
	outputs, completing := assayv1alpha1.Gate{Op: assayv1alpha1.ParityEqual}, assayv1alpha1.Gate{Op: assayv1alpha1.Completes}
	for name, c := range map[string]struct {
		gate  assayv1alpha1.Gate
		spoil run
		want  experiment.Verdict
		says  string
	}{
		"a time, and all of it":                  {time, nil, fixture.Go, ""},
		"a time, and a wave is missing":          {time, run{gap}, fixture.Inconclusive, "is missing, cannot be read or contradicts"},
		"outputs, and all of it":                 {outputs, nil, fixture.Go, ""},
		"outputs, and a wave is missing":         {outputs, run{gap}, fixture.Inconclusive, "is missing, cannot be read"},
		"outputs, and a trial is there twice":    {outputs, run{twice}, fixture.Inconclusive, "is a copy of the other"},
		"outputs that differ, with a gap":        {outputs, run{gap, wrong}, fixture.NoGo, "gives another output"},
		"completing, and all of it":              {completing, nil, fixture.Go, ""},
		"completing, and a wave is missing":      {completing, run{gap}, fixture.Inconclusive, "is missing, cannot be read"},
		"completing, and a trial is there twice": {completing, run{twice}, fixture.Inconclusive, "is a copy of the other"},
		"failures, with a gap":                   {completing, run{gap, crash}, fixture.NoGo, "trials completed against"},
	} {
		t.Run(name, func(t *testing.T) {
			c.gate.Name = "g"
			l := analyzed.SimulateScan(t, 8, fixture.Machine{Seed: 1, Noise: fixture.QuietNoise}, fixture.WithGates(c.gate))
			for _, spoil := range c.spoil {
				spoil(l)
			}
			got := l.Analyze()
			at := slices.IndexFunc(got.Gates, func(g analysis.GateResult) bool { return g.Gate == "g" && g.Candidate == "fused-m4r" })
			if g := got.Gates[at]; g.Outcome != c.want || !strings.Contains(g.Message, c.says) {
				t.Errorf("%s: %s, want %s with %q", g.Outcome, g.Message, c.want, c.says)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
