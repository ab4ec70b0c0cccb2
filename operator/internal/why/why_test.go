package why

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// profile has the cost of each place in milliseconds, as "class;function;function".
type profile map[string]float64

// simulated returns trials of a baseline, its copy and a candidate, with random block effects and sampling noise.
func simulated(seed uint64, blocks int, base, cand profile) []Trial {
	random := rand.New(rand.NewPCG(seed, 1))
	var out []Trial
	for block := range blocks {
		speed := 1 + 0.03*random.NormFloat64()
		for _, arm := range []struct {
			name string
			of   profile
		}{{"base", base}, {"copy", base}, {"cand", cand}} {
			for range 2 {
				trial := Trial{Block: block, Arm: arm.name, Instrument: "profile", Elapsed: 1}
				for _, place := range sortedPlaces(arm.of) {
					// A cost is a number of samples of half a millisecond each.
					samples := arm.of[place] * speed * 2
					samples = max(0, samples+math.Sqrt(samples)*random.NormFloat64()*0.7)
					seconds := samples / 2 / 1000
					trial.Seconds += seconds
					trial.Costs = append(trial.Costs, Cost{Stack: strings.Split(place, ";"), Seconds: seconds})
				}
				out = append(out, trial)
			}
		}
	}
	return out
}

func sortedPlaces(of profile) (out []string) {
	for place := range of {
		out = append(out, place)
	}
	slices.Sort(out)
	return out
}

func question() Question {
	return Question{Figure: WallTime, Baseline: "base", Candidate: "cand", Null: "copy", Instrument: "profile", Uninstrumented: "usage",
		Resolution: 0.0005}
}

func signedNames(causes []Cause) (out []string) {
	for _, cause := range causes {
		sign := "+"
		if cause.Difference.Value < 0 {
			sign = "-"
		}
		out = append(out, sign+string(cause.Kind)+" "+cause.Function)
	}
	slices.Sort(out)
	return out
}

// program is a profile of a program with several functions.
func program(change func(profile)) profile {
	of := profile{
		"user code;main": 2, "user code;main;parse": 20, "user code;main;parse;malloc": 6, "user code;main;sort": 30,
		"user code;main;sort;less": 15, "page fault;main;parse": 3, "system call read;main;parse;read": 8,
		"waiting for storage;main;parse;read": 10, "interrupt": 1,
	}
	if change != nil {
		change(of)
	}
	return of
}

func TestExplain_KnownDifferences(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(profile)
		want   []string
	}{
		"the same program":         {nil, nil},
		"a function computes more": {func(of profile) { of["user code;main;sort;less"] = 30 }, []string{"+computation less"}},
		"a function computes less": {func(of profile) { of["user code;main;sort"] = 10 }, []string{"-computation sort"}},
		"a new function":           {func(of profile) { of["user code;main;check"] = 20 }, []string{"+computation check"}},
		"more allocation":          {func(of profile) { of["user code;main;parse;malloc"] = 25 }, []string{"+allocation malloc"}},
		"more copying":             {func(of profile) { of["user code;main;parse;memcpy"] = 20 }, []string{"+copying memcpy"}},
		"more page faults":         {func(of profile) { of["page fault;main;parse"] = 20 }, []string{"+page faults parse"}},
		"more system calls":        {func(of profile) { of["system call write;main;parse;write"] = 20 }, []string{"+system calls write"}},
		"a sleep":                  {func(of profile) { of["waiting for a timer;main;sort;nanosleep"] = 40 }, []string{"+sleep nanosleep"}},
		"a slow peer":              {func(of profile) { of["waiting for a socket;main;parse;recv"] = 40 }, []string{"+peer recv"}},
		"a lock":                   {func(of profile) { of["waiting for a lock;main;sort;lock"] = 40 }, []string{"+lock lock"}},
		"two changes that cancel each other": {func(of profile) {
			of["user code;main;sort"], of["user code;main;parse"] = 45, 5
		}, []string{"+computation sort", "-computation parse"}},
		"two changes of different kinds that cancel each other": {func(of profile) {
			of["user code;main;sort"], of["waiting for a timer;main;parse;nanosleep"] = 10, 20
		}, []string{"+sleep nanosleep", "-computation sort"}},
		"refactoring: a function is renamed with its callees": {func(of profile) {
			move(of, "user code;main;sort", "user code;main;order")
			move(of, "user code;main;sort;less", "user code;main;order;before")
		}, nil},
		"refactoring: a function is inlined": {func(of profile) {
			add(of, "user code;main;sort;less", "user code;main;sort")
		}, nil},
		"refactoring: a function with callees is inlined": {func(of profile) {
			add(of, "user code;main;parse", "user code;main")
			move(of, "user code;main;parse;malloc", "user code;main;malloc")
			move(of, "page fault;main;parse", "page fault;main")
			move(of, "system call read;main;parse;read", "system call read;main;read")
			move(of, "waiting for storage;main;parse;read", "waiting for storage;main;read")
		}, nil},
		"refactoring: a function is split": {func(of profile) {
			of["user code;main;sort"], of["user code;main;sort;partition"], of["user code;main;sort;swap"] = 10, 12, 8
		}, nil},
		"refactoring: a wrapper is added": {func(of profile) {
			move(of, "user code;main;sort", "user code;main;guard;sort")
			move(of, "user code;main;sort;less", "user code;main;guard;sort;less")
		}, nil},
		"refactoring: a call moves to another caller": {func(of profile) {
			move(of, "user code;main;sort", "user code;main;parse;sort")
			move(of, "user code;main;sort;less", "user code;main;parse;sort;less")
		}, nil},
		"refactoring: recursion in place of a loop": {func(of profile) {
			of["user code;main;sort"] = 10
			of["user code;main;sort;sort"], of["user code;main;sort;sort;sort"] = 10, 10
		}, nil},
		"a function that moved and computes more": {func(of profile) {
			of["user code;main;parse;sort"] = 50
			delete(of, "user code;main;sort")
			move(of, "user code;main;sort;less", "user code;main;parse;sort;less")
		}, []string{"+computation sort"}},
		"a renamed function that computes more": {func(of profile) {
			delete(of, "user code;main;sort")
			of["user code;main;order"] = 60
			move(of, "user code;main;sort;less", "user code;main;order;less")
		}, []string{"+computation order"}},
		"an inlined function whose callee computes more": {func(of profile) {
			add(of, "user code;main;parse", "user code;main")
			delete(of, "user code;main;parse;malloc")
			of["user code;main;malloc"] = 30
		}, []string{"+allocation malloc"}},
		"a difference in many small parts is that of their caller": {func(of profile) {
			for i := range 40 {
				of[fmt.Sprintf("user code;main;sort;part%d", i)] = 0.3
				of[fmt.Sprintf("user code;main;sort;part%d", i)] = 0.6
			}
		}, []string{"+computation sort"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			base := program(nil)
			if strings.HasPrefix(sentence, "a difference in many") {
				base = program(func(of profile) {
					for i := range 40 {
						of[fmt.Sprintf("user code;main;sort;part%d", i)] = 0.3
					}
				})
			}
			got := Explain(question(), simulated(7, 12, base, program(tc.change)), nil)
			if found := signedNames(got.Causes); !slices.Equal(found, tc.want) || got.Withheld != "" {
				t.Errorf("causes %q, want %q; %s; withheld %q", found, tc.want, got.Sentence, got.Withheld)
			}
			if len(tc.want) == 1 && got.Causes != nil && math.Abs(got.Causes[0].Share.Value) < 0.8 {
				t.Errorf("share %v, want at least 0.8", got.Causes[0].Share)
			}
		})
	}
}

func move(of profile, from, to string) {
	of[to] = of[from]
	delete(of, from)
}

func add(of profile, from, to string) {
	of[to] += of[from]
	delete(of, from)
}

// The absolute shares of all rows add up to the whole, also of random profiles and of causes that oppose each other.
func TestExplain_SharesAddUpToTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		change := func(of profile) {
			for _, place := range sortedPlaces(of) {
				if random.IntN(3) == 0 {
					of[place] *= 3 * random.Float64()
				}
			}
		}
		got := Explain(question(), simulated(uint64(i), 8, program(nil), program(change)), nil)
		total := math.Abs(got.Unexplained.Share.Value)
		sum := got.Unexplained.Difference.Value
		for _, cause := range got.Causes {
			total += math.Abs(cause.Share.Value)
			sum += cause.Difference.Value
		}
		if math.Abs(total-1) > 1e-9 {
			t.Fatalf("shares add up to %v: %+v", total, got.Causes)
		}
		if got.Withheld == "" && math.Abs(sum-got.Difference.Value) > 1e-9 {
			t.Fatalf("causes and unexplained add up to %v, the difference is %v", sum, got.Difference.Value)
		}
		for a, cause := range got.Causes {
			for b, other := range got.Causes {
				if a != b && slices.Equal(cause.Path, other.Path) && cause.Spread == other.Spread {
					t.Fatalf("two causes in one place: %v", cause.Path)
				}
			}
		}
	}
}

func TestExplain_EqualProgramsNameNoCause(t *testing.T) {
	const runs = 400
	wrong := 0
	for i := range uint64(runs) {
		got := Explain(question(), simulated(1000+i, 6+int(i%6), program(nil), program(nil)), nil)
		if len(got.Causes) > 0 || len(got.NullCauses) > 0 {
			wrong++
		}
	}
	if wrong > runs/100 {
		t.Errorf("%d of %d explanations of equal programs name a cause, want at most 1 %%", wrong, runs)
	}
}

func TestExplain_WithheldIfTheInstrumentsChangeTheRatio(t *testing.T) {
	trials := simulated(5, 12, program(nil), program(func(of profile) { of["user code;main;sort"] = 60 }))
	asked := question()
	asked.Judged = &Interval{1.32, 1.3, 1.34}
	if got := Explain(asked, trials, nil); got.Withheld != "" || len(got.Causes) != 1 {
		t.Errorf("withheld %q, ratio %v", got.Withheld, got.Ratio)
	}
	asked.Judged = &Interval{2, 1.9, 2.1}
	got := Explain(asked, trials, nil)
	if !strings.Contains(got.Withheld, "from the judged 2.0") || len(got.Causes) != 0 || got.Unexplained.Share.Value != 1 {
		t.Errorf("withheld %q with causes %v", got.Withheld, got.Causes)
	}
	if !strings.HasPrefix(got.Sentence, "The explanation is withheld: ") {
		t.Error(got.Sentence)
	}
}

func TestExplain_WithheldIfTheCopyOfTheBaselineDiffers(t *testing.T) {
	trials := simulated(5, 12, program(nil), program(func(of profile) { of["user code;main;sort"] = 60 }))
	for i := range trials {
		if trials[i].Arm == "copy" {
			trials[i].Costs = append(trials[i].Costs, Cost{Stack: []string{UserCode, "main", "sort", "less"}, Seconds: 0.02})
			trials[i].Seconds += 0.02
		}
	}
	got := Explain(question(), trials, nil)
	if !strings.Contains(got.Withheld, "the second copy of the baseline differs from the baseline (computation in less)") {
		t.Errorf("withheld %q", got.Withheld)
	}
}

func TestExplain_FewBlocksNameNoCause(t *testing.T) {
	trials := simulated(5, 1, program(nil), program(func(of profile) { of["user code;main;sort"] = 90 }))
	got := Explain(question(), trials, []Rung{{Name: "profile", Absent: "no rights"}})
	if got.Blocks != 1 || got.Withheld == "" || len(got.Causes) != 0 || got.Rungs[0].Absent != "no rights" {
		t.Errorf("%+v", got)
	}
}

// Absent counts are not zero: a count that one arm's instrument did not make is no count that differs.
func TestExplain_AbsentCountsAreNotCompared(t *testing.T) {
	trials := simulated(5, 8, program(nil), program(nil))
	for i := range trials {
		trials[i].Counts = map[string]float64{MinorFaults: 10}
		if trials[i].Arm == "cand" {
			trials[i].Counts = map[string]float64{MinorFaults: 500, VoluntarySwitches: 3}
		}
	}
	got := Explain(question(), trials, nil)
	if len(got.Counts) != 1 || got.Counts[0].Name != MinorFaults || !got.Counts[0].Differs {
		t.Errorf("%+v", got.Counts)
	}
}

func TestExplain_OverheadOfEachInstrument(t *testing.T) {
	trials := simulated(5, 8, program(nil), program(nil))
	for i := range trials {
		plain := trials[i]
		plain.Instrument, plain.Costs, plain.Elapsed = "usage", nil, 0.5
		trials = append(trials, plain)
	}
	got := Explain(question(), trials, []Rung{{Name: "usage"}, {Name: "profile"}, {Name: "calls", Absent: "no rights"}})
	if got.Rungs[0].Overhead != nil || got.Rungs[2].Overhead != nil || got.Rungs[1].Overhead == nil ||
		math.Abs(got.Rungs[1].Overhead.Value-2) > 1e-9 {
		t.Errorf("%+v", got.Rungs)
	}
}

func TestExplain_EvidenceOfCounts(t *testing.T) {
	trials := simulated(5, 8, program(nil), program(func(of profile) { of["system call write;main;parse;write"] = 40 }))
	for i := range trials {
		trials[i].Counts = map[string]float64{CallsPrefix + "write": 10, CallsPrefix + "read": 5}
		if trials[i].Arm == "cand" {
			trials[i].Counts[CallsPrefix+"write"] = 40_000
		}
	}
	got := Explain(question(), trials, nil)
	if len(got.Causes) != 1 || !slices.Equal(got.Causes[0].Evidence, []string{"calls of write: 10.00 to 40000"}) {
		t.Errorf("%+v", got.Causes)
	}
	if want := "is CPU time of the system call write in write (calls of write: 10.00 to 40000)."; !strings.HasSuffix(got.Sentence, want) {
		t.Error(got.Sentence)
	}
}
