package ledger

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/util/workqueue"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// readers is how many objects are fetched at once: object stores answer in milliseconds, so one at a time would take
// minutes for ten thousand attempts.
const readers = 16

var (
	waveKey    = regexp.MustCompile(`^waves/(` + record.WaveForm + `)/wave\.json$`)
	attemptKey = regexp.MustCompile(`^attempts/(` + record.BlockForm + `)/([^/]+)/(` + record.TrialForm + `)\.json$`)
)

// ReadExperiment reads the frozen experiment and checks that it is what its digest says.
func ReadExperiment(ctx context.Context, store store.Store) (*experiment.Experiment, error) {
	raw, err := store.Get(ctx, ExperimentKey)
	if err != nil {
		return nil, err
	}
	frozen, err := experiment.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", ExperimentKey, store.URL(), err)
	}
	return frozen, nil
}

// ReadWaves reads the plans of the waves up to and including through; a negative through means all of them.
func ReadWaves(ctx context.Context, store store.Store, through int) ([]record.Wave, []record.Problem, error) {
	keys, err := store.List(ctx, "waves/")
	if err != nil {
		return nil, nil, err
	}
	keys = keep(keys, waveKey, through)
	return readAll(ctx, store, keys, parseWave)
}

func parseWave(key string, raw []byte) (*record.Wave, error) {
	wave, err := record.ParseWave(raw)
	if err == nil && WaveKey(wave.Wave) != key {
		err = fmt.Errorf("it is the plan of wave %d, which belongs at %s", wave.Wave, WaveKey(wave.Wave))
	}
	return wave, err
}

// ReadAttempts reads the attempts of the waves up to and including through; a negative through means all of them. An
// object that is no attempt, or not the one its key says, becomes a problem and never an error.
func ReadAttempts(ctx context.Context, store store.Store, through int) ([]record.Attempt, []record.Problem, error) {
	keys, err := store.List(ctx, AttemptsPrefix)
	if err != nil {
		return nil, nil, err
	}
	keys = keep(keys, attemptKey, through)
	sharing := record.NewSharing()
	parse := func(key string, raw []byte) (*record.Attempt, error) { return parseAttempt(sharing, key, raw) }
	attempts, problems, err := readAll(ctx, store, keys, parse)
	if err != nil {
		return nil, nil, err
	}
	// Afterwards: what is written over from here on was read before.
	first, err := asWritten(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	over := slices.DeleteFunc(keys, func(key string) bool { return !first.over(key) })
	if len(over) == 0 {
		return attempts, problems, nil
	}
	again, more, err := readAll(ctx, first, over, parse)
	if err != nil {
		return nil, nil, err
	}
	attempts = append(slices.DeleteFunc(attempts, func(a record.Attempt) bool { return first.over(a.Source.Key) }), again...)
	slices.SortFunc(attempts, func(a, b record.Attempt) int { return record.CompareNames(a.Source.Key, b.Source.Key) })
	problems = append(slices.DeleteFunc(problems, func(p record.Problem) bool { return first.over(p.Key) }), more...)
	for _, key := range over {
		problems = append(problems, first.problem(key))
	}
	return attempts, problems, nil
}

// EachAttempt visits the attempts that ReadAttempts would read, of every wave and in the order of their keys, with whatever is in them:
// each as it was written first.
func EachAttempt(ctx context.Context, store store.Store, visit func(key string, raw []byte) error) error {
	keys, err := store.List(ctx, AttemptsPrefix)
	if err != nil {
		return err
	}
	keys = matching(keys, attemptKey)
	first, err := asWritten(ctx, store)
	if err != nil {
		return err
	}
	for _, key := range keys {
		raw, err := first.Get(ctx, key)
		if err != nil {
			return err
		}
		if err := visit(key, raw); err != nil {
			return err
		}
	}
	now, err := asWritten(ctx, store)
	for _, key := range keys {
		if err == nil && now.over(key) && !first.over(key) {
			err = fmt.Errorf("%s in %s was written over while it was read: try again", key, store.URL())
		}
	}
	return err
}

func parseAttempt(sharing *record.Sharing, key string, raw []byte) (*record.Attempt, error) {
	if !attemptKey.MatchString(key) {
		return nil, errors.New("invalid attempt: the key is not attempts/<block>/<executor>/<trial>.json")
	}
	attempt, err := sharing.ParseAttempt(raw)
	if err != nil {
		return nil, err
	}
	if want := path.Join("attempts", attempt.Block, attempt.ID) + ".json"; want != key {
		return nil, fmt.Errorf("by its own fields it is attempt %s of block %s, which belongs at %s: it was moved or changed", attempt.ID,
			attempt.Block, want)
	}
	// What another tool wrote is evidence, and of no use here: its figures are in the result.
	for i := range attempt.Output {
		attempt.Output[i].Text = ""
	}
	if attempt.Result != nil {
		attempt.Result.Phases = slices.Clip(slices.Clone(attempt.Result.Phases)) // The decoder leaves room for more.
		for i := range attempt.Result.Phases {
			attempt.Result.Phases[i].Summarize()
		}
	}
	// The key holds both: three texts in the memory of one.
	attempt.ID = key[len("attempts/")+len(attempt.Block)+1 : len(key)-len(".json")]
	attempt.Trial = lastPart(attempt.ID, attempt.Trial)
	attempt.Source = record.Source{Key: key, SHA256: record.SHA256(raw)}
	return attempt, nil
}

// lastPart is the text as a part of the whole that ends with it; otherwise the text as it is.
func lastPart(whole, text string) string {
	if strings.HasSuffix(whole, text) {
		return whole[len(whole)-len(text):]
	}
	return text
}

// keep drops the keys of waves after through and puts the others in the order of their numbers. Keys of no known form stay: they are
// reported, not hidden.
func keep(keys []string, form *regexp.Regexp, through int) []string {
	keys = slices.DeleteFunc(keys, func(key string) bool {
		wave, ok := waveOf(form, key)
		return ok && through >= 0 && wave > through
	})
	slices.SortFunc(keys, record.CompareNames)
	return keys
}

// matching are the keys of a form.
func matching(keys []string, form *regexp.Regexp) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !form.MatchString(key) || store.CheckKey(key) != nil })
}

// waveOf is the wave that a key of a form is of: its first group is a wave's number, or the name of a block.
func waveOf(form *regexp.Regexp, key string) (wave int, ok bool) {
	match := form.FindStringSubmatch(key)
	if match == nil {
		return 0, false
	}
	if wave, ok = record.WaveOf(match[1]); ok {
		return wave, true
	}
	wave, err := strconv.Atoi(match[1])
	return wave, err == nil
}

// ReadEvidence reads everything that a verdict rests on beside the experiment, up to and including a wave; a negative wave
// means all of them.
func ReadEvidence(ctx context.Context, store store.Store, through int) (out record.Evidence, err error) {
	var ofWaves, ofAttempts, ofLeases, ofSeals, ofUnfinished []record.Problem
	if out.Waves, ofWaves, err = ReadWaves(ctx, store, through); err != nil {
		return out, err
	}
	if out.Attempts, ofAttempts, err = ReadAttempts(ctx, store, through); err != nil {
		return out, err
	}
	if out.Leases, ofLeases, err = ReadLeases(ctx, store); err != nil {
		return out, err
	}
	if out.Sealed, ofSeals, err = ReadSeals(ctx, store, through); err != nil {
		return out, err
	}
	out.Unfinished, ofUnfinished, err = ReadUnfinished(ctx, store, through)
	out.Problems = slices.Concat(ofAttempts, ofWaves, ofLeases, ofSeals, ofUnfinished)
	return out, err
}

// LastWave is the number of the newest wave that left a plan or an attempt; 0 when there is none.
func LastWave(ctx context.Context, store store.Store) (int, error) {
	planned, err := lastOf(ctx, store, "waves/", waveKey)
	if err != nil {
		return 0, err
	}
	attempted, err := lastOf(ctx, store, AttemptsPrefix, attemptKey)
	return max(0, planned, attempted), err
}

// lastOf is the newest wave that the keys of a form are of; -1 when there is none.
func lastOf(ctx context.Context, s store.Store, prefix string, form *regexp.Regexp) (int, error) {
	last := -1
	err := store.EachKey(ctx, s, prefix, func(key string) {
		if wave, ok := waveOf(form, key); ok {
			last = max(last, wave)
		}
	})
	return last, err
}

// readAll fetches and parses objects, some at a time, and returns them in the order of the keys.
func readAll[T any](ctx context.Context, s store.Store, keys []string, parse func(key string, raw []byte) (*T, error)) ([]T,
	[]record.Problem, error) {
	// In place: a hundred thousand attempts that lie about twice are more memory than a pod of the analysis has.
	values, problems := make([]T, len(keys)), make([]*record.Problem, len(keys))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, readers, len(keys), func(i int) {
		// Such as the folder that some tools leave in a bucket, which no store would be asked for.
		if err := store.CheckKey(keys[i]); err != nil {
			problems[i] = &record.Problem{Source: record.Source{Key: keys[i]}, Reason: err.Error()}
			return
		}
		err := useLarge(ctx, s, keys[i], store.MaxObjectBytes, func(raw []byte) error {
			value, err := parse(keys[i], raw)
			if err != nil {
				problems[i] = &record.Problem{Source: record.Source{Key: keys[i], SHA256: record.SHA256(raw)}, Reason: err.Error()}
				return nil
			}
			values[i] = *value
			return nil
		})
		switch {
		case errors.Is(err, store.ErrTooLarge):
			// Nothing is known of its bytes, so its sum stays empty.
			problems[i] = &record.Problem{Source: record.Source{Key: keys[i]}, Reason: err.Error()}
		case err != nil:
			// The store failed, not the object: a verdict from half the evidence would be wrong.
			cancel(err)
		}
	})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}

	good, bad := values[:0], []record.Problem(nil)
	for i, problem := range problems {
		if problem != nil {
			bad = append(bad, *problem)
			continue
		}
		good = append(good, values[i])
	}
	return good, bad, nil
}
