// Package fuzz holds the fuzz targets for parsers of untrusted input (specs, ledgers, records, policies) and for rendered reports. Their
// corpora run as plain tests with every go test; make fuzz searches for new inputs.
package fuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/keeper"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/test/records"
)

// mostPlanned keeps a plan small enough to make thousands of times.
const mostPlanned = 20_000

// specs is the input of an author: a template and a run.
type specs struct {
	Template assayv1alpha1.BenchmarkTemplateSpec `json:"template"`
	Spec     assayv1alpha1.BenchmarkRunSpec      `json:"spec"`
}

func scan(t testing.TB) *experiment.Experiment {
	t.Helper()
	exp, err := fixture.ScanExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	return exp
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%T cannot be written: %v", value, err)
	}
	return raw
}

// Any spec is either rejected with its field, or gives an experiment that can be written, read and planned.
func FuzzSpec(f *testing.F) {
	exp := scan(f)
	spec, template, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(marshal(f, specs{template, spec}))
	f.Add([]byte(`{"template": {"image": "a", "metrics": []}, "spec": {"arms": [{"name": "a", "baseline": true}]}}`))
	f.Add([]byte(`{"template": {"parameters": [{"name": "a", "type": "Integer", "minimum": "1e400"}]}, "spec": {"sweep": {"axes": [{"name": "a", "values": ["1"]}]}}}`))
	f.Add([]byte(`{"spec": {"search": {"axis": "a", "from": "1", "to": "1e9", "step": "1"}, "arms": [{}, {}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var asked specs
		if json.Unmarshal(raw, &asked) != nil {
			return
		}
		exp, err := experiment.Freeze(record.Run{Namespace: "n", Name: "r", UID: "u"}, asked.Spec, asked.Template)
		if err != nil {
			var invalid *experiment.Invalid
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("an error that names no field: %v", err)
			}
			for _, problem := range invalid.Problems {
				if problem.Field == "" || problem.Message == "" {
					t.Errorf("a problem without a field or a message: %+v", problem)
				}
			}
			return
		}
		if digest, err := exp.ComputeDigest(); err != nil || digest != exp.Digest {
			t.Errorf("digest %s, and again %s (%v)", exp.Digest, digest, err)
		}
		if exp.Plan.Design.TrialsPerBlock(exp.CellsPerBlock()) > mostPlanned {
			return
		}
		wave, err := design.BuildWave(exp, 0, 0, 1, []design.Lane{{Node: "node", Token: 1}})
		if err != nil {
			return
		}
		if _, err := record.ParseWave(marshal(t, wave)); err != nil {
			t.Errorf("the plan of an accepted experiment cannot be read: %v", err)
		}
	})
}

// objects is a ledger in memory.
type objects map[string][]byte

func (o objects) Get(_ context.Context, key string) ([]byte, error) {
	if data, ok := o[key]; ok {
		return data, nil
	}
	return nil, store.ErrNotFound
}

func (o objects) Create(_ context.Context, key string, data []byte) error {
	o[key] = data
	return nil
}

func (o objects) Update(_ context.Context, key string, change func(old []byte) ([]byte, error)) error {
	data, err := change(o[key])
	if err == nil {
		o[key] = data
	}
	return err
}

func (o objects) Replace(_ context.Context, key string, data []byte) error {
	o[key] = data
	return nil
}

func (o objects) List(_ context.Context, prefix string) ([]string, error) {
	var keys []string
	for key := range o {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Page returns all keys that follow after, in one page.
func (o objects) Page(ctx context.Context, prefix, after string) ([]string, bool, error) {
	keys, err := o.List(ctx, prefix)
	return slices.DeleteFunc(keys, func(key string) bool { return key <= after }), false, err
}

func (o objects) Check(context.Context) error { return nil }

func (o objects) URL() string { return "memory:" }

// handwritten is the smallest complete ledger, beside a plan and a lease for it that a simulated one has.
func handwritten(t testing.TB) objects {
	t.Helper()
	folder := filepath.Join("..", "analysis", "analyze", "testdata", "handwritten")
	stored := objects{}
	for _, pattern := range []string{"experiment.json", "attempts/*/*/*.json"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v %v", pattern, paths, err)
		}
		for _, path := range paths {
			key, err := filepath.Rel(folder, path)
			if err != nil {
				t.Fatal(err)
			}
			if stored[filepath.ToSlash(key)], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	return stored
}

// sealed recomputes the digest of an experiment and of its attempts. Otherwise the digest check would reject every mutated ledger and
// hide the code behind it.
func sealed(stored objects) {
	var exp experiment.Experiment
	if json.Unmarshal(stored["experiment.json"], &exp) != nil {
		return
	}
	before := exp.Digest
	digest, err := exp.ComputeDigest()
	if err != nil || before == "" {
		return
	}
	for key, data := range stored {
		stored[key] = bytes.ReplaceAll(data, []byte(`"`+before+`"`), []byte(`"`+digest+`"`))
	}
}

// Any ledger is rejected with a reason or judged, and the result can be written and rendered.
func FuzzLedger(f *testing.F) {
	base := handwritten(f)
	keys := slices.Sorted(maps.Keys(base))
	for i, key := range keys {
		f.Add(uint8(i), base[key])
	}
	// The plan beside a spec in another version of the API is judged as it is, so that a mutated one reaches the analysis.
	const api, another = `"api": "assay.dev/v1alpha1"`, `"api": "assay.dev/v2"`
	f.Add(uint8(slices.Index(keys, ledger.ExperimentKey)), bytes.Replace(base[ledger.ExperimentKey], []byte(api), []byte(another), 1))
	exp := scan(f)
	wave, err := fixture.Wave(exp, 0, 0, 3)
	if err != nil {
		f.Fatal(err)
	}
	// Beside the objects that it replaces there are those that it adds.
	added := []string{ledger.WaveKey(0), "leases/node-1.json", "leases/node-1.end.json", ledger.SealKey(0),
		"started/w000-b0000/laptop/w000-b0000-s00000.json"}
	f.Add(uint8(len(keys)), marshal(f, wave))
	f.Add(uint8(len(keys)+1), []byte(`{"run": {"namespace": "n", "name": "r", "uid": "u"}, "node": "node", "token": 1, "acquiredAt": "2026-01-01T00:00:00Z"}`))
	f.Add(uint8(len(keys)+3), []byte(strings.Repeat("0", 64)+"  attempts/w000-b0000/laptop/w000-b0000-s00000.json\n"))
	keys = append(keys, added...)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		stored := maps.Clone(base)
		stored[keys[int(which)%len(keys)]] = data
		sealed(stored)
		ctx := t.Context()
		exp, err := ledger.ReadExperiment(ctx, stored)
		if err != nil {
			return
		}
		evidence, err := ledger.ReadEvidence(ctx, stored, 0)
		if err != nil {
			return
		}
		judged := analyze.Evidence(exp, evidence, 0)
		if _, err := analysis.Parse(marshal(t, judged)); err != nil {
			t.Errorf("the reader of an analysis rejects its output: %v", err)
		}
		if _, err := html.Render(exp, judged, evidence); err != nil {
			t.Errorf("no report: %v", err)
		}
		report.Markdown(exp, judged)
		report.CSV(exp, judged)
		if judged.Trials.Used+judged.Trials.Failed+judged.Trials.Invalid+judged.Trials.Missing+judged.Trials.Warmups != judged.Trials.Planned {
			t.Errorf("%+v: every trial is one of them", judged.Trials)
		}
	})
}

// tags matches markup as a browser would parse it.
var tags = regexp.MustCompile(`<[a-zA-Z/!?][^\s>]*`)

// harmless replaces markup characters by letters, so that the text has the same length and the charts the same layout.
var harmless = strings.NewReplacer("<", "x", ">", "x", "&", "x", `"`, "x", "'", "x")

// withoutCode removes code spans of Markdown, in which markup is inactive: from a run of backticks to the next one of the same length
// (CommonMark 0.31, 6.1).
func withoutCode(markdown string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(markdown, "`")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		more := len(rest) - len(strings.TrimLeft(rest, "`"))
		rest = rest[more:]
		markdown = rest
		for at := 0; ; {
			next := strings.IndexByte(rest[at:], '`')
			if next < 0 {
				break
			}
			at += next
			run := len(rest[at:]) - len(strings.TrimLeft(rest[at:], "`"))
			at += run
			if run == more+1 {
				markdown = rest[at:]
				break
			}
		}
	}
}

// Names, values and messages reach a report as text: with any of them it has the tags that it has with a harmless one.
func FuzzReport(f *testing.F) {
	exp := scan(f)
	wave, err := fixture.Wave(exp, 0, 0, 4)
	if err != nil {
		f.Fatal(err)
	}
	attempts := fixture.Machine{Seed: 7, Noise: fixture.Noise{Block: 0.03, Trial: 0.005}, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	last := &attempts[len(attempts)-1]
	last.Outcome, last.Result, last.Message, last.StderrTail = record.Failed, nil, "spoken", "spoken"
	evidence := record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}
	result := analyze.Evidence(exp, evidence, 0)
	result.Warnings = append(result.Warnings, "spoken")
	story := struct {
		Exp      *experiment.Experiment
		Found    *analysis.Analysis
		Evidence record.Evidence
	}{exp, result, evidence}
	raw := marshal(f, story)
	// Every value from outside, at each place where it appears.
	words := []string{"fused-m4r", "batchSize", "throughput", "queries/s", "gain-at-8", "assay.dev/pir-scan:0.1.0", "pir-batch-scan",
		"benchmarks", "spoken"}
	for i := range words {
		f.Add(uint8(i), `<script>alert("x")</script>`)
		f.Add(uint8(i), `'"><img src=x onerror=alert(1)>`)
		f.Add(uint8(i), "a|b\n# c\r\n[d](javascript:e) `f` <!-- g")
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		show := func(text string) (string, string) {
			quoted := bytes.Trim(marshal(t, text), `"`)
			changed := story
			changed.Exp, changed.Found = nil, nil
			word := words[int(which)%len(words)]
			if json.Unmarshal(bytes.ReplaceAll(raw, []byte(word), quoted), &changed) != nil {
				t.Skip("the word cannot stand here")
			}
			page, err := html.Render(changed.Exp, changed.Found, changed.Evidence)
			if err != nil {
				t.Fatalf("no report: %v", err)
			}
			return string(page), withoutCode(string(report.Markdown(changed.Exp, changed.Found)))
		}
		plainPage, plainText := show(harmless.Replace(text))
		page, markdown := show(text)
		if want, got := tags.FindAllString(plainPage, -1), tags.FindAllString(page, -1); !slices.Equal(want, got) {
			t.Errorf("%q for %q: %d tags, want %d: %q", text, words[int(which)%len(words)], len(got), len(want), difference(want, got))
		}
		if want, got := tags.FindAllString(plainText, -1), tags.FindAllString(markdown, -1); !slices.Equal(want, got) {
			t.Errorf("%q for %q in Markdown: %q", text, words[int(which)%len(words)], difference(want, got))
		}
	})
}

func difference(want, got []string) string {
	for i := range got {
		if i >= len(want) || got[i] != want[i] {
			return got[i]
		}
	}
	return "less"
}

// fixtures are the valid and the invalid fixtures of both languages.
func fixtures(f *testing.F) map[string][]byte {
	f.Helper()
	out := records.All(f, "valid")
	maps.Copy(out, records.All(f, "invalid"))
	return out
}

// again reads a record, writes it, reads it again, and requires equal results.
func again[T any](t *testing.T, raw []byte, read func([]byte) (*T, error)) {
	t.Helper()
	first, err := read(raw)
	if err != nil {
		return
	}
	written := marshal(t, first)
	second, err := read(written)
	if err != nil {
		t.Fatalf("an accepted record is rejected after a round trip: %v\n%s\n%s", err, raw, written)
	}
	if got := marshal(t, second); !bytes.Equal(got, written) {
		t.Errorf("the second round trip differs:\n%s\n%s", written, got)
	}
}

// Any attempt or wave from a runner is rejected, or survives a round trip.
func FuzzRecord(f *testing.F) {
	for _, raw := range fixtures(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		again(t, raw, record.NewSharing().ParseAttempt)
		again(t, raw, record.ParseWave)
	})
}

// spoken is a runner connection that sends fixed text and discards the keeper's messages.
type spoken struct{ io.Reader }

func (spoken) Write(p []byte) (int, error) { return len(p), nil }

// For any messages of a runner, its keeper writes only objects of the keeper's block and execution.
func FuzzKeeper(f *testing.F) {
	const block, executor = "w000-b0000", "pod_1"
	trials := []string{block + "-s00000", block + "-s00001"}
	attempt := func(trial string) string {
		return `{"id":"` + executor + `/` + trial + `","trial":"` + trial + `","block":"` + block +
			`","arm":"a","point":"p","startedAt":"2026-01-01T00:00:00Z"}`
	}
	f.Add([]byte(`{"started":` + attempt(trials[0]) + "}\n" + `{"attempt":` + attempt(trials[0]) + "}\n" + `{"done":true}`))
	f.Add([]byte(`{"started":` + attempt(trials[1]) + "}\n" + `{"failed":"it did"}`))
	f.Add([]byte(`{"attempt":` + attempt("../../experiment") + "}\n" + `{"stopped":"SIGTERM"}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		stored := objects{ledger.ExperimentKey: fmt.Appendf(nil, `{"format": %d}`, experiment.Format)}
		k := &keeper.Keeper{Store: stored, Block: block, Executor: executor, Trials: trials}
		_ = k.Serve(t.Context(), spoken{bytes.NewReader(said)})
		for key := range stored {
			if key != ledger.ExperimentKey && !slices.ContainsFunc(trials, func(trial string) bool {
				return key == ledger.AttemptKey(block, executor, trial) || key == ledger.StartedKey(block, executor, trial)
			}) {
				t.Errorf("it wrote %s", key)
			}
		}
	})
}

// Any policy is rejected or limits each namespace; a policy with fewer limits is never stricter.
func FuzzPolicy(f *testing.F) {
	f.Add("{nodeLabel: a=b, default: {maxNodes: 2, maxCpus: 8, maxWallClock: 4h, maxRuns: 1, exclusive: [CPUs]}, namespaces: {team: "+
		"{maxNodes: 10}}}", "team")
	f.Add("default: {maxWallClock: -1h}", "")
	f.Add("namespaces: {a: null, b: {exclusive: []}}", "b")
	written, _, err := fixture.SpecAndTemplate(scan(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, namespace string) {
		allowed, err := policy.Parse([]byte(text))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error that says nothing")
			}
			return
		}
		limits := allowed.Of(namespace)
		bound := limits.MaxNodes != nil || limits.MaxCPUs != nil || limits.MaxMemory != nil || limits.MaxWallClock != nil ||
			len(limits.Exclusive) > 0
		spec := written.DeepCopy()
		if refused := allowed.Refuses(namespace, spec); refused != "" && !bound {
			t.Errorf("refused without a limit: %s", refused)
		}
		spec.Placement.MaxNodes, spec.Placement.CPUs, spec.Budget.WallClock.Duration = math.MaxInt32, math.MaxInt32, math.MaxInt64
		if refused := allowed.Refuses(namespace, spec); refused == "" && (limits.MaxNodes != nil && *limits.MaxNodes < math.MaxInt32 ||
			limits.MaxWallClock != nil && limits.MaxWallClock.Duration < math.MaxInt64) {
			t.Errorf("%q allows everything to %q", text, namespace)
		}
		if most, full := allowed.Full(namespace, math.MaxInt32); full != (limits.MaxRuns != nil) || full && most != *limits.MaxRuns {
			t.Errorf("%q is full at %d runs: %v", text, most, full)
		}
	})
}
