package state

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/zeebo/blake3"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// Result is the state of a published result.
type Result struct {
	// Folder is where it is, below the root.
	Folder string
	// Stale are the reasons for which it is not of the current tree. Without an archive of its ledger that is unknown, which is a reason.
	Stale []string
	// Archived reports whether its ledger lies beside it, and Bytes is the size of the archive.
	Archived bool
	Bytes    int64
	// Measured is the begin of its first attempt, and Took the time until the end of the last; zero without an archive.
	Measured time.Time
	Took     time.Duration
}

// current is the tree that results are compared with.
type current struct {
	root, bin string
	templates *manifest.Set
	digests   map[string]string
}

// ReadResults compares the published results of a checkout with its run files, its templates and the programs in bin, a folder that make
// build fills with the profile that results are measured with. With an empty bin programs are not compared.
func ReadResults(ctx context.Context, root, bin string) ([]Result, error) {
	templates, err := manifest.Read(filepath.Join(root, "charts", "assay", "files", "benchmarktemplates"))
	if err != nil {
		return nil, err
	}
	tree := current{root: root, bin: bin, templates: templates, digests: map[string]string{}}
	reports, err := filepath.Glob(filepath.Join(root, "workflows", "studies", "*", "results", "*", "*", "report.md"))
	if err != nil || len(reports) == 0 {
		return nil, fmt.Errorf("no result below %s (%w)", root, err)
	}
	var out []Result
	for _, report := range reports {
		result, err := tree.compare(ctx, filepath.Dir(report))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Dir(report), err)
		}
		if result.Folder, err = filepath.Rel(root, filepath.Dir(report)); err != nil {
			return nil, err
		}
		out = append(out, result)
	}
	return out, nil
}

// compare reads the ledger of a result.
func (c current) compare(ctx context.Context, folder string) (Result, error) {
	archive, err := filepath.Abs(filepath.Join(folder, "ledger.tar.zst"))
	if err != nil {
		return Result{}, err
	}
	info, err := os.Stat(archive)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{Stale: []string{"its ledger is not in the tree"}}, nil
	}
	if err != nil {
		return Result{}, err
	}
	opened, err := store.Open(ctx, store.FolderURL(archive), store.Options{})
	if err != nil {
		return Result{}, err
	}
	frozen, err := ledger.ReadExperiment(ctx, opened)
	if err != nil {
		return Result{}, err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, opened, -1)
	if err != nil {
		return Result{}, err
	}
	out := Result{Archived: true, Bytes: info.Size()}
	out.Measured, out.Took = period(attempts)
	changed, err := c.changed(folder, frozen)
	if err != nil {
		return Result{}, err
	}
	if out.Stale = changed; c.bin != "" {
		out.Stale = append(out.Stale, c.programs(attempts)...)
	}
	return out, nil
}

// period returns the begin of the first attempt and the time until the end of the last.
func period(attempts []record.Attempt) (begin time.Time, took time.Duration) {
	var end time.Time
	for _, attempt := range attempts {
		if begin.IsZero() || attempt.StartedAt.Before(begin) {
			begin = attempt.StartedAt
		}
		if ended := attempt.StartedAt.Add(time.Duration(attempt.DurationSeconds * float64(time.Second))); ended.After(end) {
			end = ended
		}
	}
	return begin, end.Sub(begin)
}

// changed are the parts of an experiment that the run file and the template would make differently today.
func (c current) changed(folder string, frozen *experiment.Experiment) ([]string, error) {
	file := filepath.Join(folder, "..", "..", "..", filepath.Base(folder)+".yaml")
	runs, err := manifest.Read(file)
	if err != nil {
		return []string{"its run file is missing or invalid: " + err.Error()}, nil
	}
	var out []string
	for i := range runs.Runs {
		run := &runs.Runs[i]
		if len(runs.Runs) > 1 && run.Name != frozen.Run.Name {
			continue
		}
		set := runs
		if run.Spec.Template == nil && len(runs.Templates) == 0 {
			set = c.templates
		}
		template, err := set.Template(run)
		if err != nil {
			return nil, err
		}
		now, err := experiment.Freeze(frozen.Run, run.Spec, *template)
		if err != nil {
			return []string{"its run file is invalid: " + err.Error()}, nil
		}
		for _, part := range []struct {
			what        string
			before, now json.RawMessage
			defaulted   func(json.RawMessage) (any, error)
		}{
			{"the run file has changed", frozen.Spec, now.Spec, as(experiment.DefaultRun)},
			{"the template has changed", frozen.Template, now.Template, as(experiment.DefaultTemplate)},
		} {
			same, err := equal(part.before, part.now, part.defaulted)
			if err != nil {
				return nil, err
			}
			if !same {
				out = append(out, part.what)
			}
		}
	}
	return out, nil
}

// as reads an object as its type, sets the defaults of fields that it was written without, and removes texts that change no measurement.
func as[T any](setDefaults func(*T)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var typed T
		if err := json.Unmarshal(raw, &typed); err != nil {
			return nil, err
		}
		setDefaults(&typed)
		written, err := json.Marshal(typed)
		if err != nil {
			return nil, err
		}
		var out any
		err = json.Unmarshal(written, &out)
		return withoutDescriptions(out), err
	}
}

func withoutDescriptions(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "description")
		for _, inner := range value {
			withoutDescriptions(inner)
		}
	case []any:
		for _, inner := range value {
			withoutDescriptions(inner)
		}
	}
	return value
}

// equal compares two objects as a type reads them, so that the order and the form of fields do not matter.
func equal(a, b json.RawMessage, read func(json.RawMessage) (any, error)) (bool, error) {
	was, err := read(a)
	if err != nil {
		return false, err
	}
	is, err := read(b)
	if err != nil {
		return false, err
	}
	return reflect.DeepEqual(was, is), nil
}

// programs are the programs of attempts that differ from those of the current build.
func (c current) programs(attempts []record.Attempt) []string {
	differ := map[string]bool{}
	for _, attempt := range attempts {
		digest, _ := attempt.Environment.Soft["programDigest"].(string)
		if len(attempt.Argv) == 0 || digest == "" {
			differ["no digest of its program is recorded"] = true
			continue
		}
		name := filepath.Base(attempt.Argv[0])
		switch now, err := c.digest(name); {
		case err != nil:
			differ["the current build has no "+name] = true
		case now != digest:
			differ["the program "+name+" has changed"] = true
		}
	}
	var out []string
	for reason := range differ {
		out = append(out, reason)
	}
	slices.Sort(out)
	return out
}

// digest is that of a program of the current build, as the runner records it.
func (c current) digest(name string) (string, error) {
	if known, ok := c.digests[name]; ok {
		return known, nil
	}
	file, err := os.Open(filepath.Join(c.bin, name))
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := blake3.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	c.digests[name] = "blake3:" + hex.EncodeToString(hash.Sum(nil))
	return c.digests[name], nil
}
