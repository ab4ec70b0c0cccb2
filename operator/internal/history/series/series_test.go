package series

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/test/cputime"
)

var (
	key   = Key{Project: "search", Benchmark: "index", Metric: "time", Statistic: "median"}
	start = time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
)

// measured returns the record of night n, of revision r<n>.
func measured(n int, edits ...func(*Record)) Record {
	r := Record{
		Kind: Measured, ID: fmt.Sprintf("run-%03d", n), Analysis: 1, Schedule: "nightly", Sequence: int64(n), At: start.AddDate(0, 0, n),
		Head: fmt.Sprintf("r%d", n), Anchor: "v1", Ratio: Estimate{LogRatio: 0.001 * float64(n), SE: 0.003, DF: 9, Blocks: 10},
		Machine: "m1", Workload: "w1", Ledger: fmt.Sprintf("file:///ledgers/run-%03d", n),
	}
	if n > 0 {
		r.Predecessor = fmt.Sprintf("r%d", n-1)
		r.Step = &Estimate{LogRatio: 0.001, SE: 0.003, DF: 9, Blocks: 10}
	}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func bridge(n int, head, anchor string, logRatio float64, edits ...func(*Record)) Record {
	return measured(n, append([]func(*Record){func(r *Record) {
		r.Kind, r.Head, r.Anchor, r.Ratio.LogRatio, r.Step, r.Predecessor = Bridge, head, anchor, logRatio, nil, ""
		r.ID = "bridge-" + r.ID
	}}, edits...)...)
}

func nights(from, to int, edits ...func(*Record)) []Record {
	var out []Record
	for n := from; n < to; n++ {
		out = append(out, measured(n, edits...))
	}
	return out
}

// anchored sets another anchor in a record, without a predecessor.
func anchored(anchor string) func(*Record) {
	return func(r *Record) { r.Anchor, r.Predecessor, r.Step = anchor, "", nil }
}

func TestOf_PointsSegmentsAndProblems(t *testing.T) {
	for name, tt := range map[string]struct {
		records  []Record
		segments []string // Sequence numbers of the points.
		because  string   // Of the newest segment.
		problems []string
		gaps     int
	}{
		"every night is a point":        {records: nights(0, 4), segments: []string{"0 1 2 3"}},
		"a repeated record counts once": {records: append(nights(0, 3), nights(1, 3)...), segments: []string{"0 1 2"}},
		"the newest analysis of a run counts": {
			records:  append(nights(0, 2), measured(1, func(r *Record) { r.Analysis, r.Ratio.LogRatio = 2, 0.5 })),
			segments: []string{"0 1"},
		},
		"an analysis with two different contents is a gap until a newer analysis": {
			records:  append(nights(0, 3), measured(1, func(r *Record) { r.Ratio.LogRatio = 0.5 })),
			segments: []string{"0 2"}, gaps: 1, problems: []string{
				"run-001: analysis 1 of this run was recorded twice",
				`run-002: its predecessor is "r1", but the preceding run measured "r0"`,
			},
		},
		"another machine starts a segment": {
			records:  append(nights(0, 2), nights(2, 4, func(r *Record) { r.Machine = "m2" })...),
			segments: []string{"0 1", "2 3"}, because: "another machine: m2 instead of m1",
		},
		"a changed template starts a segment": {
			records:  append(nights(0, 2), nights(2, 4, func(r *Record) { r.Workload = "w2" })...),
			segments: []string{"0 1", "2 3"}, because: "another workload: w2 instead of w1",
		},
		"a new anchor without a bridge starts a segment": {
			records:  append(nights(0, 2), nights(2, 4, anchored("v2"))...),
			segments: []string{"0 1", "2 3"}, because: "another anchor: v2, and no bridge leads from it to v1",
		},
		"a bridge continues the segment": {
			records:  append(append(nights(0, 2), bridge(2, "v2", "v1", 0.1)), nights(3, 5, anchored("v2"))...),
			segments: []string{"0 1 3 4"},
		},
		"a bridge on another machine is ignored": {
			records:  append(append(nights(0, 2), bridge(2, "v2", "v1", 0.1, func(r *Record) { r.Machine = "m2" })), nights(3, 5, anchored("v2"))...),
			segments: []string{"0 1", "3 4"}, because: "another anchor: v2, and no bridge leads from it to v1",
		},
		"circular bridges are ignored": {
			records:  append(append(nights(0, 2), bridge(2, "v2", "v3", 0.1), bridge(3, "v3", "v2", 0.1)), nights(4, 5, anchored("v3"))...),
			segments: []string{"0 1", "4"}, because: "another anchor: v3, and no bridge leads from it to v1",
		},
		"a clock that jumps back does not change the order": {
			records:  append(nights(0, 2), measured(2, func(r *Record) { r.At = start.Add(time.Hour) })),
			segments: []string{"0 1 2"}, problems: []string{"run-002: its time 2026-01-01T04:00:00Z is before 2026-01-02T03:00:00Z"},
		},
		"a missing tag is a gap": {
			records:  append(nights(0, 2), measured(2, func(r *Record) { r.Kind, r.Head, r.Reason = Gap, "", "tag main has vanished" })),
			segments: []string{"0 1"}, gaps: 1,
		},
		"a repeated revision is a second point": {
			records:  append(nights(0, 2), measured(2, func(r *Record) { r.Head, r.Predecessor = "r1", "r0" })),
			segments: []string{"0 1 2"},
		},
		"a rewritten history counts and is a problem": {
			records:  append(nights(0, 2), measured(2, func(r *Record) { r.Predecessor = "r1'" })),
			segments: []string{"0 1 2"}, problems: []string{`run-002: its predecessor is "r1'", but the preceding run measured "r1"`},
		},
		"records of a second schedule are stored but not counted": {
			records:  append(nights(0, 2), measured(1, func(r *Record) { r.ID, r.Schedule = "weekly-1", "weekly" })),
			segments: []string{"0 1"}, problems: []string{`weekly-1: schedule "weekly" also measures this series, which belongs to "nightly"`},
		},
		"a repeated sequence number counts twice": {
			records:  append(nights(0, 2), measured(1, func(r *Record) { r.ID = "run-001b" })),
			segments: []string{"0 1 1"}, problems: []string{`run-001b: sequence number 1 was assigned twice, also to "run-001"`},
		},
		"a record with an invalid number is rejected": {
			records:  append(nights(0, 2), measured(2, func(r *Record) { r.Ratio.LogRatio = math.NaN() })),
			segments: []string{"0 1"}, problems: []string{`run-002: record "run-002": ratio.logRatio: found NaN`},
		},
		"a ratio from one block is rejected": {
			records:  append(nights(0, 2), measured(2, func(r *Record) { r.Ratio.Blocks, r.Ratio.DF = 1, 0 })),
			segments: []string{"0 1"}, problems: []string{`run-002: record "run-002": ratio.df: found 0`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(key, tt.records)
			if err != nil {
				t.Fatal(err)
			}
			var segments []string
			for _, s := range got.Segments {
				var points []string
				for _, p := range s.Points {
					points = append(points, fmt.Sprint(p.Sequence))
				}
				segments = append(segments, strings.Join(points, " "))
			}
			if diff := cmp.Diff(tt.segments, segments); diff != "" {
				t.Error(diff)
			}
			if tt.because != "" && got.Current().Because != tt.because {
				t.Errorf("because %q", got.Current().Because)
			}
			if len(got.Gaps) != tt.gaps {
				t.Errorf("%d gaps", len(got.Gaps))
			}
			if len(got.Problems) != len(tt.problems) {
				t.Fatalf("problems: %q", got.Problems)
			}
			for i, want := range tt.problems {
				if said := got.Problems[i].ID + ": " + got.Problems[i].What; !strings.HasPrefix(said, want) {
					t.Errorf("%q\nwant %q", said, want)
				}
			}
		})
	}
}

func TestOf_RatioOverABridgeRefersToTheFirstAnchor(t *testing.T) {
	got, err := Of(key, append(append(nights(0, 2), bridge(2, "v2", "v1", 0.1)), measured(3, anchored("v2"))))
	if err != nil {
		t.Fatal(err)
	}
	point := got.Current().Points[2].Ratio
	want := Estimate{LogRatio: 0.103, SE: 0.003 * math.Sqrt2, DF: 18, Blocks: 10}
	if math.Abs(point.LogRatio-want.LogRatio) > 1e-12 || math.Abs(point.SE-want.SE) > 1e-12 || math.Abs(point.DF-want.DF) > 1e-9 {
		t.Errorf("%+v, want %+v", point, want)
	}
	if !got.Current().Points[1].At.Equal(start.AddDate(0, 0, 1)) || got.Current().Anchor != "v1" {
		t.Errorf("%+v", got.Current())
	}
}

// messy returns records with every kind of problem.
func messy(random *rand.Rand) []Record {
	var out []Record
	for n := range 5 + random.IntN(20) {
		r := measured(n)
		switch random.IntN(12) {
		case 0:
			r.Machine = "m2"
		case 1:
			r.Schedule = "other"
		case 2:
			r.Kind, r.Reason = Gap, "no image"
		case 3:
			out = append(out, bridge(n, "v2", "v1", 0.1))
		case 4:
			r.Anchor = "v2"
		case 5:
			r.Sequence--
		case 6:
			r.At = r.At.Add(-72 * time.Hour)
		case 7:
			again := r
			again.Analysis, again.Ratio.LogRatio = int64(1+random.IntN(2)), random.NormFloat64()
			out = append(out, again)
		case 8:
			r.Ratio.SE = math.MaxFloat64
		}
		out = append(out, r)
	}
	return out
}

// A history may come from an untrusted source; the chain of any two valid estimates must be finite.
func TestChain_ValidEstimatesHaveAFiniteChain(t *testing.T) {
	numbers := []float64{0, leastSE, 1e-30, 1e-3, 1, 92, mostSE, mostDF}
	random := rand.New(rand.NewPCG(5, 6))
	of := func(most float64) float64 { return min(numbers[random.IntN(len(numbers))], most) }
	estimate := func() Estimate {
		out := Estimate{
			LogRatio: of(mostLogRatio) * float64(1-2*random.IntN(2)), SE: of(mostSE), DF: max(1, of(mostDF)), Blocks: 2 + random.IntN(9),
		}
		if err := out.Check(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 20_000 {
		a, b := estimate(), estimate()
		got := Chain(a, b)
		if !(math.Abs(got.LogRatio) <= 2*mostLogRatio && got.SE <= 2*mostSE && got.DF <= 3*mostDF) {
			t.Fatalf("%+v and %+v are %+v", a, b, got)
		}
		if got.SE < max(a.SE, b.SE)*(1-1e-9) || got.DF < min(a.DF, b.DF)*(1-1e-9) {
			t.Fatalf("%+v and %+v are %+v, which is more precise than both", a, b, got)
		}
	}
}

func TestOf_IndependentOfOrderAndRepetition(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		records := messy(random)
		want, err := Of(key, records)
		if err != nil {
			t.Fatal(err)
		}
		file, err := Encode(key, records)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := slices.Clone(records)
		for range random.IntN(10) {
			shuffled = append(shuffled, records[random.IntN(len(records))])
		}
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		// In parts, each stored in a file, as a schedule appends them.
		var kept []Record
		for len(shuffled) > 0 {
			n := 1 + random.IntN(len(shuffled))
			kept = Merge(kept, shuffled[:n])
			shuffled = shuffled[n:]
			data, err := Encode(key, kept)
			if err != nil {
				t.Fatal(err)
			}
			if kept, err = Decode(key, data); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Of(key, kept)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if again, err := Encode(key, kept); err != nil || !slices.Equal(again, file) {
			t.Fatalf("seed %d: the files differ: %v", seed, err)
		}
		accounted := map[string]bool{}
		for _, s := range got.Segments {
			for _, p := range s.Points {
				if accounted[p.ID] {
					t.Fatalf("seed %d: %s counts twice", seed, p.ID)
				}
				accounted[p.ID] = true
			}
		}
		for _, g := range got.Gaps {
			accounted[g.ID] = true
		}
		for _, p := range got.Problems {
			accounted[p.ID] = true
		}
		for _, r := range records {
			if !accounted[r.ID] && r.Kind != Bridge {
				t.Fatalf("seed %d: %s is lost", seed, r.ID)
			}
		}
	}
}

func TestDecode_RefusesAnotherSeries(t *testing.T) {
	data, err := Encode(key, nights(0, 3))
	if err != nil {
		t.Fatal(err)
	}
	other := key
	other.Point = "batchSize=8"
	if _, err := Decode(other, data); err == nil || !strings.Contains(err.Error(), "belongs to series \"search index time.median\"") {
		t.Errorf("%v", err)
	}
	if _, err := Decode(key, data[:len(data)/2]); err == nil || !strings.Contains(err.Error(), "rebuild it from the ledgers") {
		t.Errorf("%v", err)
	}
	if other.ID() == key.ID() || (Key{Project: "a", Benchmark: "bc"}).ID() == (Key{Project: "ab", Benchmark: "c"}).ID() {
		t.Error("two keys have the same ID")
	}
}

func TestKey_CheckRequiresAllFields(t *testing.T) {
	for field, k := range map[string]Key{
		"project is empty": {Benchmark: "b", Metric: "m", Statistic: "s"}, "benchmark is empty": {Project: "p", Metric: "m", Statistic: "s"},
		"metric is empty": {Project: "p", Benchmark: "b", Statistic: "s"}, "statistic is empty": {Project: "p", Benchmark: "b", Metric: "m"},
	} {
		if _, err := Of(k, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want %q", err, field)
		}
	}
}

func TestRetain_ThinsByAge(t *testing.T) {
	day := 24 * time.Hour
	policy := Retention{Full: 30 * day, Every: 7 * day, Thinned: 200 * day}
	records := append(nights(0, 300), bridge(5, "v2", "v1", 0))
	now := start.AddDate(0, 0, 299)
	stay, gone := policy.Retain(records, now, map[string]bool{"run-020": true})
	if len(stay)+len(gone) != len(records) {
		t.Fatalf("%d retained and %d deleted of %d", len(stay), len(gone), len(records))
	}
	count := map[string]int{}
	for _, r := range stay {
		age := now.Sub(r.At)
		switch {
		case age <= policy.Full:
			count["full"]++
		case age <= policy.Thinned:
			count["thinned"]++
		default:
			count[r.ID]++
		}
	}
	// run-000 identifies the series.
	if want := map[string]int{"full": 31, "thinned": 24, "run-000": 1, "run-020": 1, "bridge-run-005": 1}; !cmp.Equal(want, count) {
		t.Error(cmp.Diff(want, count))
	}
	if again, more := policy.Retain(stay, now, map[string]bool{"run-020": true}); len(more) != 0 || !cmp.Equal(again, stay) {
		t.Errorf("a second retention deletes %d more", len(more))
	}
	later, _ := policy.Retain(stay, now.Add(day), map[string]bool{"run-020": true})
	direct, _ := policy.Retain(records, now.Add(day), map[string]bool{"run-020": true})
	if diff := cmp.Diff(direct, later); diff != "" {
		t.Errorf("retaining every day differs from retaining once: %s", diff)
	}
	if all, _ := (Retention{}).Retain(records, now, nil); len(all) != len(records) {
		t.Errorf("without a policy %d of %d are retained", len(all), len(records))
	}
}

// The state that the next run and readers take from a series is independent of the number of retained records.
func TestRetain_PreservesTheStateForTheNextRun(t *testing.T) {
	const day = 24 * time.Hour
	next := func(records []Record) string {
		s, err := Of(key, records)
		if err != nil {
			t.Fatal(err)
		}
		image, newest := "", ""
		for _, r := range records {
			if r.Kind != Gap && r.Head == s.Anchor && r.Schedule == s.Schedule && r.Image != "" {
				image = "known"
			}
		}
		if s.Newest() != nil {
			newest = fmt.Sprint(s.Newest().ID, s.Newest().Step)
		}
		return fmt.Sprint(s.Schedule, s.Number, s.Anchor, image, newest, len(s.Key.Parts()))
	}
	seeds := uint64(400)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 19))
		anchor, image := "v1", ""
		var records []Record
		for n := range 1 + random.IntN(120) {
			edit := func(r *Record) {
				r.Anchor, r.Image, r.Step = anchor, image, nil
				if random.IntN(10) == 0 {
					r.Schedule = "second"
				}
				if random.IntN(10) == 0 {
					r.Analysis = 2
				}
				if random.IntN(10) == 0 {
					r.Kind, r.Reason = Gap, "nothing was measured"
				}
				if random.IntN(20) == 0 {
					r.At = start.AddDate(0, 0, -random.IntN(100))
				}
			}
			records = append(records, measured(n, edit))
			switch random.IntN(12) {
			case 0:
				image = fmt.Sprint("image@", n)
			case 1: // Analyzed again, with another result.
				records = append(records, measured(n, edit, func(r *Record) { r.Analysis, r.Ratio.LogRatio = 3, 0.5 }))
			case 2:
				records = append(records, bridge(n, fmt.Sprint("v", n+2), anchor, 0))
				anchor = fmt.Sprint("v", n+2)
			case 3:
				anchor = fmt.Sprint("r", n)
			}
		}
		records = Merge(records, nil)
		policy := Retention{Full: time.Duration(1+random.IntN(30)) * day, Every: time.Duration(1+random.IntN(20)) * day}
		if random.IntN(2) == 0 {
			policy.Thinned = policy.Full + policy.Every + time.Duration(random.IntN(60))*day
		}
		rests := map[string]bool{records[random.IntN(len(records))].ID: true, records[random.IntN(len(records))].ID: true}
		before := now(records)
		for late := range 5 {
			at := before.AddDate(0, 0, 40*late)
			stay, gone := policy.Retain(records, at, rests)
			if got, want := next(stay), next(records); got != want {
				t.Fatalf("seed %d, %d of %d records retained: %s, want %s", seed, len(stay), len(records), got, want)
			}
			kept := map[string]bool{}
			for _, r := range stay {
				kept[r.ID] = true
			}
			for _, r := range gone {
				if kept[r.ID] || rests[r.ID] || r.Kind == Bridge {
					t.Fatalf("seed %d: %s %s, analysis %d, is deleted", seed, r.Kind, r.ID, r.Analysis)
				}
			}
			again, more := policy.Retain(stay, at, rests)
			if len(more) > 0 || !cmp.Equal(again, stay) {
				t.Fatalf("seed %d: a second retention deletes %d more", seed, len(more))
			}
			later, _ := policy.Retain(stay, at.Add(day), rests)
			if direct, _ := policy.Retain(records, at.Add(day), rests); !cmp.Equal(direct, later) {
				t.Fatalf("seed %d: retaining every day differs from retaining once: %s", seed, cmp.Diff(direct, later))
			}
		}
	}
}

// now returns the time of the newest record.
func now(records []Record) time.Time {
	return slices.MaxFunc(records, func(a, b Record) int { return a.At.Compare(b.At) }).At
}

func TestRetention_CheckRefusesContradictions(t *testing.T) {
	day := 24 * time.Hour
	for want, p := range map[string]Retention{
		"none may be below 0": {Full: -day}, "every is 0": {Full: day}, "full is unlimited": {Thinned: day},
		"is less than full": {Full: 2 * day, Every: day, Thinned: day}, "no whole span": {Full: day, Every: 2 * day, Thinned: 2 * day},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (Retention{Full: day, Every: day, Thinned: 2 * day}).Check(); err != nil {
		t.Error(err)
	}
}

// TestOf_BridgingRunIsAPointAndABridge changes the anchor in a run that also measures a point, as schedules do.
func TestOf_BridgingRunIsAPointAndABridge(t *testing.T) {
	bridging := bridge(2, "v2", "v1", 0.1, func(r *Record) { r.ID = BridgeID("run-002") })
	for name, tt := range map[string]struct {
		records []Record
		anchor  string
		ratio   float64 // Of the newest point.
	}{
		"the run compares with the old anchor":      {append(nights(0, 3), bridging), "v2", 0.002},
		"the next run compares with the new anchor": {append(nights(0, 4, func(r *Record) { r.Anchor = map[bool]string{true: "v2", false: "v1"}[r.Sequence == 3] }), bridging), "v2", 0.103},
		"remeasured against the new anchor": {
			append(nights(0, 3), bridging, measured(2, func(r *Record) { r.Analysis, r.Anchor, r.Ratio.LogRatio = 2, "v2", 0.5 })), "v2", 0.6,
		},
		"a failed bridge is a gap and does not change the anchor": {
			append(nights(0, 3), measured(2, func(r *Record) { r.Kind, r.ID, r.Reason = Gap, BridgeID("run-002"), "spoilt" })), "v1", 0.002,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Of(key, tt.records)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Segments) != 1 || len(s.Problems) > 0 || s.Anchor != tt.anchor {
				t.Fatalf("%d segments, problems %v, anchor %q", len(s.Segments), s.Problems, s.Anchor)
			}
			newest := s.Newest()
			if got := newest.Ratio.LogRatio; math.Abs(got-tt.ratio) > 1e-12 {
				t.Errorf("the newest point is %v, want %v", got, tt.ratio)
			}
			if s.Number != newest.Sequence {
				t.Errorf("the highest number is %d, and the newest point has %d", s.Number, newest.Sequence)
			}
		})
	}
}

func TestMerge_MovedLedgerChangesNoRecord(t *testing.T) {
	moved := nights(0, 3, func(r *Record) { r.Ledger = "s3://elsewhere/" + r.ID })
	for name, merged := range map[string][]Record{"there first": Merge(nights(0, 3), moved), "here first": Merge(moved, nights(0, 3))} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Merge(nights(0, 3), nil), merged); diff != "" {
				t.Error(diff)
			}
			s, err := Of(key, append(nights(0, 3), moved...))
			if err != nil || len(s.Problems) > 0 || len(s.Segments[0].Points) != 3 {
				t.Errorf("%v, %+v", err, s)
			}
		})
	}
}

func TestKeyOf_ReadsTheKeyOfAFile(t *testing.T) {
	raw, err := Encode(key, nights(0, 3))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := KeyOf(raw); err != nil || got != key {
		t.Errorf("key %q (%v)", got, err)
	}
	if _, err := KeyOf([]byte("arbitrary")); err == nil {
		t.Error("arbitrary bytes have a key")
	}
}

// A file has an arbitrary number of records, each of which may conflict with all others.
func TestOf_LinearTime(t *testing.T) {
	of := func(count int, make func(n int) Record) []Record {
		var out []Record
		for n := range count {
			out = append(out, make(n))
		}
		return out
	}
	long := strings.Repeat("long ", 100)
	for name, records := range map[string][]Record{
		"that are invalid": of(mostRecords, func(n int) Record { return measured(n, func(r *Record) { r.Machine = "" }) }),
		"that were recorded twice": of(mostRecords, func(n int) Record {
			return measured(n/2, func(r *Record) { r.Ratio.SE += float64(n%2) / 100 })
		}),
		"of one run": of(mostRecords, func(n int) Record {
			return measured(1, func(r *Record) { r.Head, r.Image, r.Ratio.SE = long, long, float64(n*7919%mostRecords) })
		}),
		"over the maximum number of bridges": of(mostRecords/2, func(n int) Record {
			if n < mostRecords/4 {
				return bridge(n, fmt.Sprint("a", n+1), fmt.Sprint("a", n), 0)
			}
			return measured(n, anchored(fmt.Sprint("a", mostRecords/4)))
		}),
		"beside bridges of another machine": of(mostRecords, func(n int) Record {
			if n < mostRecords/2 {
				return bridge(n, "b", "a", 0, func(r *Record) { r.Machine = "other" })
			}
			return measured(n, anchored(string(rune('a'+n%2))))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(name, "of one run") { // The first point is of the first anchor.
				records = append(records, measured(0, anchored("a0"), func(r *Record) { r.Sequence, r.ID = 0, "first" }))
			}
			used := cputime.Start()
			if _, err := Of(key, records); err != nil {
				t.Fatal(err)
			}
			if took := used(); took > 12*time.Second {
				t.Errorf("%d records take %s", len(records), took)
			} else {
				t.Log(took)
			}
		})
	}
}

func TestOf_CircularBridgesAreIgnored(t *testing.T) {
	got, err := Of(key, []Record{measured(0), bridge(1, "v2", "v3", 0.1), bridge(2, "v3", "v2", 0.1), measured(3, anchored("v2"))})
	if err != nil || len(got.Segments) != 2 || !strings.Contains(got.Segments[1].Because, "no bridge leads from it to v1") {
		t.Errorf("%+v, %v", got.Segments, err)
	}
	var far []Record
	for n := range 365 {
		far = append(far, bridge(n, fmt.Sprint("v", n+2), fmt.Sprint("v", n+1), 0.001, func(r *Record) { r.Sequence++ }))
	}
	got, err = Of(key, append(far, measured(0), measured(366, anchored("v366"))))
	if err != nil || len(got.Segments) != 1 || math.Abs(got.Newest().Ratio.LogRatio-0.366-0.365) > 1e-9 {
		t.Errorf("over a bridge per day of a year: %d segments, %+v, %v", len(got.Segments), got.Newest(), err)
	}
}

// A history may have any numbers; all derived figures must be finite, because JSON cannot represent others.
func TestOf_FiguresAreFinite(t *testing.T) {
	values := []float64{
		0, 1e-3, 1, 700, 1e3, 1e9, 1e150, 1e154, 1e300, math.MaxFloat64, 1e-17, 1e-80, 1e-160, math.SmallestNonzeroFloat64,
		math.Inf(1), math.NaN(),
	}
	taken := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 4))
		pick := func(usual float64) float64 {
			if random.IntN(3) > 0 {
				return usual
			}
			return values[random.IntN(len(values))]
		}
		estimate := func() Estimate {
			return Estimate{LogRatio: pick(0.01) * float64(1-2*random.IntN(2)), SE: pick(0.003), DF: pick(9), Blocks: 10}
		}
		var records []Record
		anchor := "v1"
		for n := range 4 + random.IntN(20) {
			records = append(records, measured(n, anchored(anchor), func(r *Record) { r.Ratio = estimate() }))
			if random.IntN(4) == 0 {
				next := fmt.Sprint("v", n+2)
				records = append(records, bridge(n, next, anchor, 0, func(r *Record) { r.Ratio = estimate() }))
				anchor = next
			}
		}
		s, err := Of(key, records)
		if err != nil {
			t.Fatal(err)
		}
		for _, segment := range s.Segments {
			for _, p := range segment.Points {
				taken++
				for _, figure := range []float64{p.Ratio.LogRatio, p.Ratio.SE, p.Ratio.DF, Ratio(p.Ratio.LogRatio)} {
					if math.IsNaN(figure) || math.IsInf(figure, 0) {
						t.Fatalf("seed %d: point %s is %+v", seed, p.ID, p.Ratio)
					}
				}
			}
		}
	}
	if taken < 2000 {
		t.Errorf("only %d points were accepted, too few for this test", taken)
	}
}

// A confirming run measures the revision that changed again, without its predecessor.
func TestOf_NewerAnalysisRetainsTheStep(t *testing.T) {
	key := Key{Project: "p", Benchmark: "b", Metric: "latency", Statistic: "median"}
	at := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	estimate := func(log float64) Estimate { return Estimate{LogRatio: log, SE: 0.01, DF: 9, Blocks: 10} }
	step := estimate(0.05)
	first := Record{
		Kind: Measured, ID: "r2", Analysis: 1, Schedule: "s", Sequence: 2, At: at, Head: "b", Anchor: "a", Machine: "m", Workload: "w",
		Ratio: estimate(0.05), Predecessor: "a", Step: &step,
	}
	second := first
	second.Analysis, second.Ratio, second.Predecessor, second.Step = 2, estimate(0.04), "", nil
	other := second
	other.Head = "c"
	for name, tc := range map[string]struct {
		records []Record
		step    bool
		kind    Kind
	}{
		"in order":            {[]Record{first, second}, true, Measured},
		"in another order":    {[]Record{second, first, second}, true, Measured},
		"of another revision": {[]Record{first, other}, false, Measured},
		"twice with different content": {[]Record{first, second, func() Record {
			twin := second
			twin.Ratio = estimate(0.06)
			return twin
		}()}, false, Gap},
	} {
		got, err := Of(key, tc.records)
		if err != nil {
			t.Fatal(err)
		}
		if tc.kind == Gap {
			if len(got.Gaps) != 1 || len(got.Segments) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		newest := got.Newest()
		if (newest.Step != nil) != tc.step || len(got.Problems) > 0 || newest.Ratio.LogRatio != 0.04 {
			t.Errorf("%s: %+v, %+v", name, newest, got.Problems)
		}
	}
}
