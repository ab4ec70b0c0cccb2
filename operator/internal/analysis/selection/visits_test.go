package selection

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// visitsOf builds the plan and the attempts of blocks, one text for each block and one word for each slot: O or N for the arm old or new, 1
// or 2 for the point, and the outcome: x failed, t timed out, ~ did not start, - is lost. A letter after a slash names the build.
func visitsOf(blocks ...string) (planned plan, own []*record.Attempt, cells map[*record.Attempt]Cell) {
	planned, cells = plan{known: true, slots: map[string]*plannedSlot{}}, map[*record.Attempt]Cell{}
	for number, block := range blocks {
		name := record.BlockName(0, number)
		for slot, word := range strings.Fields(block) {
			word, build, _ := strings.Cut(word, "/")
			c := At(int(word[1]-'1'), strings.IndexByte("ON", word[0]))
			planned.slots[record.TrialName(name, slot, false)] = &plannedSlot{cell: c, block: name, build: build, slot: slot}
			if strings.HasSuffix(word, "-") {
				continue
			}
			attempt := ran(name, slot, map[string]record.Outcome{"": record.Succeeded, "x": record.Failed, "t": record.TimedOut,
				"~": record.NotStarted}[word[2:]])
			attempt.Build, cells[attempt] = build, c
			own = append(own, attempt)
		}
	}
	return planned, own, cells
}

// placesOf describes the attempts of every block in the order of their slots: "." counts, "?" follows no other arm that is known, and O and
// N follow that arm.
func placesOf(own []*record.Attempt, found Visits) (out []string) {
	block := ""
	for _, attempt := range own {
		if attempt.Block != block || len(out) == 0 {
			block, out = attempt.Block, append(out, "")
		}
		entry, entered := found.Entered[attempt]
		switch {
		case !entered:
			out[len(out)-1] += "."
		case !entry.Known:
			out[len(out)-1] += "?"
		default:
			out[len(out)-1] += string("ON"[entry.After.Arm])
		}
	}
	return out
}

func TestFindVisits_CountsTrialsAfterTheirOwnArm(t *testing.T) {
	for name, c := range map[string]struct {
		blocks []string
		want   []string
		// without is the result of a ledger without plans; that of a ledger with plans if nil.
		without []string
	}{
		"the first of a block and the first after another arm do not count": {
			blocks: []string{"O1 O1 O1 N1 N1 N1", "N1 N1 N1 O1 O1 O1"}, want: []string{"?..O..", "?..N.."},
		},
		"a visit at another point begins again": {
			blocks: []string{"O1 O1 O1 N1 N1 N1 N2 N2 N2 O2 O2 O2"}, want: []string{"?..O..?..N.."},
		},
		"a visit of another arm at another point has no known predecessor": {
			blocks: []string{"O1 O1 N1 N1 O2 O2 N2 N2"}, want: []string{"?.O.?.O."},
		},
		"another build of the arm begins again and is not another arm": {
			blocks: []string{"O1/a O1/a O1/a O1/b O1/b O1/b N1/a N1/a N1/a"}, want: []string{"?..?..O.."},
		},
		"a trial after a failed trial of its arm does not count": {
			blocks: []string{"O1 O1x O1 N1 N1 N1"}, want: []string{"?.?O.."},
		},
		"a trial after a timed-out trial of its arm does not count": {
			blocks: []string{"O1 O1 O1 N1 N1t N1"}, want: []string{"?..O.?"},
		},
		"a trial after a trial of its arm that did not start does not count": {
			blocks: []string{"O1~ O1 O1 N1 N1 N1"}, want: []string{"??.O.."},
		},
		"a trial after a lost trial of its arm does not count": {
			blocks: []string{"O1 O1 O1 N1 N1- N1", "N1 N1- N1 O1 O1 O1"}, want: []string{"?..O?", "??N.."},
		},
		"a trial after a failed or lost trial of another arm has no known predecessor": {
			blocks: []string{"O1 O1 O1x N1 N1 N1", "N1 N1 N1- O1 O1 O1"}, want: []string{"?..?..", "?.?.."},
		},
		"a failed trial has a place as well": {blocks: []string{"O1 O1 O1 N1x N1x N1"}, want: []string{"?..O??"}},
		"all trials of a block with one cell count": {
			blocks: []string{"O1 O1 O1 N1 N1 N1", "N2 N2x N2"}, want: []string{"?..O..", "..."},
		},
		"two points of one arm are two cells": {blocks: []string{"O1 O1 O1 O2 O2 O2"}, want: []string{"?..?.."}},
		"a block of which one arm is lost had two cells if a plan says so": {
			blocks: []string{"O1 O1 O1 N1- N1- N1-"}, want: []string{"?.."}, without: []string{"..."},
		},
		"visits of two trials are enough": {blocks: []string{"O1 O1 N1 N1"}, want: []string{"?.O."}},
		"an arm may come twice":           {blocks: []string{"O1 O1 N1 N1 O1 O1"}, want: []string{"?.O.N."}},
	} {
		t.Run(name, func(t *testing.T) {
			planned, own, cells := visitsOf(c.blocks...)
			got := findVisits(twoArms(), planned, own, cells)
			if diff := cmp.Diff(c.want, placesOf(own, got)); diff != "" || got.Without != "" {
				t.Errorf("without visits %q; with plans (-want +got):\n%s", got.Without, diff)
			}
			if c.without == nil {
				c.without = c.want
			}
			got = findVisits(twoArms(), plan{}, own, cells)
			if diff := cmp.Diff(c.without, placesOf(own, got)); diff != "" || got.Without != "" {
				t.Errorf("without visits %q; without plans (-want +got):\n%s", got.Without, diff)
			}
		})
	}
}

// If an arm never follows itself in one block, all trials of all blocks count, and the first such block and arm are named.
func TestFindVisits_WithoutVisitsAllTrialsCount(t *testing.T) {
	const visits = "O1 O1 O1 N1 N1 N1"
	says := func(arm, block string) string {
		return fmt.Sprintf("no trial of arm %s in block %s follows another trial of that arm", arm, block)
	}
	for name, c := range map[string]struct {
		blocks []string
		want   string
	}{
		"forwards and backwards":          {[]string{"O1 N1 N1 O1"}, says("old", "w000-b0000")},
		"backwards and forwards":          {[]string{"N1 O1 O1 N1"}, says("new", "w000-b0000")},
		"alternating":                     {[]string{"O1 N1 O1 N1"}, says("old", "w000-b0000")},
		"one trial of each arm":           {[]string{"O1 N1"}, says("old", "w000-b0000")},
		"the first of several blocks":     {[]string{visits, "N1 O1 O1 N1", "O1 N1 N1 O1"}, says("new", "w000-b0001")},
		"one point of two":                {[]string{"O1 O1 N1 N1 O2 N2 N2 O2"}, says("old", "w000-b0000")},
		"another build is no other trial": {[]string{"O1/a O1/a N1/a N1/b"}, says("new", "w000-b0000")},
	} {
		t.Run(name, func(t *testing.T) {
			planned, own, cells := visitsOf(c.blocks...)
			for known, planned := range map[string]plan{"with plans": planned, "without plans": {}} {
				if got := findVisits(twoArms(), planned, own, cells); got.Without != c.want || len(got.Entered) > 0 {
					t.Errorf("%s: %q, want %q; %d trials do not count, want none", known, got.Without, c.want, len(got.Entered))
				}
			}
		})
	}
}

// A lost trial takes its follower with it. It does not turn a planned visit into an order without visits.
func TestFindVisits_LossesDoNotRemoveVisits(t *testing.T) {
	planned, own, cells := visitsOf("O1 O1x O1 N1x N1- N1")
	for known, planned := range map[string]plan{"with plans": planned, "without plans": {}} {
		if got := findVisits(twoArms(), planned, own, cells); got.Without != "" {
			t.Errorf("%s: %s", known, got.Without)
		}
	}
}

// Only a trial of the same execution was before a trial on its machine.
func TestFindVisits_ExecutionsAreApart(t *testing.T) {
	planned, own, cells := visitsOf("O1 O1x O1 N1 N1 N1")
	for _, attempt := range slices.Clone(own) {
		again := *attempt
		again.ID, again.Outcome = "other/"+again.Trial, record.Succeeded
		cells[&again] = cells[attempt]
		own = append(own, &again)
	}
	for known, planned := range map[string]plan{"with plans": planned, "without plans": {}} {
		got := findVisits(twoArms(), planned, own, cells)
		if diff := cmp.Diff([]string{"?.?O.." + "?..O.."}, placesOf(own, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", known, diff)
		}
	}
}

func TestFindVisits_WarmupsHaveNoPlace(t *testing.T) {
	planned, own, cells := visitsOf("O1 O1 O1 N1 N1 N1")
	for slot, arm := range []int{1, 0} {
		name := record.TrialName("w000-b0000", slot, true)
		planned.slots[name] = &plannedSlot{cell: At(0, arm), block: "w000-b0000", slot: slot, warmup: true}
		warmup := ran("w000-b0000", slot, record.Failed)
		warmup.Trial, warmup.ID, warmup.Warmup = name, "pod/"+name, true
		cells[warmup] = At(0, arm)
		own = append(own, warmup)
	}
	for known, planned := range map[string]plan{"with plans": planned, "without plans": {}} {
		got := findVisits(twoArms(), planned, own, cells)
		if diff := cmp.Diff([]string{"?..O.." + ".."}, placesOf(own, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", known, diff)
		}
	}
}

// Trials in random orders with random losses have the same places in whichever order their attempts are given.
func TestFindVisits_OrderOfAttemptsChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	entered, without := 0, 0
	for range 300 {
		var blocks []string
		for range 1 + random.IntN(3) {
			block := ""
			for range 1 + random.IntN(4) {
				word := string("ON"[random.IntN(2)]) + string("12"[random.IntN(2)])
				for range 2 + random.IntN(2) {
					block += " " + word + []string{"", "", "", "x", "t", "~", "-"}[random.IntN(7)]
				}
			}
			blocks = append(blocks, block)
		}
		planned, own, cells := visitsOf(blocks...)
		for _, attempt := range slices.Clone(own) {
			if random.IntN(3) == 0 {
				again := *attempt
				again.ID, again.Outcome = "other/"+again.Trial, []record.Outcome{record.Succeeded, record.Failed}[random.IntN(2)]
				cells[&again] = cells[attempt]
				own = append(own, &again)
			}
		}
		for known, planned := range map[string]plan{"with plans": planned, "without plans": {}} {
			want := findVisits(twoArms(), planned, own, cells)
			entered += len(want.Entered)
			if want.Without != "" {
				without++
			}
			permuted := slices.Clone(own)
			random.Shuffle(len(permuted), func(i, j int) { permuted[i], permuted[j] = permuted[j], permuted[i] })
			if got := findVisits(twoArms(), planned, permuted, cells); got.Without != want.Without || !maps.Equal(got.Entered, want.Entered) {
				t.Fatalf("%s, blocks %q: %q and %d trials that do not count, and in another order %q and %d", known, blocks, want.Without,
					len(want.Entered), got.Without, len(got.Entered))
			}
		}
	}
	if entered < 1000 || without < 10 {
		t.Errorf("%d trials do not count and %d runs are without visits, so that too little is compared", entered, without)
	}
}

// A trial that noise limits reject left the machine as its arm leaves it, so that its follower counts. A lost one has an unknown state.
func TestSelect_PlacesTrialsOfTheSimulatedRun(t *testing.T) {
	const before, follower = firstBlock + "-s00004", firstBlock + "-s00005"
	for name, c := range map[string]struct {
		alter  func(*testLedger)
		counts bool
		used   int
	}{
		"an unaltered run": {func(*testLedger) {}, true, 36},
		"beyond a noise limit": {func(l *testLedger) {
			l.each(ofTrials(before), fixture.Neighbour{Slowdown: 2, OtherWork: 0.5, Steal: 0.3}.Disturb)
		}, true, 35},
		"failed":         {func(l *testLedger) { l.each(ofTrials(before), fail) }, false, 35},
		"missing":        {func(l *testLedger) { l.remove(ofTrials(before)) }, false, 35},
		"unreadable":     {func(l *testLedger) { l.unreadable(ofTrials(before)) }, false, 35},
		"of another run": {func(l *testLedger) { l.each(ofTrials(before), func(a *record.Attempt) { a.Run.UID = "other" }) }, false, 35},
		"without a metric": {func(l *testLedger) {
			l.each(ofTrials(before), func(a *record.Attempt) { delete(a.Result.Metrics, "latency") })
		}, true, 35},
		"missing without plans":   {func(l *testLedger) { l.waves = nil; l.remove(ofTrials(before)) }, false, 35},
		"unaltered without plans": {func(l *testLedger) { l.waves = nil }, true, 36},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, 1)
			c.alter(l)
			got := l.choose()
			at := slices.IndexFunc(got.Used, func(a *record.Attempt) bool { return a.Trial == follower })
			if len(got.Used) != c.used || at < 0 {
				t.Fatalf("%d trials are used, want %d with %s", len(got.Used), c.used, follower)
			}
			if entry, entered := got.Entered[got.Used[at]]; entered == c.counts || entered && entry.Known {
				t.Errorf("%s follows the same arm: want %v; its entry is %+v", follower, c.counts, entry)
			}
			entries := 0
			for _, attempt := range got.Used {
				if _, entered := got.Entered[attempt]; entered {
					entries++
				}
			}
			// 12 visits begin, and every trial that was lost takes its follower with it.
			if want := 12 + map[bool]int{false: 1}[c.counts]; entries != want || got.Without != "" {
				t.Errorf("%d of the trials that are used do not count in figures, want %d; %s", entries, want, got.Without)
			}
		})
	}
}
