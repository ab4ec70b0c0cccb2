package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

func TestProbes_FirstFailureOfWaveIsQuoted(t *testing.T) {
	succeeded := `{"trial": "t", "arm": "old", "outcome": "Succeeded"}`
	failed := `{"trial": "w000-b0000-s00001", "arm": "new", "outcome": "Malformed", "message": "no \u001b result"}`
	const said = `a trial without a usable result ("w000-b0000-s00001" of arm "new"): "no \x1b result"`
	for name, c := range map[string]struct {
		attempts []string
		warmup   bool
		want     string
	}{
		"no attempt":                        {nil, false, ""},
		"successes":                         {[]string{succeeded, succeeded}, false, ""},
		"a failure after a success":         {[]string{succeeded, failed}, false, said},
		"a failure of a warm-up":            {[]string{failed}, true, ""},
		"an object that is no attempt":      {[]string{"[]", "{}", "x"}, false, ""},
		"an attempt that is too large":      {[]string{`{"outcome": "Failed", "message": "` + strings.Repeat("x", 2<<20) + `"}`}, false, ""},
		"a failure without a message":       {[]string{`{"outcome": "TimedOut"}`}, false, `a trial without a usable result ("" of arm ""): "TimedOut"`},
		"a failure behind the first probes": {append(many(succeeded, probesAtOnce), failed), false, said},
	} {
		t.Run(name, func(t *testing.T) {
			store, known := newCountingStore(t), &progress{}
			wave := testWave(0, 0, 1, 100)
			for i, raw := range c.attempts {
				block := wave.Blocks[0].ID
				if err := store.Create(t.Context(), ledger.AttemptKey(block, "pod", record.TrialName(block, i, c.warmup)), []byte(raw)); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			for range 3 { // Reconciles.
				if _, _, err := known.count(t.Context(), store, wave); err != nil {
					t.Fatal(err)
				}
				var err error
				if got, err = known.failing(t.Context(), store, nil, wave); err != nil {
					t.Fatal(err)
				}
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func many(text string, count int) (out []string) {
	for range count {
		out = append(out, text)
	}
	return out
}

func TestProbes_AttemptsOfWaveAreReadOnceUpToBound(t *testing.T) {
	store, known := newCountingStore(t), &progress{}
	wave := testWave(0, 0, 2, 100)
	for i := range 100 {
		block := wave.Blocks[0].ID
		key := ledger.AttemptKey(block, "pod", record.TrialName(block, i, false))
		if err := store.Create(t.Context(), key, []byte(`{"outcome": "Succeeded"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for pass := range 20 {
		if _, _, err := known.count(t.Context(), store, wave); err != nil {
			t.Fatal(err)
		}
		before := known.probes
		if _, err := known.failing(t.Context(), store, nil, wave); err != nil {
			t.Fatal(err)
		}
		if want := min((pass+1)*probesAtOnce, probesPerWave); len(known.probes.read) != want || len(before.read) > want {
			t.Fatalf("pass %d: %d attempts are read, want %d", pass, len(known.probes.read), want)
		}
	}
	for block := range 3 { // The next wave begins anew.
		key := fmt.Sprintf("attempts/w001-b%04d/pod/w001-b%04d-s00000.json", block, block)
		if err := store.Create(t.Context(), key, []byte(`{"outcome": "Failed", "message": "m"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := known.count(t.Context(), store, testWave(1, 0, 3, 2)); err != nil {
		t.Fatal(err)
	}
	if got, err := known.failing(t.Context(), store, nil, wave); err != nil || !strings.HasSuffix(got, `: "m"`) {
		t.Errorf("%q, %v", got, err)
	}
}

// A result that the analysis will reject is reported while the wave runs.
func TestProbes_ResultThatCannotBeUsedIsQuoted(t *testing.T) {
	exp, err := fixture.PairExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	reports := func(metric record.Metric) func(*record.Attempt) {
		return func(a *record.Attempt) { a.Result.Metrics = map[string]*record.Metric{"time": &metric} }
	}
	for name, c := range map[string]struct {
		spoil func(*record.Attempt)
		want  string
	}{
		"a usable result": {func(*record.Attempt) {}, ""},
		"another unit":    {reports(record.Metric{Unit: "ms", Value: ptr.To(1.0)}), `metric time has unit \"ms\" and the template has \"s\"`},
		"a negative time": {reports(record.Metric{Unit: "s", Value: ptr.To(-1.0)}), "-1 s is a negative time"},
		"another metric": {func(a *record.Attempt) {
			a.Result.Metrics = map[string]*record.Metric{"latency": {Unit: "s", Value: ptr.To(1.0)}}
		}, "metric time is absent"},
		"a histogram":                  {reports(record.Metric{Unit: "ms", Histogram: &record.Histogram{}}), ""},
		"a year that JSON cannot hold": {func(a *record.Attempt) { a.StartedAt = time.Date(9500, 1, 1, 0, 0, 0, 0, time.UTC) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store, known := newCountingStore(t), &progress{}
			attempts := fixture.NewWorld(fixture.Scenarios()[0], 0, 1, 1).Run(exp, wave)
			for i := range attempts {
				c.spoil(&attempts[i])
			}
			objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
			if err != nil {
				t.Fatal(err)
			}
			for key, raw := range objects {
				if err := store.Create(t.Context(), key, raw); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := known.count(t.Context(), store, wave); err != nil {
				t.Fatal(err)
			}
			got, err := known.failing(t.Context(), store, exp, wave)
			if err != nil || !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q (%v)", got, c.want, err)
			}
		})
	}
}
