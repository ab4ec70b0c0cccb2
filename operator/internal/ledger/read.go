package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// readers is the number of concurrent reads. Object stores respond in milliseconds, so sequential reads of ten thousand attempts would take
// minutes.
const readers = 16

var (
	waveKey    = regexp.MustCompile(`^waves/(` + record.WaveForm + `)/wave\.json$`)
	attemptKey = regexp.MustCompile(`^attempts/(` + record.BlockForm + `)/([^/]+)/(` + record.TrialForm + `)\.json$`)
)

// ReadExperiment reads the frozen experiment and verifies its digest.
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

// CheckFormat returns an error if this program does not read the format of a ledger. It is for readers that use no experiment.
func CheckFormat(ctx context.Context, store store.Store) error {
	raw, err := store.Get(ctx, ExperimentKey)
	if err == nil {
		err = experiment.CheckFormat(raw)
	}
	if err != nil {
		return fmt.Errorf("%s in %s: %w", ExperimentKey, store.URL(), err)
	}
	return nil
}

// ReadWaves reads the plans of the waves up to and including through; a negative through means all of them.
func ReadWaves(ctx context.Context, store store.Store, through int) ([]record.Wave, []record.Problem, error) {
	keys, err := store.List(ctx, "waves/")
	if err != nil {
		return nil, nil, err
	}
	keys = upToWave(keys, waveKey, through)
	return readAll(ctx, store, keys, parseWave)
}

func parseWave(key string, raw []byte) (*record.Wave, error) {
	wave, err := record.ParseWave(raw)
	if err == nil && WaveKey(wave.Wave) != key {
		err = fmt.Errorf("it is the plan of wave %d, which belongs at %s", wave.Wave, WaveKey(wave.Wave))
	}
	return wave, err
}

// ReadAttempts reads the attempts of the waves up to and including through; a negative through means all of them. An invalid object, or one
// under the wrong key, becomes a Problem and never an error.
func ReadAttempts(ctx context.Context, store store.Store, through int) ([]record.Attempt, []record.Problem, error) {
	keys, err := store.List(ctx, AttemptsPrefix)
	if err != nil {
		return nil, nil, err
	}
	keys = upToWave(keys, attemptKey, through)
	sharing := record.NewSharing()
	parse := func(key string, raw []byte) (*record.Attempt, error) { return parseAttempt(sharing, key, raw) }
	attempts, problems, err := readAll(ctx, store, keys, parse)
	if err != nil {
		return nil, nil, err
	}
	// Read last, so that it covers all overwrites before the attempts were read.
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

// EachAttempt visits the first versions of the attempts of all waves, in the order of their keys and without parsing them.
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
			err = fmt.Errorf("%s in %s was overwritten while it was read: try again", key, store.URL())
		}
	}
	return err
}

// mostFailure bounds the bytes of an attempt that ReadFailure reads: its result and its outputs take more in few workloads, and such an
// attempt is skipped.
const mostFailure = 1 << 20

// ReadFailure reads the failure of the attempt of a measured trial, or the attempt if it succeeded. It returns nil for one that is too
// large, that is missing or that is not one. Any holder of a key of the namespace can write one.
func ReadFailure(ctx context.Context, s store.Store, key string) (*record.Failure, *record.Attempt, error) {
	raw, err := store.GetAtMost(ctx, s, key, mostFailure)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrTooLarge):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	var found record.Failure
	if json.Unmarshal(raw, &found) != nil || found.Outcome == "" {
		return nil, nil, nil
	}
	if found.Outcome != record.Succeeded {
		return &found, nil, nil
	}
	attempt, err := parseAttempt(record.NewSharing(), key, raw)
	if err != nil {
		return nil, nil, nil // The analysis reports it as unreadable.
	}
	return nil, attempt, nil
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
		return nil, fmt.Errorf("invalid attempt: its fields are those of attempt %s of block %s, which belongs at %s: it was moved or changed",
			attempt.ID, attempt.Block, want)
	}
	// The output of another tool is evidence and not used here, because its figures are in the result.
	for i := range attempt.Output {
		attempt.Output[i].Text = ""
	}
	if attempt.Result != nil {
		attempt.Result.Phases = slices.Clip(slices.Clone(attempt.Result.Phases)) // The decoder allocates spare capacity.
		for i := range attempt.Result.Phases {
			attempt.Result.Phases[i].Summarize()
		}
	}
	// Alias ID and Trial to the key to save memory.
	attempt.ID = key[len("attempts/")+len(attempt.Block)+1 : len(key)-len(".json")]
	attempt.Trial = lastPart(attempt.ID, attempt.Trial)
	attempt.Source = record.Source{Key: key, SHA256: record.SHA256(raw)}
	return attempt, nil
}

// lastPart returns the end of whole that equals text, and otherwise text.
func lastPart(whole, text string) string {
	if strings.HasSuffix(whole, text) {
		return whole[len(whole)-len(text):]
	}
	return text
}

// upToWave drops the keys of waves after through and sorts the others by their numbers. Keys of unknown form stay, so that they are
// reported.
func upToWave(keys []string, form *regexp.Regexp, through int) []string {
	keys = slices.DeleteFunc(keys, func(key string) bool {
		wave, ok := waveOf(form, key)
		return ok && through >= 0 && wave > through
	})
	slices.SortFunc(keys, record.CompareNames)
	return keys
}

// matching returns the keys that match form.
func matching(keys []string, form *regexp.Regexp) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !form.MatchString(key) || store.CheckKey(key) != nil })
}

// waveOf returns the wave of a key that matches form: its first group is a wave's number, or the name of a block.
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

// ReadEvidence reads all evidence of a verdict beside the experiment, up to and including a wave; a negative wave means all of them.
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

// LastWave returns the number of the newest wave with a plan or an attempt; 0 without any.
func LastWave(ctx context.Context, store store.Store) (int, error) {
	planned, err := lastOf(ctx, store, "waves/", waveKey)
	if err != nil {
		return 0, err
	}
	attempted, err := lastOf(ctx, store, AttemptsPrefix, attemptKey)
	return max(0, planned, attempted), err
}

// lastOf returns the newest wave among the keys that match form; -1 without any.
func lastOf(ctx context.Context, s store.Store, prefix string, form *regexp.Regexp) (int, error) {
	last := -1
	err := store.EachKey(ctx, s, prefix, func(key string) {
		if wave, ok := waveOf(form, key); ok {
			last = max(last, wave)
		}
	})
	return last, err
}

// readAll fetches and parses objects concurrently, and returns them in the order of the keys.
func readAll[T any](ctx context.Context, s store.Store, keys []string, parse func(key string, raw []byte) (*T, error)) ([]T,
	[]record.Problem, error) {
	// Results are stored in place, because two copies of a hundred thousand attempts exceed the memory of an analysis pod.
	values, problems := make([]T, len(keys)), make([]*record.Problem, len(keys))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, readers, len(keys), func(i int) {
		// For example the folder markers that some tools leave in a bucket, which stores reject as keys.
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
			// Its bytes are unknown, so its sum stays empty.
			problems[i] = &record.Problem{Source: record.Source{Key: keys[i]}, Reason: err.Error()}
		case err != nil:
			// A failed store ends the reading, because a verdict from part of the evidence would be wrong.
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

// Began returns the time at which the first trial of a ledger began; zero without attempts.
func Began(ctx context.Context, s store.Store) (time.Time, error) {
	for after := AttemptsPrefix; ; {
		keys, more, err := s.Page(ctx, AttemptsPrefix, after)
		if err != nil {
			return time.Time{}, err
		}
		if found := matching(keys, attemptKey); len(found) > 0 {
			var attempt struct {
				StartedAt time.Time `json:"startedAt"`
			}
			raw, err := s.Get(ctx, found[0])
			if err != nil {
				return time.Time{}, err
			}
			if err := json.Unmarshal(raw, &attempt); err != nil {
				return time.Time{}, fmt.Errorf("invalid %s in %s: %w", found[0], s.URL(), err)
			}
			return attempt.StartedAt, nil
		}
		if !more || len(keys) == 0 {
			return time.Time{}, nil
		}
		after = keys[len(keys)-1]
	}
}
