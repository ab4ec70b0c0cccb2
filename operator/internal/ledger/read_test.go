package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/storetest"
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

func TestReadEvidence_RoundTrip(t *testing.T) {
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
		for through, trials := range map[int]int{-1: 48, 0: 24, 1: 48, 7: 48} {
			evidence, err := ReadEvidence(ctx, store, through)
			if err != nil {
				t.Fatal(err)
			}
			if len(evidence.Attempts) != trials || len(evidence.Problems) != 0 || len(evidence.Waves) != max(1, trials/24) {
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
			// Phases retain only their means.
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

func TestReadAttempts_InvalidObjectIsAProblem(t *testing.T) {
	ctx := context.Background()
	key := "attempts/w000-b0000/pod-w000-b0000/w000-b0000-s00000.json"
	cases := map[string]struct {
		key  string
		edit func([]byte) []byte
		says string
	}{
		"a truncated attempt": {key, func(raw []byte) []byte { return raw[:len(raw)/2] }, "truncated"},
		"an empty object":     {key, func([]byte) []byte { return nil }, "truncated"},
		"an attempt of an older schema": {key, func(raw []byte) []byte {
			return bytes.Replace(raw, []byte("attempt/v1alpha1"), []byte("attempt/v0"), 1)
		}, "schema"},
		"an attempt with an unknown field":         {key, func(raw []byte) []byte { return append([]byte(`{"extra":1,`), raw[1:]...) }, "extra"},
		"an attempt under another trial's key":     {"attempts/w000-b0000/pod-w000-b0000/w000-b0000-s00004.json", func(raw []byte) []byte { return raw }, "moved or changed"},
		"an attempt under another block's key":     {"attempts/w000-b0001/pod-w000-b0000/w000-b0000-s00000.json", func(raw []byte) []byte { return raw }, "moved or changed"},
		"a foreign object":                         {"attempts/notes.txt", func([]byte) []byte { return []byte("hello") }, "the key is not"},
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
					t.Errorf("problems %+v, want one of %s that contains %q", evidence.Problems, c.key, c.says)
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

func TestReadEvidence_InvalidKeyIsAProblem(t *testing.T) {
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

// A pod that writes attempts may give one a name of several lines, one of which resembles the line of another attempt.
func TestReadSeals_MultiLineNamesForgeNoSum(t *testing.T) {
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

func TestDerived_InvalidKeyDoesNotBlockTheAnalysis(t *testing.T) {
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

func TestReadWaves_MisplacedPlanIsAProblem(t *testing.T) {
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

// failing is a store that becomes unreachable while attempts are read.
type failing struct{ store.Store }

func (f failing) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, AttemptsPrefix) {
		return nil, store.ErrUnreachable
	}
	return f.Store.Get(ctx, key)
}

func TestReadEvidence_UnreachableStoreIsAnError(t *testing.T) {
	onEachStore(t, func(t *testing.T, s store.Store) {
		fill(t, s)
		if _, err := ReadEvidence(context.Background(), failing{s}, -1); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("error %v, want ErrUnreachable", err)
		}
	})
}

// outages is a store whose attempts fail to be read until the end of the current outage on a simulated clock. An outage begins once as
// many reads are in progress as ReadEvidence starts concurrently, so that it fails all of them.
type outages struct {
	store.Store
	mutex    sync.Mutex
	now      time.Time
	until    time.Time
	lasts    time.Duration
	waiting  int
	together chan struct{}
	retries  int
}

func (o *outages) Get(ctx context.Context, key string) ([]byte, error) {
	if !strings.HasPrefix(key, AttemptsPrefix) {
		return o.Store.Get(ctx, key)
	}
	o.mutex.Lock()
	if o.waiting++; o.waiting == readers {
		o.until = o.now.Add(o.lasts)
		close(o.together)
	}
	o.mutex.Unlock()
	select {
	case <-o.together:
	case <-time.After(10 * time.Second):
		return nil, fmt.Errorf("%d attempts are not read concurrently", readers)
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.now.Before(o.until) {
		return nil, store.ErrUnreachable
	}
	return o.Store.Get(ctx, key)
}

// retrier returns a Retrier on the simulated clock, which each pause advances.
func (o *outages) retrier(budget time.Duration) *store.Retrier {
	return &store.Retrier{
		Budget: budget,
		Pause:  func(int) time.Duration { return time.Minute },
		Now: func() time.Time {
			o.mutex.Lock()
			defer o.mutex.Unlock()
			return o.now
		},
		Wait: func(_ context.Context, pause time.Duration) error {
			o.mutex.Lock()
			defer o.mutex.Unlock()
			o.now, o.retries = o.now.Add(pause), o.retries+1
			return nil
		},
		Log: func(string) {},
	}
}

// An outage interrupts all concurrent reads at once. The evidence is complete after it, or the error states that the store is unreachable.
func TestReadEvidence_OutageOfConcurrentReads(t *testing.T) {
	s := open(t, store.FolderURL(t.TempDir()))
	fill(t, s)
	want, err := ReadEvidence(t.Context(), s, -1)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		lasts time.Duration
		fails string
	}{
		"within the retry budget": {4 * time.Minute, ""},
		"beyond the retry budget": {1000 * time.Hour, "tried "},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
			interrupted := &outages{Store: s, now: began, lasts: tc.lasts, together: make(chan struct{})}
			got, err := ReadEvidence(t.Context(), store.Patient(interrupted, interrupted.retrier(10*time.Hour)), -1)
			if tc.fails != "" {
				if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), tc.fails) || got.Attempts != nil {
					t.Errorf("%d attempts, error %v, want ErrUnreachable that contains %q", len(got.Attempts), err, tc.fails)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d attempts, %d problems, %v, want the %d attempts read without an outage", len(got.Attempts), len(got.Problems),
					err, len(want.Attempts))
			}
			if interrupted.retries < int(tc.lasts/time.Minute) {
				t.Errorf("%d retries: the outage interrupted no read", interrupted.retries)
			}
		})
	}
}

func TestReadExperiment_InvalidObjectIsAnError(t *testing.T) {
	ctx := context.Background()
	replace := func(old, with string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, with, 1) }
	}
	cases := map[string]struct {
		edit func(string) string
		says string
	}{
		"a change after freezing":      {replace(`"seed":1`, `"seed":2`), "changed after it was frozen"},
		"another schema":               {replace("experiment/v1alpha1", "experiment/v9"), `"assay.dev/experiment/v9"`},
		"an unknown format":            {replace(`"format":1`, `"format":7`), "invalid format of the ledger: found 7, allowed 1"},
		"no format":                    {replace(`"format":1,`, ``), "invalid format of the ledger: found none, allowed 1"},
		"an unknown field":             {replace(`"schema"`, `"extra":1,"schema"`), "extra"},
		"a truncated object":           {func(s string) string { return s[:len(s)/2] }, "unexpected end"},
		"empty points":                 {replace(`"points":[{"key":"","parameters":{}}]`, `"points":[]`), "must not be empty"},
		"a missing uid":                {replace(`"uid":"5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"`, `"uid":""`), "run.uid"},
		"a gate without severity":      {replace(`"severity":"Blocking"`, `"severity":""`), "spec.gates[0].severity"},
		"a gate without a comparison":  {replace(`"op":"ParityEqual"`, `"op":"Equal"`), `spec.gates[0].op: invalid value "Equal"`},
		"a metric without a statistic": {replace(`"statistic":"median"`, `"statistic":""`), "template.metrics[0].statistic"},
		"two baselines":                {replace(`{"name":"fused-naive","baseline":false}`, `{"name":"fused-naive","baseline":true}`), "arms[1]"},
		"a missing arm":                {replace(`{"name":"fused-naive","baseline":false},`, ``), "arms has 2 arms and spec.arms has 3"},
		"an unexpected null arm":       {replace(`{"name":"fused-m4r","baseline":false}`, `{"name":"fused-m4r","baseline":false,"null":true}`), "arms[2] is"},
		"a missing null arm":           {replace(`"seed":1`, `"seed":1,"nullArm":true`), "with design.nullArm one arm more"},
		"a search without loads": {
			replace(`"design":`, `"search":{"maximize":"throughput","over":{"axis":"batchSize","low":"1","high":"2"},"subjectTo":[]},"design":`),
			"points[0] has no value of batchSize",
		},
		"an invalid confidence": {replace(`"confidence":"0.95"`, `"confidence":"95"`), "spec.design.confidence"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, store store.Store) {
				raw := string(fill(t, store).objects[ExperimentKey])
				edited := c.edit(raw)
				if edited == raw {
					t.Fatal("the edit has no effect")
				}
				if err := store.Replace(ctx, ExperimentKey, []byte(edited)); err != nil {
					t.Fatal(err)
				}
				_, err := ReadExperiment(ctx, store)
				checked, rejects := CheckFormat(ctx, store), strings.Contains(fmt.Sprint(err), "invalid format")
				if (checked != nil) != rejects && json.Valid([]byte(edited)) {
					t.Errorf("CheckFormat: %v", checked)
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), ExperimentKey) {
					t.Errorf("error %v, want one that contains %q", err, c.says)
				}
			})
		})
	}
}

func TestReadExperiment_EmptyStoreIsNotFound(t *testing.T) {
	onEachStore(t, func(t *testing.T, s store.Store) {
		if _, err := ReadExperiment(context.Background(), s); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
	})
}
