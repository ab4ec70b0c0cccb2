package ledger_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/test/folderledger"
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
		"an unknown op":                    {`"op":"RatioAtLeast"`, `"op":"RatioAtleast"`, `spec.gates[0].op: invalid value "RatioAtleast": did you mean RatioAtLeast? Allowed are RatioAtLeast`},
		"an unknown severity":              {`"severity":"Blocking"`, `"severity":"Important"`, `spec.gates[0].severity: invalid value "Important"`},
		"an unknown statistic":             {`"statistic":"median"`, `"statistic":"average"`, `template.metrics[0].statistic: invalid value "average"`},
		"an unknown direction":             {`"direction":"LowerIsBetter"`, `"direction":"Lower"`, `template.metrics[0].direction: invalid value "Lower"`},
		"an unknown order":                 {`"order":"ABBA"`, `"order":"ABAB"`, `spec.design.order: invalid value "ABAB"`},
		"an unknown exclusivity":           {`"exclusive":"CPUs"`, `"exclusive":"All"`, `spec.placement.exclusive: invalid value "All"`},
		"an unknown parity":                {`"parity":"Required"`, `"parity":"Maybe"`, `template.parity: invalid value "Maybe"`},
		"an unknown field":                 {`"seed":1,`, `"seed":1,"sead":2,`, `unknown field "plan.design.sead"`},
		"a gate on no metric":              {`"metric":"throughput","at"`, `"metric":"speed","at"`, `spec.gates[0].metric: the template has no metric "speed"`},
		"a gate on no arm":                 {`"op":"RatioAtLeast"`, `"candidate":"fused-m5","op":"RatioAtLeast"`, `spec.gates[0].candidate: invalid candidate "fused-m5"`},
		"a gate on no point":               {`"at":{"batchSize":"8"`, `"at":{"batchSize":"9"`, `spec.gates[0].at: no point matches batchSize=9`},
		"a metric with the name of a reading of the runner": {
			`"name":"latency"`, `"name":"process.wallTime"`, `template.metrics[0].name: invalid value "process.wallTime"`,
		},
		"metrics of a program that reports nothing": {
			`"format":"AssayResult"`, `"format":"None"`, `template.metrics: 2 metrics are named and output.format is None`,
		},
		"two arms of one name":             {`{"name":"fused-m4r","baseline":false}`, `{"name":"fused-naive","baseline":false}`, `arms[2]`},
		"a baseline that the spec has not": {`{"name":"fused-m4r","baseline":false}`, `{"name":"fused-m4r","baseline":true}`, `arms[2] is {Name:fused-m4r Baseline:true`},
		"a cell of no arm":                 {`{"point":0,"arm":2`, `{"point":0,"arm":7`, "cells[2] is arm 7 at point 0"},
		"a cell that is there twice":       {`{"point":0,"arm":2`, `{"point":0,"arm":1`, `cells[2] is arm 1 at point 0, build "", which another one is already`},
	} {
		t.Run(name, func(t *testing.T) {
			l := folderledger.Of(t, 0, fixture.GainAt8("1.5"))
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
			l := folderledger.Of(t, 0, fixture.GainAt8("1.5"))
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
