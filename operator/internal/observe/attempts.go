package observe

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

var attemptKey = regexp.MustCompile(`^attempts/([^/]+)/([^/]+)/([^/]+)\.json$`)

// progress is the part of a run's attempts that never changes, because attempts are never deleted. A reconcile lists only keys that may be
// new, regardless of how many there are.
type progress struct {
	// earlier counts the trials with an attempt of each wave before the newest. Each is counted once, when the next wave exists.
	earlier []tally
	// wave is the newest one, and ended are the trials of its blocks that ran to their end.
	wave  int
	ended map[string]tally
	// probes are the attempts of the newest wave that were read before its analysis.
	probes probes
	// first are the keys of measured trials that are read next.
	first []string
	// retries is the number of times that a block with a lost pod is run again.
	retries int
	// over is the first block of the newest wave that ended, or whose last try began; empty without one.
	over string
	// decided is the block that brokenArms has read, and broken are the arms that it found.
	decided string
	broken  []string
}

// tally counts trials with an attempt, and those of them that are no warm-ups.
type tally struct{ all, measured int }

func (t *tally) add(other tally) { t.all, t.measured = t.all+other.all, t.measured+other.measured }

// tallyOf counts trials, each once.
func tallyOf(seen map[string]bool) (out tally) {
	for trial := range seen {
		out.all++
		if !record.IsWarmup(trial) {
			out.measured++
		}
	}
	return out
}

// maxSpans limits the separate listings of spans of open blocks, in addition to the pages of one complete listing.
const maxSpans = 8

// pageKeys is the number of keys in one response of a store.
const pageKeys = 1000

// count lists new attempts. It returns the trials with an attempt in all waves, and the open blocks of the newest wave, of which
// no execution has an attempt of every trial. Attempts are written one by one.
func (p *progress) count(ctx context.Context, s store.Store, newest *record.Wave) (trials tally, open []string, err error) {
	for wave := len(p.earlier); wave < newest.Wave; wave++ {
		// Its plan is not at hand. It is listed once.
		listed := newListing(keysPerTrial * mostTrials)
		if err := store.EachPage(ctx, s, ledger.WaveAttemptsPrefix(wave), "", listed.add); err != nil {
			return tally{}, nil, err
		}
		// A copy: the older progress may still be read concurrently.
		p.earlier = append(slices.Clone(p.earlier), listed.trials())
	}
	if p.wave != newest.Wave {
		p.wave, p.ended, p.probes, p.first, p.decided, p.broken = newest.Wave, nil, probes{}, nil, "", nil
	}
	latest, err := p.unknown(ctx, s, newest)
	if err != nil {
		return tally{}, nil, err
	}
	p.first = p.probes.pending(p.first, latest.first)
	ended := map[string]tally{}
	maps.Copy(ended, p.ended)
	p.over = ""
	for _, block := range newest.Blocks {
		_, known := ended[block.ID]
		if p.over == "" && (known || latest.most(block.ID) >= max(block.Trials(), 1) || len(latest.executions[block.ID]) > p.retries) {
			p.over = block.ID
		}
		switch {
		case known:
		case latest.most(block.ID) >= max(block.Trials(), 1):
			ended[block.ID] = tallyOf(latest.seen[block.ID])
		default:
			trials.add(tallyOf(latest.seen[block.ID]))
			open = append(open, block.ID)
		}
	}
	p.ended = ended
	for _, count := range p.earlier {
		trials.add(count)
	}
	for _, count := range ended {
		trials.add(count)
	}
	return trials, open, nil
}

// unknown lists the attempts of the newest wave's blocks that are not known to have ended. Blocks end about in the order of their
// names, so that most of them lie behind the last one that ended.
func (p *progress) unknown(ctx context.Context, store store.Store, newest *record.Wave) (*listing, error) {
	// A store lists names as texts, where w000-b10000 comes before w000-b9999. Those of one length are in the order of their numbers.
	groups := map[int][]string{}
	for _, block := range newest.Blocks {
		groups[len(block.ID)] = append(groups[len(block.ID)], block.ID)
	}
	listed := newListing(keysBeside + keysPerTrial*newest.Trials())
	for _, length := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[length])
		if err := p.unknownOf(ctx, store, groups[length], listed); err != nil {
			return listed, err
		}
	}
	return listed, nil
}

// unknownOf lists those of blocks whose names are of one length, in their order: between two that ended all that did not, so that a wave
// on several nodes takes a request for each of them.
func (p *progress) unknownOf(ctx context.Context, s store.Store, blocks []string, listed *listing) error {
	// Before the first key of the first block, and after the last one of the last.
	first, last := ledger.AttemptsPrefix+blocks[0], ledger.AfterBlock(blocks[len(blocks)-1])
	type span struct {
		open          []string
		after, before string
	}
	var spans []span
	current, ended := span{after: first}, 0
	for _, block := range blocks {
		trials, known := p.ended[block]
		if !known {
			current.open = append(current.open, block)
			continue
		}
		if len(current.open) > 0 {
			current.before = ledger.AttemptsPrefix + block
			spans = append(spans, current)
		}
		current, ended = span{after: ledger.AfterBlock(block)}, ended+trials.all
	}
	if len(current.open) > 0 {
		current.before = last
		spans = append(spans, current)
	}
	if len(spans) > maxSpans+ended/pageKeys {
		return listed.listBetween(ctx, s, first, last)
	}
	for _, open := range spans {
		var err error
		if len(open.open) == 1 {
			err = store.EachPage(ctx, s, ledger.AttemptsPrefix+open.open[0]+"/", "", listed.add)
		} else {
			err = listed.listBetween(ctx, s, open.after, open.before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Tenants that may write attempts may write any number of keys of any length. A run has at most mostTrials; mostKnown is the number of
// trials and executions in one listing. Every reconcile lists the open blocks, so that the listing of a wave is limited by its plan: each
// trial once for each of at most eleven executions, and as many again for lost nodes.
const (
	mostKnown      = 250_000
	mostKnownBytes = 24 << 20
	mostTrials     = 100_000
	keysPerTrial   = 22
	keysBeside     = 10_000
	// longestProbe is the number of bytes of a key that is read before the analysis.
	longestProbe = 384
)

// listing counts attempts by their keys.
type listing struct {
	// seen are the trials of each block that have an attempt, executions the number of attempts of each execution of a block.
	seen       map[string]map[string]bool
	executions map[string]map[string]int
	// first are the first keys of measured trials, enough for the probes of a wave.
	first []string
	// held is the number of trials and executions, bytes the size of their names, and left how many more keys may be listed.
	held, bytes, left int
}

func newListing(most int) *listing {
	return &listing{seen: map[string]map[string]bool{}, executions: map[string]map[string]int{}, left: most}
}

// listBetween lists the keys after one and before another.
func (l *listing) listBetween(ctx context.Context, s store.Store, after, before string) error {
	return store.EachPage(ctx, s, ledger.AttemptsPrefix, after, func(keys []string) error {
		past, _ := slices.BinarySearch(keys, before)
		if err := l.add(keys[:past]); err != nil || past == len(keys) {
			return err
		}
		return fs.SkipAll
	})
}

func (l *listing) keep(text string) string {
	l.bytes += len(text)
	return strings.Clone(text)
}

func (l *listing) add(keys []string) error {
	l.left -= len(keys)
	for _, key := range keys {
		match := attemptKey.FindStringSubmatch(key)
		if match == nil {
			continue
		}
		block, executor, trial := match[1], match[2], match[3]
		if len(l.first) < probesPerWave+probesAtOnce && len(key) <= longestProbe && !record.IsWarmup(trial) {
			l.first = append(l.first, strings.Clone(key))
		}
		// Copy the name: a substring would retain the whole key.
		if l.seen[block] == nil {
			block = l.keep(block)
			l.seen[block], l.executions[block] = map[string]bool{}, map[string]int{}
		}
		if !l.seen[block][trial] {
			l.seen[block][l.keep(trial)] = true
			l.held++
		}
		if _, known := l.executions[block][executor]; !known {
			executor = l.keep(executor)
			l.held++
		}
		l.executions[block][executor]++
	}
	if l.left < 0 || l.held > mostKnown || l.bytes > mostKnownBytes {
		return fmt.Errorf("%s has more objects than the wave can have left, attempts of more than %d trials and executions, or names of more "+
			"than %d MiB; find the other writer of this ledger and delete its objects, or create a new run",
			ledger.AttemptsPrefix, mostKnown, mostKnownBytes>>20)
	}
	return nil
}

// trials counts the trials with an attempt, each once.
func (l *listing) trials() (out tally) {
	for _, seen := range l.seen {
		out.add(tallyOf(seen))
	}
	return out
}

// most is the largest number of attempts of any execution of a block.
func (l *listing) most(block string) (most int) {
	for _, attempts := range l.executions[block] {
		most = max(most, attempts)
	}
	return most
}
