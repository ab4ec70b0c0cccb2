package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Ledger is all that is left of a run: its objects by key, relative to the run's prefix.
type Ledger struct {
	// Run is the prefix, which holds namespace, name and uid.
	Run     string
	Objects map[string][]byte
	// Ended is the final condition of the run: type, reason and message. A failed run is lost unless a fault explains it,
	// and one that is complete has an analysis of its newest wave.
	Ended string
}

// Seen are the observed versions of every object, by its full key.
type Seen map[string]map[string]bool

// Add remembers one sight of an object.
func (s Seen) Add(key, version string) {
	if s[key] == nil {
		s[key] = map[string]bool{}
	}
	s[key][version] = true
}

// Findings lists failures by figure, one line each.
type Findings struct {
	Lost, Doubled, Overlaps, Stuck, Overwritten []string
	// Trials is how many were looked at, Runs how many, Blocks how many executions of blocks, Objects how many attempts.
	Trials, Runs, Blocks, Objects int
}

// wrong are all of them.
func (f Findings) wrong() []string {
	return slices.Concat(f.Lost, f.Doubled, f.Overlaps, f.Stuck, f.Overwritten)
}

// attempt holds the fields that the checks read. The checks read the documented format and share no code with its writer.
type attempt struct {
	ID    string `json:"id"`
	Trial string `json:"trial"`
	Block string `json:"block"`
	Lease *struct {
		Node string `json:"node"`
	} `json:"lease"`
	StartedAt       time.Time `json:"startedAt"`
	DurationSeconds float64   `json:"durationSeconds"`
	Outcome         string    `json:"outcome"`
}

type wave struct {
	Blocks []struct {
		ID    string `json:"id"`
		Order []int  `json:"order"`
	} `json:"blocks"`
}

type analysis struct {
	Excluded []struct {
		Attempt string `json:"attempt"`
		Reason  string `json:"reason"`
	} `json:"excluded"`
	Trials struct{ Planned, Used, Failed, Invalid, Missing int } `json:"trials"`
}

// explained are the reasons for which a run may fail under faults, with the faults that explain it and how many of them it takes. An
// operator that ends twice while it expands an experiment, killed or because it could not renew that it leads, leaves the run alone: it
// cannot tell that from a want of memory. Everything else the platform has to survive, by its own retries.
var explained = map[string]struct {
	by    []string
	least int
}{
	"SetAside": {[]string{
		"operator-killed", "operator-frozen", "operators-two", "leader-thawed", "api-server-frozen", "node-rebooted",
	}, 2},
}

// unexplained returns the final condition of a failed run that no fault explains, or "".
func unexplained(ended string, injected map[string]int) string {
	said, failed := strings.CutPrefix(ended, "Failed: ")
	if !failed {
		return ""
	}
	reason, _, _ := strings.Cut(said, ":")
	count := 0
	for _, kind := range explained[reason].by {
		count += injected[kind]
	}
	if excuse, known := explained[reason]; known && count >= excuse.least {
		return ""
	}
	return said
}

// Check judges runs by their ledgers and objects, after any faults. Injected counts the faults by their kinds.
func Check(ledgers []Ledger, seen Seen, injected map[string]int) Findings {
	var findings Findings
	var spans []span
	final := Seen{}
	for _, ledger := range ledgers {
		findings.Runs++
		attempts := ledger.attempts(&findings)
		if said := unexplained(ledger.Ended, injected); said != "" {
			findings.Lost = append(findings.Lost, fmt.Sprintf("%s ended as Failed: %s: no fault explains it", ledger.Run, said))
		}
		ledger.count(attempts, &findings)
		spans = append(spans, spansOf(ledger.Run, attempts)...)
		for key := range ledger.Objects {
			final.Add(ledger.Run+"/"+key, "")
		}
	}
	findings.Blocks = len(spans)
	findings.Overlaps = overlaps(spans)
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		switch {
		case !isAttempt(key):
		case len(seen[key]) > 1:
			findings.Overwritten = append(findings.Overwritten, fmt.Sprintf("%s was seen with %d contents", key, len(seen[key])))
		case final[key] == nil:
			findings.Overwritten = append(findings.Overwritten, key+" was seen and is gone")
		}
	}
	return findings
}

func isAttempt(key string) bool {
	return strings.HasPrefix(key, "attempts/") || strings.Contains(key, "/attempts/")
}

func (l Ledger) attempts(findings *Findings) []attempt {
	var out []attempt
	for _, key := range slices.Sorted(maps.Keys(l.Objects)) {
		if !isAttempt(key) {
			continue
		}
		findings.Objects++
		var read attempt
		if err := json.Unmarshal(l.Objects[key], &read); err != nil || read.Trial == "" {
			findings.Lost = append(findings.Lost, fmt.Sprintf("%s/%s cannot be read: %v", l.Run, key, err))
			continue
		}
		out = append(out, read)
	}
	return out
}

// waves are the run's, and the number of the newest as its keys have it.
func (l Ledger) waves(findings *Findings) (waves []wave, last string) {
	for _, key := range slices.Sorted(maps.Keys(l.Objects)) {
		rest, below := strings.CutPrefix(key, "waves/")
		number, isWave := strings.CutSuffix(rest, "/wave.json")
		if !below || !isWave {
			continue
		}
		last = number
		var read wave
		if err := json.Unmarshal(l.Objects[key], &read); err != nil {
			findings.Lost = append(findings.Lost, fmt.Sprintf("%s/%s cannot be read: %v", l.Run, key, err))
			continue
		}
		waves = append(waves, read)
	}
	return waves, last
}

// trials returns the trials that need one counted attempt. Blocks that a stopped wave had not executed are in a later wave: a
// fault may keep a block from its end, and never take a trial out of its middle.
func (l Ledger) trials(waves []wave, findings *Findings) map[string]bool {
	ended, begun := map[string]bool{}, map[string]bool{}
	for key := range l.Objects {
		switch trial := strings.TrimSuffix(path.Base(key), ".json"); {
		case isAttempt(key):
			ended[trial], begun[trial] = true, true
		case strings.HasPrefix(key, "started/"):
			begun[trial] = true
		}
	}
	planned, cut, later := map[string]bool{}, 0, 0
	for number, wave := range waves {
		if number > 0 {
			later += len(wave.Blocks)
		}
		for _, block := range wave.Blocks {
			name := func(slot int) string { return fmt.Sprintf("%s-s%05d", block.ID, slot) }
			done := 0
			for done < len(block.Order) && ended[name(done)] {
				done++
			}
			whole := number == len(waves)-1
			for slot := done + 1; slot < len(block.Order); slot++ {
				whole = whole || begun[name(slot)]
			}
			if !whole && done < len(block.Order) {
				cut++
			} else {
				done = len(block.Order)
			}
			for slot := range done {
				planned[name(slot)] = true
			}
		}
	}
	if cut > later {
		findings.Lost = append(findings.Lost,
			fmt.Sprintf("%s: %d blocks never began or were cut short, and %d were planned in their place", l.Run, cut, later))
	}
	return planned
}

// count reads the run's final condition and, if it has a verdict, the fate of every planned trial.
func (l Ledger) count(attempts []attempt, findings *Findings) {
	waves, last := l.waves(findings)
	raw, analysed := l.Objects["analysis/"+last+"/analysis.json"]
	if last == "" || !analysed {
		switch {
		case l.Ended == "":
			findings.Stuck = append(findings.Stuck, l.Run+" has no analysis of its newest wave and does not say why")
		case !strings.HasPrefix(l.Ended, "Failed: "):
			findings.Lost = append(findings.Lost, l.Run+" says that it is complete, and its ledger has no analysis of its newest wave")
		}
		return
	}
	var judged analysis
	if err := json.Unmarshal(raw, &judged); err != nil {
		findings.Stuck = append(findings.Stuck, fmt.Sprintf("%s: its analysis cannot be read: %v", l.Run, err))
		return
	}
	excluded := map[string]string{}
	for _, exclusion := range judged.Excluded {
		excluded[exclusion.Attempt] = exclusion.Reason
	}
	planned := l.trials(waves, findings)
	counted := map[string]int{}
	for _, one := range attempts {
		reason, out := excluded[one.ID]
		// One that failed is in no figure, and counts as a trial that failed.
		if failed := strings.HasPrefix(reason, one.Outcome+":"); one.Outcome != "NotStarted" && (!out || failed) && planned[one.Trial] {
			counted[one.Trial]++
		}
	}
	findings.Trials += len(planned)
	for _, trial := range slices.Sorted(maps.Keys(planned)) {
		switch counts := counted[trial]; {
		case counts == 0:
			findings.Lost = append(findings.Lost, fmt.Sprintf("%s: no attempt of trial %s counts", l.Run, trial))
		case counts > 1:
			findings.Doubled = append(findings.Doubled, fmt.Sprintf("%s: %d attempts of trial %s count", l.Run, counts, trial))
		}
	}
	trials := judged.Trials
	sum := trials.Used + trials.Failed + trials.Invalid + trials.Missing
	if short := trials.Planned - sum; short > 0 {
		findings.Lost = append(findings.Lost, fmt.Sprintf("%s: its analysis accounts for %d of %d trials", l.Run, sum, trials.Planned))
	} else if short < 0 {
		findings.Doubled = append(findings.Doubled,
			fmt.Sprintf("%s: its analysis accounts for %d trials, and %d were planned", l.Run, sum, trials.Planned))
	}
}

// span is when a run's execution of a block measured on a node.
type span struct {
	run, block, node string
	from, to         time.Time
}

// spansOf are the executions of blocks, by the attempts that ran something on a node that the run had alone.
func spansOf(run string, attempts []attempt) []span {
	spans := map[string]*span{}
	for _, one := range attempts {
		if one.Lease == nil || one.Outcome == "NotStarted" {
			continue
		}
		executor := strings.TrimSuffix(one.ID, "/"+one.Trial)
		to := one.StartedAt.Add(time.Duration(one.DurationSeconds * float64(time.Second)))
		key := one.Block + " " + executor + " " + one.Lease.Node
		known := spans[key]
		if known == nil {
			spans[key] = &span{run, one.Block + "/" + executor, one.Lease.Node, one.StartedAt, to}
			continue
		}
		if one.StartedAt.Before(known.from) {
			known.from = one.StartedAt
		}
		if to.After(known.to) {
			known.to = to
		}
	}
	var out []span
	for _, key := range slices.Sorted(maps.Keys(spans)) {
		out = append(out, *spans[key])
	}
	return out
}

// overlaps are the pairs of blocks that measured on one node at one time, of two runs or of one.
func overlaps(spans []span) []string {
	var out []string
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.node == b.node && a.from.Before(b.to) && b.from.Before(a.to) {
				out = append(out, fmt.Sprintf("%s of %s and %s of %s were both on %s at %s", a.block, a.run, b.block, b.run, a.node,
					latest(a.from, b.from)))
			}
		}
	}
	return out
}

func latest(a, b time.Time) string {
	if a.Before(b) {
		a = b
	}
	return a.Format(time.RFC3339Nano)
}

// Figure is a line of the suite's output.
type Figure struct {
	Figure  string  `json:"figure"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples int     `json:"samples"`
}

// Figures of the findings. They are counts, and so are their own intervals.
func (f Findings) Figures(faults int) []Figure {
	count := func(name string, value, samples int) Figure {
		return Figure{name, float64(value), "1", float64(value), float64(value), samples}
	}
	return []Figure{
		count("chaos.faults", faults, faults),
		count("chaos.lost", len(f.Lost), f.Trials),
		count("chaos.doubled", len(f.Doubled), f.Trials),
		count("chaos.overlaps", len(f.Overlaps), f.Blocks),
		count("chaos.stuck", len(f.Stuck), f.Runs),
		count("chaos.overwritten", len(f.Overwritten), f.Objects),
	}
}
