package selection

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// plans are the plans of waves, with no block.
func plans(numbers ...int) (out []record.Wave) {
	for _, n := range numbers {
		out = append(out, record.Wave{Wave: n})
	}
	return out
}

// inBlocks is an attempt of each block, of a run.
func inBlocks(uid string, blocks ...string) (out []record.Attempt) {
	for _, block := range blocks {
		wave, _ := record.WaveOf(block)
		out = append(out, record.Attempt{Run: record.Run{UID: uid}, Block: block, Wave: wave})
	}
	return out
}

func TestFindMissingWaves_NamesEachGap(t *testing.T) {
	const through = 2
	unread := func(key string) []record.Problem { return []record.Problem{{Source: record.Source{Key: key}}} }
	for name, c := range map[string]struct {
		evidence record.Evidence
		want     []string
	}{
		"all plans are there":                    {record.Evidence{Waves: plans(0, 1, 2)}, nil},
		"one between others is missing":          {record.Evidence{Waves: plans(0, 2)}, []string{record.WaveKey(1)}},
		"the last one may not have been":         {record.Evidence{Waves: plans(0, 1)}, nil},
		"later waves are not read":               {record.Evidence{Waves: plans(0, 5)}, nil},
		"the newest plan cannot be read":         {record.Evidence{Waves: plans(0, 1), Problems: unread(record.WaveKey(2))}, []string{record.WaveKey(2)}},
		"a later one cannot":                     {record.Evidence{Waves: plans(0, 1), Problems: unread(record.WaveKey(3))}, nil},
		"something else cannot":                  {record.Evidence{Waves: plans(0), Problems: unread("attempts/w002-b0000/x.json")}, nil},
		"attempts of it are there":               {record.Evidence{Waves: plans(0), Attempts: inBlocks("u", "w001-b0001")}, []string{record.WaveKey(1)}},
		"another run's are":                      {record.Evidence{Waves: plans(0), Attempts: inBlocks("o", "w001-b0001")}, nil},
		"attempts without plans":                 {record.Evidence{Attempts: inBlocks("u", "w000-b0000", "w001-b0001")}, nil},
		"attempts without plans, and one wave's": {record.Evidence{Attempts: inBlocks("u", "w001-b0001")}, []string{record.WaveKey(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Run.UID = "u"
			if diff := cmp.Diff(c.want, findMissingWaves(exp, c.evidence, through).gaps); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindMissingBlocks_NamesTheFirstGap(t *testing.T) {
	const through = 1
	for name, c := range map[string]struct {
		planned  []string
		evidence record.Evidence
		want     string
	}{
		"all are there":                         {[]string{"w000-b0000", "w000-b0001", "w001-b0002"}, record.Evidence{}, ""},
		"one is missing":                        {[]string{"w000-b0000", "w001-b0002"}, record.Evidence{}, "block 1: it is missing, and the next one is w001-b0002"},
		"the first is":                          {[]string{"w000-b0001"}, record.Evidence{}, "block 0: it is missing, and the next one is w000-b0001"},
		"a number is there twice":               {[]string{"w000-b0000", "w000-b0001", "w001-b0001"}, record.Evidence{}, "w001-b0001: an earlier wave has its number"},
		"a later wave's says nothing":           {[]string{"w000-b0000", "w002-b0007"}, record.Evidence{}, ""},
		"this wave's does":                      {[]string{"w000-b0000", "w001-b0002"}, record.Evidence{}, "block 1"},
		"plans name the blocks":                 {[]string{"w000-b0000"}, record.Evidence{Attempts: inBlocks("u", "w000-b0004")}, ""},
		"without plans attempts do":             {nil, record.Evidence{Attempts: inBlocks("u", "w000-b0000", "w000-b0002")}, "block 1"},
		"but not another run's":                 {nil, record.Evidence{Attempts: append(inBlocks("u", "w000-b0000"), inBlocks("o", "w000-b0002")...)}, ""},
		"nor unreadable objects of other kinds": {nil, record.Evidence{Attempts: inBlocks("u", "w000-b0000"), Problems: []record.Problem{{Source: record.Source{Key: "waves/x/wave.json"}}}}, ""},
		"start markers name blocks": {
			nil, record.Evidence{Attempts: inBlocks("u", "w000-b0000"), Unfinished: []record.Started{{Block: "w000-b0002"}}}, "block 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Run.UID = "u"
			planned := plan{known: c.planned != nil, purposes: Purposes{}}
			for _, block := range c.planned {
				planned.purposes[block] = record.Screen
			}
			found := findMissingBlocks(exp, planned, c.evidence, through)
			got := ""
			for i, gap := range found.gaps {
				got += gap + ": " + found.excluded[i].Reason
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFindUnplannedWarmups_NamesTheFirstBlock(t *testing.T) {
	slots := func(warmups map[string]plannedSlot) plan {
		out := plan{known: true, slots: map[string]*plannedSlot{}}
		for name, slot := range warmups {
			slot.warmup = !strings.HasSuffix(name, "measured")
			out.slots[name] = &slot
		}
		return out
	}
	of := func(block string, point, arm int) plannedSlot { return plannedSlot{cell: At(point, arm), block: block} }
	for name, c := range map[string]struct {
		planned plan
		want    string
	}{
		"as many as the design asks for": {slots(map[string]plannedSlot{"a": of("w000-b0000", 0, 0), "b": of("w000-b0000", 0, 1), "c measured": of("w000-b0000", 0, 0)}), ""},
		"one more":                       {slots(map[string]plannedSlot{"a": of("w000-b0000", 0, 1), "b": of("w000-b0000", 0, 1)}), "w000-b0000: it has 2 warm-ups of arm new"},
		"in two blocks": {slots(map[string]plannedSlot{
			"a": of("w000-b0001", 0, 0), "b": of("w000-b0001", 0, 0), "c": of("w000-b0000", 0, 1), "d": of("w000-b0000", 0, 1), "e": of("w000-b0000", 0, 1),
		}), "w000-b0000: it has 3 warm-ups of arm new"},
		"of two arms": {slots(map[string]plannedSlot{
			"a": of("w000-b0000", 0, 1), "b": of("w000-b0000", 0, 1), "c": of("w000-b0000", 1, 0), "d": of("w000-b0000", 1, 0), "e": of("w000-b0000", 1, 0),
		}), "w000-b0000: it has 3 warm-ups of arm old"},
		"at two points": {slots(map[string]plannedSlot{
			"a": of("w000-b0000", 1, 1), "b": of("w000-b0000", 1, 1), "c": of("w000-b0000", 0, 1), "d": of("w000-b0000", 0, 1), "e": of("w000-b0000", 0, 1),
		}), "w000-b0000: it has 3 warm-ups of arm new"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Plan.Design = experiment.Design{WarmupTrials: 1}
			// The order of a map differs from run to run.
			for range 20 {
				found := findUnplannedWarmups(exp, c.planned, nil, nil)
				got := ""
				for i, gap := range found.gaps {
					got += gap + ": " + found.excluded[i].Reason
				}
				if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
					t.Fatalf("%q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestSealedObjects_ChangedAndMissing(t *testing.T) {
	key := func(name string) string { return "attempts/w000-b0000/" + name + ".json" }
	attempt := func(name, sum string) *record.Attempt {
		return &record.Attempt{ID: name, Source: record.Source{Key: key(name), SHA256: sum}}
	}
	sealed := map[string]string{key("same"): "1", key("changed"): "2", key("gone"): "3"}
	attempts := []*record.Attempt{attempt("same", "1"), attempt("changed", "9"), attempt("new", "4")}
	sums := checksumsOf(attempts, nil)
	if diff := cmp.Diff([]*record.Attempt{attempts[0], attempts[2]}, rejectAltered(sealed, attempts).admitted); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{key("changed"), key("gone")}, alteredObjects(sealed, sums)); diff != "" {
		t.Errorf("altered (-want +got):\n%s", diff)
	}
	if missing := findMissingObjects(sealed, sums); len(missing) != 1 || missing[0].Attempt != key("gone") {
		t.Errorf("missing are %+v, want %s", missing, key("gone"))
	}
}

// A slot of a point that the experiment does not have is no trial of it.
func TestIndexPlan_SkipsUnknownPoints(t *testing.T) {
	exp := twoArms()
	wave := record.Wave{
		Points: []record.Point{{Key: "size=1"}, {Key: "size=9"}}, Arms: exp.Arms,
		Cells:  []record.Cell{{Point: 0, Arm: 1}, {Point: 1, Arm: 1}},
		Blocks: []record.Block{{ID: "w000-b0000", Order: []int{0, 1}, Warmup: []int{1, 0}}},
	}
	planned, _ := indexPlan(exp, []record.Wave{wave}, 0)
	var got []string
	for name, slot := range planned.slots {
		if got = append(got, name); slot.cell != At(0, 1) {
			t.Errorf("trial %s is of %v", name, slot.cell)
		}
	}
	if len(got) != 2 || !planned.known {
		t.Errorf("trials %q", got)
	}
}

func TestFindCopy_SameProcessInTwoBlocks(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	at := func(block string, slot, second int, took float64) *record.Attempt {
		out := ran(block, slot, record.Succeeded)
		out.StartedAt, out.DurationSeconds = start.Add(time.Duration(second)*time.Second), took
		return out
	}
	for name, c := range map[string]struct {
		used []*record.Attempt
		want string
	}{
		"blocks after each other": {[]*record.Attempt{at("w000-b0000", 0, 0, 5), at("w000-b0000", 1, 6, 4), at("w000-b0001", 0, 12, 5), at("w000-b0001", 1, 18, 4)}, ""},
		"one trial of the first one in the second": {
			[]*record.Attempt{at("w000-b0000", 0, 0, 5), at("w000-b0000", 1, 6, 4), at("w000-b0001", 0, 0, 5), at("w000-b0001", 1, 18, 4)},
			"trials w000-b0000-s00000 and w000-b0001-s00000 began at the same instant and took as long",
		},
		"one that began with it and took longer": {
			[]*record.Attempt{at("w000-b0000", 0, 0, 5), at("w000-b0000", 1, 6, 4), at("w000-b0001", 0, 0, 6), at("w000-b0001", 1, 18, 4)}, "",
		},
		"blocks that do not say when their trials began": {
			[]*record.Attempt{at("w000-b0000", 0, 0, 5), at("w000-b0000", 1, 0, 5), at("w000-b0001", 0, 0, 5), at("w000-b0001", 1, 0, 5)}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findCopy(c.used); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
