package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/storetest"
)

// onEachStore runs a test on an empty store of each kind.
func onEachStore(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, url string) { test(t, open(t, url)) })
}

func open(t *testing.T, url string) store.Store {
	t.Helper()
	opened, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// written is a simulated ledger of two waves in a store.
type written struct {
	exp      *experiment.Experiment
	attempts []record.Attempt
	objects  map[string][]byte
}

func fill(t *testing.T, store store.Store) written {
	t.Helper()
	exp, err := fixture.ScanExperiment(func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Sweep = nil
		spec.Parameters = assayv1alpha1.ParameterValues{"batchSize": "1"}
		spec.Gates, spec.Predictions = spec.Gates[:1], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var waves []*record.Wave
	for number := range 2 {
		wave, err := fixture.Wave(exp, number, number*2, 2)
		if err != nil {
			t.Fatal(err)
		}
		waves = append(waves, wave)
	}
	attempts := fixture.Machine{Seed: 1, Seconds: fixture.ScanSeconds, Samples: 3}.Run(exp, waves...)
	objects, err := fixture.Objects(exp, waves, attempts)
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range objects {
		if err := store.Create(context.Background(), key, data); err != nil {
			t.Fatal(err)
		}
	}
	return written{exp, attempts, objects}
}

func TestReadWhatWasWritten(t *testing.T) {
	ctx := context.Background()
	onEachStore(t, func(t *testing.T, store store.Store) {
		want := fill(t, store)
		exp, err := ReadExperiment(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		if exp.Digest != want.exp.Digest || len(exp.Cells) != 3 {
			t.Errorf("experiment %s with %d cells", exp.Digest, len(exp.Cells))
		}
		for through, trials := range map[int]int{-1: 36, 0: 18, 1: 36, 7: 36} {
			evidence, err := ReadEvidence(ctx, store, through)
			if err != nil {
				t.Fatal(err)
			}
			if len(evidence.Attempts) != trials || len(evidence.Problems) != 0 || len(evidence.Waves) != max(1, trials/18) {
				t.Errorf("through wave %d: %d attempts, %d waves, problems %v", through, len(evidence.Attempts), len(evidence.Waves), evidence.Problems)
			}
		}
		evidence, err := ReadEvidence(ctx, store, -1)
		if err != nil {
			t.Fatal(err)
		}
		byID := map[string]record.Attempt{}
		for _, attempt := range evidence.Attempts {
			byID[attempt.ID] = attempt
		}
		for _, attempt := range want.attempts {
			got := byID[attempt.ID]
			again, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			// Of phases only the means are kept.
			for i := range attempt.Result.Phases {
				written, _ := attempt.Result.Phases[i].Mean()
				if read, samples := got.Result.Phases[i].Mean(); samples != 3 || read != written {
					t.Errorf("phase %d of %s: mean %v of %d samples, and %v of 3 was written", i, attempt.ID, read, samples, written)
				}
				attempt.Result.Phases[i].Samples = nil
			}
			written, err := json.Marshal(attempt)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(written), string(again)); diff != "" {
				t.Fatalf("attempt %s changed on its way (-written +read):\n%s", attempt.ID, diff)
			}
			sum := sha256.Sum256(want.objects[got.Source.Key])
			if got.Source.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: wrong digest of its object", got.Source.Key)
			}
		}
		if last, err := LastWave(ctx, store); err != nil || last != 1 {
			t.Errorf("last wave %d, %v", last, err)
		}
	})
}

func TestObjectsThatCannotBeUsedAreProblemsAndNeverErrors(t *testing.T) {
	ctx := context.Background()
	key := "attempts/w000-b0000/pod-w000-b0000/w000-b0000-s00000.json"
	cases := map[string]struct {
		key  string
		edit func([]byte) []byte
		says string
	}{
		"an attempt cut short": {key, func(raw []byte) []byte { return raw[:len(raw)/2] }, "truncated"},
		"an empty object":      {key, func([]byte) []byte { return nil }, "truncated"},
		"an attempt of an older schema": {key, func(raw []byte) []byte {
			return bytes.Replace(raw, []byte("attempt/v1alpha1"), []byte("attempt/v0"), 1)
		}, "schema"},
		"an attempt with a field nobody knows":     {key, func(raw []byte) []byte { return append([]byte(`{"extra":1,`), raw[1:]...) }, "extra"},
		"an attempt under another trial's key":     {"attempts/w000-b0000/pod-w000-b0000/w000-b0000-s00004.json", func(raw []byte) []byte { return raw }, "moved or changed"},
		"an attempt under another block's key":     {"attempts/w000-b0001/pod-w000-b0000/w000-b0000-s00000.json", func(raw []byte) []byte { return raw }, "moved or changed"},
		"an object that somebody left":             {"attempts/notes.txt", func([]byte) []byte { return []byte("hello") }, "the key is not"},
		"an object beside the attempts of a block": {"attempts/w000-b0000/pod/core.1234", func([]byte) []byte { return nil }, "the key is not"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, store store.Store) {
				want := fill(t, store)
				if err := store.Replace(ctx, c.key, c.edit(want.objects[key])); err != nil {
					t.Fatal(err)
				}
				evidence, err := ReadEvidence(ctx, store, -1)
				if err != nil {
					t.Fatal(err)
				}
				if len(evidence.Problems) != 1 || evidence.Problems[0].Key != c.key || !strings.Contains(evidence.Problems[0].Reason, c.says) {
					t.Errorf("problems %+v, want one of %s that says %q", evidence.Problems, c.key, c.says)
				}
				if _, replaced := want.objects[c.key]; replaced != (len(evidence.Attempts) == len(want.attempts)-1) {
					t.Errorf("%d of %d attempts read", len(evidence.Attempts), len(want.attempts))
				}
			})
		})
	}
}

// littered is a bucket with a key below a prefix that no folder can have.
type littered struct {
	store.Store
	prefix, key string
}

func (l littered) List(ctx context.Context, prefix string) ([]string, error) {
	keys, err := l.Store.List(ctx, prefix)
	if prefix == l.prefix {
		keys = append(keys, l.key)
	}
	return keys, err
}

func TestAKeyThatIsNoPathIsAProblemAndNeverAnError(t *testing.T) {
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := fill(t, store)
	for prefix, keys := range map[string][]string{
		AttemptsPrefix: {"attempts/", "attempts/w000-b0000/", "attempts//a.json", "attempts/../experiment.json", "attempts/a\x00",
			"attempts/a\nb", "attempts/w000-b0000/pod\r/w000-b0000-s00000.json"},
		"started/":  {"started/", "started/a/"},
		"problems/": {"problems/", "problems//a"},
	} {
		for _, key := range keys {
			evidence, err := ReadEvidence(t.Context(), littered{store, prefix, key}, -1)
			if err != nil {
				t.Errorf("%q fails the evidence: %v", key, err)
				continue
			}
			if len(evidence.Attempts) != len(want.attempts) || len(evidence.Problems) != 1 || evidence.Problems[0].Key != key {
				t.Errorf("%q: %d of %d attempts, problems %+v", key, len(evidence.Attempts), len(want.attempts), evidence.Problems)
			}
		}
	}
}

// Who may write attempts may give one a name of several lines, of which one looks like that of another attempt.
func TestAListOfSumsSaysOfEachAttemptWhatItIs(t *testing.T) {
	folder := t.TempDir()
	store, err := store.Open(t.Context(), store.FolderURL(folder), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := fill(t, store)
	const of = "attempts/w000-b0001/pod-w000-b0001/w000-b0001-s00002.json"
	for _, before := range []string{"attempts/x\n", "attempts/w000-b0001/x\n", "attempts/0\n"} {
		name := filepath.Join(folder, before+strings.Repeat("f", 64)+"  "+of)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	evidence, err := ReadEvidence(t.Context(), store, 0)
	if err != nil || len(evidence.Problems) != 3 {
		t.Fatalf("%v, problems %+v", err, evidence.Problems)
	}
	listed := 0
	if err := eachSealed(selection.Seal(evidence, 0), func(sum, key []byte) {
		if listed++; string(sum) != record.SHA256(want.objects[string(key)]) {
			t.Errorf("%q has sum %s", key, sum)
		}
	}); err != nil || listed != len(evidence.Attempts) {
		t.Errorf("%d lines of %d attempts, %v", listed, len(evidence.Attempts), err)
	}
}

func TestAKeyThatIsNoPathKeepsNoAnalysisFromBeingWritten(t *testing.T) {
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "tables/", "/analysis.json", "../x", "a\x00"} {
		key := AnalysisPrefix(0) + name
		derived, err := ReadDerived(t.Context(), littered{store, AnalysisPrefix(0), key}, AnalysisPrefix(0))
		if err != nil {
			t.Errorf("%q fails every analysis: %v", key, err)
			continue
		}
		if err := derived.Replace(t.Context(), AnalysisKey(0), []byte("{}")); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestAWaveThatCannotBeReadIsAProblem(t *testing.T) {
	ctx := context.Background()
	onEachStore(t, func(t *testing.T, store store.Store) {
		want := fill(t, store)
		if err := store.Replace(ctx, "waves/001/wave.json", want.objects["waves/000/wave.json"]); err != nil {
			t.Fatal(err)
		}
		waves, problems, err := ReadWaves(ctx, store, -1)
		if err != nil || len(waves) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Reason, "belongs at waves/000/wave.json") {
			t.Errorf("%d waves, problems %+v, %v", len(waves), problems, err)
		}
	})
}

// failing is a store that loses its connection while attempts are read.
type failing struct{ store.Store }

func (f failing) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, AttemptsPrefix) {
		return nil, store.ErrUnreachable
	}
	return f.Store.Get(ctx, key)
}

func TestHalfTheEvidenceIsNoEvidence(t *testing.T) {
	onEachStore(t, func(t *testing.T, s store.Store) {
		fill(t, s)
		if _, err := ReadEvidence(context.Background(), failing{s}, -1); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("error %v, want ErrUnreachable", err)
		}
	})
}

func TestReadExperimentRefuses(t *testing.T) {
	ctx := context.Background()
	replace := func(old, with string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, with, 1) }
	}
	cases := map[string]struct {
		edit func(string) string
		says string
	}{
		"a changed gate, seed or anything else": {replace(`"seed":1`, `"seed":2`), "changed after it was frozen"},
		"another schema":                        {replace("experiment/v1alpha1", "experiment/v9"), `"assay.dev/experiment/v9"`},
		"an unknown field":                      {replace(`{"schema"`, `{"extra":1,"schema"`), "extra"},
		"half an object":                        {func(s string) string { return s[:len(s)/2] }, "unexpected end"},
		"no points":                             {replace(`"points":[{"key":"","parameters":{}}]`, `"points":[]`), "must not be empty"},
		"no uid":                                {replace(`"uid":"5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"`, `"uid":""`), "run.uid"},
		"a gate without severity":               {replace(`"severity":"Blocking"`, `"severity":""`), "spec.gates[0].severity"},
		"a gate that compares nothing":          {replace(`"op":"ParityEqual"`, `"op":"Equal"`), `spec.gates[0].op: invalid value "Equal"`},
		"a metric without statistic":            {replace(`"statistic":"median"`, `"statistic":""`), "template.metrics[0].statistic"},
		"two baselines":                         {replace(`{"name":"fused-naive","baseline":false}`, `{"name":"fused-naive","baseline":true}`), "arms[1]"},
		"an arm too few":                        {replace(`{"name":"fused-naive","baseline":false},`, ``), "arms has 2 arms and spec.arms has 3"},
		"a null arm that nobody asked for":      {replace(`{"name":"fused-m4r","baseline":false}`, `{"name":"fused-m4r","baseline":false,"null":true}`), "arms[2] is"},
		"a null arm that is missing":            {replace(`"seed":1`, `"seed":1,"nullArm":true`), "with design.nullArm one arm more"},
		"a search without loads": {
			replace(`"design":`, `"search":{"maximize":"throughput","over":{"axis":"batchSize","low":"1","high":"2"},"subjectTo":[]},"design":`),
			"points[0] has no value of batchSize",
		},
		"a confidence that is none": {replace(`"confidence":"0.95"`, `"confidence":"95"`), "spec.design.confidence"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, store store.Store) {
				raw := string(fill(t, store).objects[ExperimentKey])
				edited := c.edit(raw)
				if edited == raw {
					t.Fatal("the edit changed nothing")
				}
				if err := store.Replace(ctx, ExperimentKey, []byte(edited)); err != nil {
					t.Fatal(err)
				}
				_, err := ReadExperiment(ctx, store)
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), ExperimentKey) {
					t.Errorf("error %v, want one that says %q", err, c.says)
				}
			})
		})
	}
}

func TestReadExperimentOfAnEmptyStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, s store.Store) {
		if _, err := ReadExperiment(context.Background(), s); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
	})
}
