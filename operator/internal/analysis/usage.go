package analysis

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

// Usage is what the measuring itself was like: what it cost, what was left out, and what the nodes' neighbours did. No
// verdict rests on it.
type Usage struct {
	// TrialSeconds is the time of all trials that ran, warm-ups and failed ones included, and BlockSeconds that of their
	// blocks, each from the start of its first trial to the end of its last.
	TrialSeconds float64 `json:"trialSeconds"`
	BlockSeconds float64 `json:"blockSeconds"`
	// Blocks are those that BlockSeconds is the time of; absent in analyses older than the field.
	Blocks int `json:"blocks,omitempty"`
	// OverheadSeconds is the time in blocks that no trial used, per trial; nil without a trial that ran.
	OverheadSeconds *float64 `json:"overheadSeconds,omitempty"`
	// Excluded counts the attempts that are not in the figures, by reason.
	Excluded map[Reason]int `json:"excluded,omitempty"`
	// Noisy counts the trials that ran beyond a noise limit, by the limit.
	Noisy map[noise.Kind]int `json:"noisy,omitempty"`
	// Processes are what the processes of every arm used.
	Processes []ProcessUse `json:"processes,omitempty"`
	// Nodes are those that trials ran on, by name. A node whose name is not known is left out.
	Nodes []NodeUsage `json:"nodes,omitempty"`
}

// Reason is why an attempt is not in the figures, in a word.
type Reason string

// StaleLease is the reason of attempts beside which another run may have been on the node.
const StaleLease Reason = "stale_lease"

// NodeUsage is what the trials on one node read of others.
type NodeUsage struct {
	Node string `json:"node"`
	// Trials are those that were judged by the noise limits, and Newest is when the last of them ended.
	Trials int       `json:"trials"`
	Newest time.Time `json:"newest"`
	// Clock is the reading of the node's clock that is off most; nil where nobody read one.
	Clock *NodeClock `json:"clock,omitempty"`
	// Noise has the kinds of which there is a reading or a limit, in the order of the limits.
	Noise []NodeNoise `json:"noise,omitempty"`
}

// NodeNoise is one kind of reading, as the share that its limit is set against. A nil number could not be read.
type NodeNoise struct {
	Kind   noise.Kind `json:"kind"`
	Limit  *float64   `json:"limit,omitempty"`
	Newest *float64   `json:"newest,omitempty"`
	Median *float64   `json:"median,omitempty"`
	Max    *float64   `json:"max,omitempty"`
	// Beyond counts the trials beyond the limit.
	Beyond int `json:"beyond"`
}

// fingerprintDigits keep a fingerprint short enough to be read and long enough not to meet another one.
const fingerprintDigits = 12

// Fingerprint identifies an environment in a word: results under the same one can be compared. It is empty when the
// environment is not known.
func (a *Analysis) Fingerprint() string {
	if len(a.Environment) == 0 {
		return ""
	}
	raw, err := json.Marshal(a.Environment) // Keys are sorted.
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:fingerprintDigits]
}

// own are the attempts up to a wave that are this experiment's.
func (s *selection) own(evidence record.Evidence, wave int) []*record.Attempt {
	return slices.DeleteFunc(upTo(evidence.Attempts, wave), func(attempt *record.Attempt) bool { _, ok := s.cells[attempt]; return !ok })
}

// usageOf reads it from the attempts up to a wave that are this experiment's own.
func usageOf(exp *experiment.Experiment, chosen *selection, own []*record.Attempt) *Usage {
	out := &Usage{Excluded: map[Reason]int{}, Noisy: map[noise.Kind]int{}}
	for _, rejected := range chosen.rejected {
		out.Excluded[rejected.kind.reason()]++
	}
	maps.Copy(out.Noisy, chosen.noise.beyond)
	out.time(own)
	out.Processes = processUse(exp, chosen)
	out.nodes(exp, chosen, own)
	return out
}

// time sums up trials and blocks. A block that was executed twice was paid for twice.
func (u *Usage) time(attempts []*record.Attempt) {
	type span struct{ from, to time.Time }
	blocks := map[string]*span{}
	var order []string
	trials := 0
	for _, attempt := range attempts {
		if attempt.Outcome == record.NotStarted {
			continue
		}
		trials++
		u.TrialSeconds += attempt.DurationSeconds
		from, to := attempt.StartedAt, endOf(attempt)
		key := executor(attempt) + "/" + attempt.Block
		if blocks[key] == nil {
			blocks[key] = &span{from, to}
			order = append(order, key)
		}
		if from.Before(blocks[key].from) {
			blocks[key].from = from
		}
		if to.After(blocks[key].to) {
			blocks[key].to = to
		}
	}
	// In a fixed order, so that the sum has the same last digit every time.
	for _, key := range order {
		u.Blocks++
		u.BlockSeconds += blocks[key].to.Sub(blocks[key].from).Seconds()
	}
	if trials > 0 {
		u.OverheadSeconds = finite(max(u.BlockSeconds-u.TrialSeconds, 0) / float64(trials))
	}
	u.TrialSeconds, u.BlockSeconds = round(u.TrialSeconds), round(u.BlockSeconds)
}

func endOf(attempt *record.Attempt) time.Time {
	return attempt.StartedAt.Add(duration(attempt.DurationSeconds))
}

// nodes sums up what the limits were set against.
func (u *Usage) nodes(exp *experiment.Experiment, chosen *selection, own []*record.Attempt) {
	judged := map[string][]*record.Attempt{}
	for _, attempt := range own {
		kind := chosen.kinds[attempt]
		if node := nodeOf(attempt); node != "" && !attempt.Warmup && (kind == "" || kind == noisy) {
			judged[node] = append(judged[node], attempt)
		}
	}
	clocks := clocksOf(own)
	limits, reference := exp.Plan.Noise, noise.NewReference(own)
	for _, node := range slices.Sorted(maps.Keys(judged)) {
		attempts := judged[node]
		slices.SortStableFunc(attempts, func(a, b *record.Attempt) int {
			return cmp.Or(endOf(a).Compare(endOf(b)), cmp.Compare(a.ID, b.ID))
		})
		found := NodeUsage{Node: node, Trials: len(attempts), Newest: endOf(attempts[len(attempts)-1]).UTC(), Clock: clocks[node]}
		beyond := map[noise.Kind]int{}
		for _, attempt := range attempts {
			violations, _ := reference.Judge(limits, attempt)
			for _, violation := range violations {
				beyond[violation.Kind]++
			}
		}
		for _, kind := range noise.Kinds {
			limit, limited := limits[kind]
			read := NodeNoise{Kind: kind, Beyond: beyond[kind]}
			if limited {
				read.Limit = &limit
			}
			read.distribution(reference, attempts)
			if limited || read.Newest != nil {
				found.Noise = append(found.Noise, read)
			}
		}
		u.Nodes = append(u.Nodes, found)
	}
}

// distribution is that of the readings there are, of attempts in the order of their ends.
func (n *NodeNoise) distribution(reference *noise.Reference, attempts []*record.Attempt) {
	var shares []float64
	for _, attempt := range attempts {
		if share, ok := reference.Share(n.Kind, attempt); ok {
			shares = append(shares, share)
		}
	}
	if len(shares) == 0 {
		return
	}
	newest := shares[len(shares)-1]
	slices.Sort(shares)
	median, most := shares[(len(shares)-1)/2], shares[len(shares)-1]
	n.Newest, n.Median, n.Max = finite(newest), finite(median), finite(most)
}
