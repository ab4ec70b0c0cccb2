package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// readers is how many objects are fetched at once: object stores answer in milliseconds, so one at a time would take
// minutes for ten thousand attempts.
const readers = 16

var (
	waveKey    = regexp.MustCompile(`^waves/(` + record.WaveForm + `)/wave\.json$`)
	attemptKey = regexp.MustCompile(`^attempts/(` + record.BlockForm + `)/([^/]+)/(` + record.TrialForm + `)\.json$`)
)

// ReadExperiment reads the frozen experiment and checks that it is what its digest says.
func ReadExperiment(ctx context.Context, store Store) (*experiment.Experiment, error) {
	raw, err := store.Get(ctx, ExperimentKey)
	if err != nil {
		return nil, err
	}
	var frozen experiment.Experiment
	strict, err := kjson.UnmarshalStrict(raw, &frozen)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", ExperimentKey, store.URL(), err)
	}
	if err := checkExperiment(&frozen); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", ExperimentKey, store.URL(), err)
	}
	return &frozen, nil
}

func checkExperiment(frozen *experiment.Experiment) error {
	if frozen.Schema != experiment.Schema {
		return fmt.Errorf("schema is %q and this program reads %q", frozen.Schema, experiment.Schema)
	}
	if frozen.Run.Name == "" || frozen.Run.UID == "" {
		return errors.New("run.name and run.uid are required")
	}
	if len(frozen.Points) == 0 || len(frozen.Arms) == 0 || len(frozen.Cells) == 0 {
		return errors.New("points, arms and cells must not be empty")
	}
	if err := checkNumbers(frozen); err != nil {
		return err
	}
	if err := checkFilledIn(frozen); err != nil {
		return err
	}
	digest, err := frozen.ComputeDigest()
	if err != nil {
		return err
	}
	if frozen.Digest != digest {
		return fmt.Errorf("digest is %q and the content has %s: the experiment was changed after it was frozen, or was written by hand and still needs this digest", frozen.Digest, digest)
	}
	return nil
}

// checkFilledIn finds what freezing an experiment would have filled in. An experiment written by hand says it itself: a
// gate that silently decided nothing would be worse than an error.
func checkFilledIn(frozen *experiment.Experiment) error {
	wanted := len(frozen.Spec.Arms)
	if frozen.Spec.Design.NullArm {
		wanted++
	}
	if len(frozen.Arms) != wanted {
		return fmt.Errorf("arms has %d arms and spec.arms has %d: they must be the same, and with design.nullArm one arm more", len(frozen.Arms), len(frozen.Spec.Arms))
	}
	if last := frozen.Arms[wanted-1]; last.Null != frozen.Spec.Design.NullArm {
		return fmt.Errorf("arms[%d] is %+v and spec.design.nullArm is %v: with it the last arm has null true, and no other one ever has", wanted-1, last, frozen.Spec.Design.NullArm)
	}
	for i, arm := range frozen.Spec.Arms {
		if frozen.Arms[i].Name != arm.Name || frozen.Arms[i].Baseline != (arm.Baseline && len(frozen.Spec.Arms) > 1) {
			return fmt.Errorf("arms[%d] is %+v and spec.arms[%d] is named %q with baseline %v: they must be the same", i, frozen.Arms[i], i, arm.Name, arm.Baseline)
		}
	}
	if frozen.Spec.Search != nil {
		for i, point := range frozen.Points {
			if axis := frozen.Spec.Search.Over.Axis; point.Parameters[axis] == "" {
				return fmt.Errorf("points[%d] has no value of %s, the axis of spec.search: every point of a search is a load, from the lowest", i, axis)
			}
		}
	}
	for i, metric := range frozen.Template.Metrics {
		if metric.Statistic == "" {
			return fmt.Errorf("template.metrics[%d].statistic is missing: write median, or value for one number per trial", i)
		}
	}
	if err := checkWords(frozen); err != nil {
		return err
	}
	return checkReferences(frozen)
}

// ReadWaves reads the plans of the waves up to and including through; a negative through means all of them.
func ReadWaves(ctx context.Context, store Store, through int) ([]record.Wave, []record.Problem, error) {
	keys, err := store.List(ctx, "waves/")
	if err != nil {
		return nil, nil, err
	}
	keys = keep(keys, waveKey, through)
	return readAll(ctx, store, keys, parseWave)
}

func parseWave(key string, raw []byte) (*record.Wave, string) {
	wave, err := record.ParseWave(raw)
	if err != nil {
		return nil, err.Error()
	}
	if WaveKey(wave.Wave) != key {
		return nil, fmt.Sprintf("it is the plan of wave %d, which belongs at %s", wave.Wave, WaveKey(wave.Wave))
	}
	return wave, ""
}

// ReadAttempts reads the attempts of the waves up to and including through; a negative through means all of them. An
// object that is no attempt, or not the one its key says, becomes a problem and never an error.
func ReadAttempts(ctx context.Context, store Store, through int) ([]record.Attempt, []record.Problem, error) {
	keys, err := store.List(ctx, AttemptsPrefix)
	if err != nil {
		return nil, nil, err
	}
	keys = keep(keys, attemptKey, through)
	first, over, err := asWritten(ctx, store, AttemptsPrefix, keys)
	if err != nil {
		return nil, nil, err
	}
	shared := newInterner()
	attempts, problems, err := readAll(ctx, first, keys, func(key string, raw []byte) (*record.Attempt, string) {
		attempt, reason := parseAttempt(key, raw)
		if attempt != nil {
			shared.intern(attempt)
		}
		return attempt, reason
	})
	return attempts, append(problems, over...), err
}

func parseAttempt(key string, raw []byte) (*record.Attempt, string) {
	if !attemptKey.MatchString(key) {
		return nil, "it is no attempt: the key is not attempts/<block>/<executor>/<trial>.json"
	}
	attempt, err := record.ParseAttempt(raw)
	if err != nil {
		return nil, err.Error()
	}
	if want := path.Join("attempts", attempt.Block, attempt.ID) + ".json"; want != key {
		return nil, fmt.Sprintf("it says that it is attempt %s of block %s, which belongs at %s: it was moved or changed", attempt.ID, attempt.Block, want)
	}
	// What another tool wrote is evidence, and of no use here: its figures are in the result.
	for i := range attempt.Output {
		attempt.Output[i].Text = ""
	}
	if attempt.Result != nil {
		for i := range attempt.Result.Phases {
			attempt.Result.Phases[i].Summarize()
		}
	}
	// The key holds both: three texts in the memory of one.
	attempt.ID = key[len("attempts/")+len(attempt.Block)+1 : len(key)-len(".json")]
	attempt.Trial = lastPart(attempt.ID, attempt.Trial)
	sum := sha256.Sum256(raw)
	attempt.Source = record.Source{Key: key, SHA256: hex.EncodeToString(sum[:])}
	return attempt, ""
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
	out := keys[:0]
	for _, key := range keys {
		if wave, ok := waveOf(form, key); !ok || through < 0 || wave <= through {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, record.CompareNames)
	return out
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
func ReadEvidence(ctx context.Context, store Store, through int) (record.Evidence, error) {
	waves, problems, err := ReadWaves(ctx, store, through)
	if err != nil {
		return record.Evidence{}, err
	}
	attempts, more, err := ReadAttempts(ctx, store, through)
	if err != nil {
		return record.Evidence{}, err
	}
	leases, others, err := ReadLeases(ctx, store)
	if err != nil {
		return record.Evidence{}, err
	}
	sealed, unsealed, err := ReadSeals(ctx, store, through)
	if err != nil {
		return record.Evidence{}, err
	}
	unfinished, contradictions, err := ReadUnfinished(ctx, store, through)
	if err != nil {
		return record.Evidence{}, err
	}
	return record.Evidence{
		Unfinished: unfinished,
		Waves:      waves, Attempts: attempts, Leases: leases, Sealed: sealed, Problems: slices.Concat(more, problems, others, unsealed, contradictions),
	}, nil
}

// LastWave is the number of the newest wave that left a plan or an attempt; 0 when there is none.
func LastWave(ctx context.Context, store Store) (int, error) {
	last := 0
	for prefix, form := range map[string]*regexp.Regexp{"waves/": waveKey, AttemptsPrefix: attemptKey} {
		keys, err := store.List(ctx, prefix)
		if err != nil {
			return 0, err
		}
		for _, key := range keys {
			if wave, ok := waveOf(form, key); ok {
				last = max(last, wave)
			}
		}
	}
	return last, nil
}

// CountTrials is how many trials have an attempt, warm-ups included. It looks at keys only: a trial that was executed
// twice counts once.
func CountTrials(ctx context.Context, store Store) (int, error) {
	keys, err := store.List(ctx, AttemptsPrefix)
	if err != nil {
		return 0, err
	}
	trials := map[string]bool{}
	for _, key := range keys {
		if match := attemptKey.FindStringSubmatch(key); match != nil {
			trials[match[3]] = true
		}
	}
	return len(trials), nil
}

// readAll fetches and parses objects, some at a time, and returns them in the order of the keys.
func readAll[T any](ctx context.Context, store Store, keys []string, parse func(key string, raw []byte) (*T, string)) ([]T, []record.Problem, error) {
	// In place: a hundred thousand attempts that lie about twice are more memory than a pod of the analysis has.
	values, problems := make([]T, len(keys)), make([]*record.Problem, len(keys))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range min(readers, len(keys)) {
		group.Go(func() {
			for i := range next {
				raw, err := store.Get(ctx, keys[i])
				if errors.Is(err, ErrTooLarge) {
					// Nothing is known of its bytes, so its sum stays empty.
					problems[i] = &record.Problem{Source: record.Source{Key: keys[i]}, Reason: err.Error()}
					continue
				}
				if err != nil {
					// The store failed, not the object: a verdict from half the evidence would be wrong.
					cancel(err)
					continue
				}
				value, reason := parse(keys[i], raw)
				if value == nil {
					sum := sha256.Sum256(raw)
					problems[i] = &record.Problem{Source: record.Source{Key: keys[i], SHA256: hex.EncodeToString(sum[:])}, Reason: reason}
					continue
				}
				values[i] = *value
			}
		})
	}
	for i := range keys {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
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
