package selection

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/test/golden"
)

// describe lists the fates of all trials that are not simply used, and all other results of a selection, a line for each: for each reason
// at most three attempts, and at most two cells.
func describe(s *Selection) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	line("trials %+v, %d own, %d succeeded, %d judged", s.Trials, len(s.Own), len(s.Succeeded), len(s.Judged))
	after, unknown := 0, 0
	for _, a := range s.Used {
		if entry, entered := s.Entered[a]; entered && entry.Known {
			after++
		} else if entered {
			unknown++
		}
	}
	if line("of those used %d follow another arm and %d an unknown state", after, unknown); s.Without != "" {
		line("%s", s.Without)
	}
	reasons := map[string][]string{}
	for _, one := range s.Rejected {
		reason := fmt.Sprintf("%s: %s", one.Kind.Reason(), one.Reason)
		reasons[reason] = append(reasons[reason], one.Attempt)
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		objects := slices.Sorted(slices.Values(reasons[reason]))
		line("%d excluded, %s: %s", len(objects), strings.Join(objects[:min(3, len(objects))], ", "), reason)
	}
	fates := map[string][]string{}
	for _, one := range s.fates {
		if one.state != used || one.useless != "" {
			text := fmt.Sprintf("%d %s, useless %q, known %t, absent %q", one.state, one.how, one.useless, one.known, one.absent)
			fates[text] = append(fates[text], one.trial)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(fates)) {
		line("%d trials, first %s: %s", len(fates[text]), fates[text][0], text)
	}
	byCell := func(a, b Cell) int { return cmp.Or(a.Arm-b.Arm, a.Point-b.Point) }
	shown := 0
	for _, c := range slices.SortedFunc(maps.Keys(s.Lost.Cells), byCell) {
		if lost := s.Lost.Cells[c]; lost.Lost.Total() > 0 && shown < 2 {
			shown++
			line("cell %v lost %s: %s; but for timeouts %d, of the arm %d of %d", c, lost, strings.Join(lost.Some, ", "), lost.Besides(true),
				lost.OfArm().Lost.Total(), lost.OfArm().Of)
		}
	}
	for arm := range 3 {
		if lost := s.Lost.OfArm(arm); lost.Lost.Total() > 0 {
			line("arm %d lost %s, %d without output, first %s", arm, lost, s.Outputless[arm].Count, s.Outputless[arm].First)
		}
	}
	completions := s.Completions(nil)
	shown = 0
	for _, c := range slices.SortedFunc(maps.Keys(completions), byCell) {
		if of := completions[c]; of.Done != of.Of && shown < 2 {
			shown++
			line("cell %v completed %d of %d in %d blocks: %s; unknown %d, first %s, %s; %s", c, of.Done, of.Of, len(of.Blocks), of.Failures,
				of.Unknown, of.Unseen, of.How, of.Why)
		}
	}
	for _, name := range []string{"gaps", "altered"} {
		if list := map[string][]string{"gaps": s.Gaps, "altered": s.Altered}[name]; len(list) > 0 {
			line("%s %s", name, strings.Join(list, ", "))
		}
	}
	for _, text := range []string{s.Separated, s.Copied, s.OtherKeys} {
		if text != "" {
			line("%s", text)
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(s.Changed)) {
		line("arm %d changed: %s", arm, s.Changed[arm])
	}
	for _, arm := range slices.Sorted(maps.Keys(s.OtherWorkloads)) {
		line("arm %d: %+v", arm, s.OtherWorkloads[arm])
	}
	if other := slices.Collect(maps.Values(s.Elsewhere)); len(other) > 0 {
		line("%d attempts in %d other environments", len(other), slices.Max(other))
	}
	if n := s.Noise; n.Passed > 0 || len(n.Beyond) > 0 || len(n.Unread) > 0 {
		line("noise of %d trials: passed %d, beyond %v, unread %v", n.Trials, n.Passed, n.Beyond, n.Unread)
		for _, arm := range n.Arms {
			line("noise of arm %s: %d of %d rejected, beyond %v", arm.Arm, arm.Rejected, arm.Trials, arm.Beyond)
		}
	}
	for _, one := range s.Unfinished {
		line("unfinished %s of cell %v, repeated %t", one.ID, one.Cell, one.Repeated)
	}
	return b.String()
}

func TestSelect_GoldenFatesOfEverySituation(t *testing.T) {
	var b strings.Builder
	ledger := newLedger(t, 2, 1)
	for _, s := range situations {
		l := ledger.clone()
		s.alter(l)
		got := l.choose()
		fmt.Fprintf(&b, "%s\n%s", s.name, strings.ReplaceAll(describe(got), l.exp.Digest, "DIGEST"))
		if n := got.Trials; n.Used+n.Failed+n.Invalid+n.Missing+n.Warmups != n.Planned || n.Used != len(got.Used) {
			t.Errorf("%s: trials are not counted once each: %+v and %d used", s.name, n, len(got.Used))
		}
	}
	golden.Check(t, "testdata/fates.golden", b.String())
}

// shuffled returns the ledger with all of its lists in a random order.
func (l *testLedger) shuffled(random *rand.Rand) *testLedger {
	out := *l
	out.attempts, out.waves, out.problems = shuffle(random, l.attempts), shuffle(random, l.waves), shuffle(random, l.problems)
	out.markers, out.leases.Taken = shuffle(random, l.markers), shuffle(random, l.leases.Taken)
	out.leases.Ends = shuffle(random, l.leases.Ends)
	return &out
}

func shuffle[T any](random *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// allFates maps every attempt object to its rejection, every trial to its fate, and the selection to its description and digest.
func allFates(s *Selection, attempts []record.Attempt) map[string]string {
	own, used := map[*record.Attempt]bool{}, map[*record.Attempt]bool{}
	for _, a := range s.Own {
		own[a] = true
	}
	for _, a := range s.Used {
		used[a] = true
	}
	objects := map[string][]string{}
	for i := range attempts {
		a := &attempts[i]
		key := sourceOf(a).Key
		entry, entered := s.Entered[a]
		objects[key] = append(objects[key], fmt.Sprintf("%q, own %t, used %t, entered %t %+v", s.Kinds[a], own[a], used[a], entered, entry))
	}
	out := map[string]string{"selection": describe(s), "digest": s.Digest}
	for key, texts := range objects { // Of two equal objects either may be the duplicate.
		out[key] = strings.Join(slices.Sorted(slices.Values(texts)), "; ")
	}
	for _, one := range s.fates {
		out[one.trial] = fmt.Sprintf("%+v", one)
	}
	return out
}

func TestSelect_OrderOfTheLedgerHasNoInfluence(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	ledgers := map[string]func(*testLedger){}
	for i, s := range situations {
		ledgers[s.name] = s.alter
		other := situations[random.IntN(len(situations))]
		if testing.Short() && i%3 != 0 {
			continue
		}
		ledgers[s.name+", and "+other.name] = func(l *testLedger) { s.alter(l); other.alter(l) }
	}
	ledger := newLedger(t, 2, 1)
	for name, alter := range ledgers {
		l := ledger.clone()
		if !applies(l, alter) {
			continue // The first situation removes an object that the second one changes.
		}
		want := allFates(l.choose(), l.attempts)
		other := l.shuffled(random)
		if got := allFates(other.choose(), other.attempts); !maps.Equal(want, got) {
			for key := range want {
				if want[key] != got[key] {
					t.Errorf("%s: %s is\n%s\nin another order\n%s", name, key, want[key], got[key])
				}
			}
		}
	}
}

// applies applies a situation; false if it cannot be applied.
func applies(l *testLedger, alter func(*testLedger)) (ok bool) {
	defer func() { ok = recover() == nil }()
	alter(l)
	return true
}
