// Package folderledger simulates a run whose ledger is a folder, for tests that spoil its objects.
package folderledger

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// Edit changes the experiment, and the digest that names it everywhere.
func (l *Ledger) Edit(from, to string) {
	l.Replace("experiment.json", from, to)
	var frozen struct{ Digest string }
	raw := l.Read("experiment.json")
	if json.Unmarshal(raw, &frozen) != nil {
		return // It cannot be read, and says so.
	}
	_, err := l.Open()
	if err == nil {
		return
	}
	said := regexp.MustCompile(`the content has (sha256:[0-9a-f]{64})`).FindStringSubmatch(err.Error())
	if said == nil {
		return // Something else is wrong with it.
	}
	if err := filepath.WalkDir(l.Folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte(frozen.Digest), []byte(said[1])), 0o644)
	}); err != nil {
		l.T.Fatal(err)
	}
}

// ByHand removes the plan from the experiment, as in a ledger that is being written by hand.
func (l *Ledger) ByHand() {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(l.Read(ledger.ExperimentKey), &fields); err != nil {
		l.T.Fatal(err)
	}
	delete(fields, "plan")
	raw, err := json.Marshal(fields)
	if err != nil {
		l.T.Fatal(err)
	}
	l.Write(ledger.ExperimentKey, raw)
	l.Edit(`"schema"`, `"schema"`)
}

// Open reads the experiment as assay analyze does.
func (l *Ledger) Open() (store.Store, error) {
	store, err := store.Open(context.Background(), store.FolderURL(l.Folder), store.Options{})
	if err != nil {
		l.T.Fatal(err)
	}
	_, err = ledger.ReadExperiment(context.Background(), store)
	return store, err
}

// Ledger is a simulated run in a folder, ready to be spoilt.
type Ledger struct {
	T      *testing.T
	Folder string
}

// sound has the objects of New, which every test copies into its own folder.
var sound = sync.OnceValues(func() (map[string][]byte, error) { return simulate(4, fixture.GainAt8("1.5")) })

// New returns a ledger of four blocks with one gate on a gain.
func New(t *testing.T) *Ledger {
	t.Helper()
	return write(t)(sound())
}

// Of returns a ledger with a number of blocks and the given gates. Without blocks it has the experiment alone.
func Of(t *testing.T, blocks int, asked ...assayv1alpha1.Gate) *Ledger {
	t.Helper()
	return write(t)(simulate(blocks, asked...))
}

func simulate(blocks int, asked ...assayv1alpha1.Gate) (map[string][]byte, error) {
	exp, err := fixture.ScanExperiment(fixture.WithGates(asked...))
	if err != nil {
		return nil, err
	}
	if blocks == 0 {
		return fixture.Objects(exp, nil, nil)
	}
	wave, err := fixture.Wave(exp, 0, 0, blocks)
	if err != nil {
		return nil, err
	}
	attempts := fixture.Machine{Seed: 1, Noise: fixture.QuietNoise, Seconds: fixture.ScanSeconds}.Run(exp, wave)
	return fixture.Objects(exp, []*record.Wave{wave}, attempts)
}

func write(t *testing.T) func(objects map[string][]byte, err error) *Ledger {
	t.Helper()
	return func(objects map[string][]byte, err error) *Ledger {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		l := &Ledger{t, t.TempDir()}
		for key, data := range objects {
			l.Write(key, data)
		}
		return l
	}
}

// Write writes an object.
func (l *Ledger) Write(key string, data []byte) {
	path := filepath.Join(l.Folder, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.T.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		l.T.Fatal(err)
	}
}

// Read returns the content of an object.
func (l *Ledger) Read(key string) []byte {
	data, err := os.ReadFile(filepath.Join(l.Folder, filepath.FromSlash(key)))
	if err != nil {
		l.T.Fatal(err)
	}
	return data
}

// Remove removes an object.
func (l *Ledger) Remove(key string) {
	if err := os.Remove(filepath.Join(l.Folder, filepath.FromSlash(key))); err != nil {
		l.T.Fatal(err)
	}
}

// Replace changes a text in an object; the text must be there.
func (l *Ledger) Replace(key, from, to string) {
	data := l.Read(key)
	if !bytes.Contains(data, []byte(from)) {
		l.T.Fatalf("%s has no %q", key, from)
	}
	l.Write(key, bytes.ReplaceAll(data, []byte(from), []byte(to)))
}

// Analyze judges the ledger, and leaves the seal as assay analyze --write does.
func (l *Ledger) Analyze() *analysis.Analysis {
	ctx := context.Background()
	store, err := store.Open(ctx, store.FolderURL(l.Folder), store.Options{})
	if err != nil {
		l.T.Fatal(err)
	}
	exp, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		l.T.Fatal(err)
	}
	evidence, err := ledger.ReadEvidence(ctx, store, 0)
	if err != nil {
		l.T.Fatal(err)
	}
	l.Write(ledger.SealKey(0), selection.Seal(evidence, 0))
	return fixture.MustValidate(analyze.Evidence(exp, evidence, 0))
}

// Attempts are the keys of the measured trials.
func (l *Ledger) Attempts() []string {
	paths, err := filepath.Glob(filepath.Join(l.Folder, "attempts", "*", "*", "*-s*.json"))
	if err != nil {
		l.T.Fatal(err)
	}
	for i, path := range paths {
		key, err := filepath.Rel(l.Folder, path)
		if err != nil {
			l.T.Fatal(err)
		}
		paths[i] = filepath.ToSlash(key)
	}
	return paths
}
