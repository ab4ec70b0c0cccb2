package analyze_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/cputime"
	"assay.dev/assay/operator/test/folderledger"
)

// A number that JSON cannot represent would leave the run without a verdict, so an attempt could remove the verdict.
func TestAnalysis_ExtremeAttemptsAreWritable(t *testing.T) {
	t.Parallel()
	const largest, smallest = "1.7e308", "5e-324"
	times := []string{
		`"0000-01-01T00:00:00Z"`, `"0000-01-01T00:00:00+23:59"`, `"0001-01-01T00:00:00Z"`, `"9000-12-31T23:59:59Z"`, `"9999-12-31T23:59:59Z"`,
		`"9999-12-31T23:59:59-23:59"`,
	}
	for field, values := range map[string][]string{
		"startedAt": times, "durationSeconds": {"0", smallest, "8999999999"}, "achieved": {largest}, "limit": {smallest},
		"userSeconds": {largest}, "stealRatio": {largest}, "otherWorkRatio": {largest}, "spinSeconds": {smallest, largest},
		"canarySeconds": {smallest, largest}, "windowSeconds": {smallest},
	} {
		for _, value := range values {
			for every := 1; every <= 2; every++ {
				name := fmt.Sprintf("%s %s in one of %d attempts", field, value, every)
				if testing.Short() && fixture.OmittedInShortForm(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					l, changed := folderledger.New(t), 0
					pattern := regexp.MustCompile(`"` + field + `": ?("[^"]*"|[^,}\]]*)`)
					for i, key := range l.Attempts() {
						raw := l.Read(key)
						if i%every == 0 {
							changed += len(pattern.FindAll(raw, -1))
							raw = pattern.ReplaceAll(raw, []byte(`"`+field+`":`+value))
						}
						l.Write(key, regexp.MustCompile(`"soft": ?\{`).ReplaceAll(raw, []byte(`"soft":{"nodeName":"node-a",`)))
					}
					if changed == 0 {
						t.Fatalf("no attempt has %s", field)
					}
					result := l.Analyze()
					raw, err := json.Marshal(result)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := analysis.Parse(raw); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// The analysis quotes and lists the reports of programs. An analysis that exceeds the size limit has no verdict, so a program could prevent
// a NoGo with long reports.
func TestAnalysis_LongProgramReportsStayWithinLimits(t *testing.T) {
	t.Parallel()
	const most = 10 * time.Second
	crowded := func(spec *fixture.RunSpec) {
		spec.Sweep = &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "size", Values: []string{"1", "2"}}}}
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: 250, Max: 250}
		spec.Budget.Trials = 100_000
	}
	median := func(spec *fixture.RunSpec) { spec.Gates[0].Statistic = assayv1alpha1.StatisticP50 }
	named := func(result *record.Result, i int) *record.Result {
		for phase := range 64 {
			result.Phases = append(result.Phases, record.Phase{Name: fmt.Sprintf("a%dTo%d", i, phase), Samples: []float64{1}})
		}
		return result
	}
	for name, c := range map[string]struct {
		edit func(*fixture.RunSpec)
		says func(i int, a *record.Attempt, result *record.Result)
	}{
		"a build that has a long name in every trial": {nil, func(i int, _ *record.Attempt, result *record.Result) {
			result.Workload.Build = map[string]string{fmt.Sprint(strings.Repeat("\x01", 1<<18), i): "it"}
		}},
		"long last words": {crowded, func(i int, a *record.Attempt, _ *record.Result) {
			if i%4 > 0 {
				a.Outcome, a.ExitCode, a.Message = record.Failed, nil, strings.Repeat("<\x01", 2048)
			}
		}},
		"other phases in every trial": {crowded, func(i int, _ *record.Attempt, result *record.Result) { named(result, i) }},
		"more samples than can be counted": {median, func(_ int, _ *record.Attempt, result *record.Result) {
			of := hdrhistogram.New(1, 1<<40, 3)
			if err := of.RecordValues(1e9, 1<<52); err != nil {
				t.Fatal(err)
			}
			data, err := of.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			result.Metrics["time"] = &record.Metric{Unit: "s", Histogram: &record.Histogram{
				Encoding: "hdr-v2-deflate-base64", Scale: 1e-9, Count: of.TotalCount(), Data: string(data),
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			exp, err := fixture.PairExperiment(c.edit)
			if err != nil {
				t.Fatal(err)
			}
			wave, err := fixture.Wave(exp, 0, 0, exp.Plan.Design.Blocks.Min)
			if err != nil {
				t.Fatal(err)
			}
			attempts := fixture.NewWorld(fixture.Scenario{Trial: 0.01}, 0.5, 1, 1).Run(exp, wave)
			for i := range attempts {
				if a := &attempts[i]; a.Arm == "new" {
					result := *a.Result
					result.Metrics = maps.Clone(result.Metrics)
					c.says(i, a, &result)
					a.Result = &result
				}
			}
			used := cputime.Start()
			result := analyze.Evidence(exp, record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}, 0)
			if took := used(); took > most {
				t.Errorf("it took %s", took)
			}
			raw, err := json.MarshalIndent(result, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := analysis.Parse(raw); err != nil {
				t.Errorf("%d bytes: %v", len(raw), err)
			}
			if result.Verdict == fixture.Go {
				t.Errorf("%s of a candidate that is slower", result.Verdict)
			}
		})
	}
}
