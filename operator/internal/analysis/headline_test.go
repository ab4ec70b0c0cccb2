package analysis

import (
	"math/rand/v2"
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

const (
	goes         = experiment.VerdictGo
	noGo         = experiment.VerdictNoGo
	inconclusive = experiment.VerdictInconclusive
	invalid      = experiment.VerdictInvalid
)

// judged returns a Blocking gate of the candidate new. Room is NaN-free; nil where the gate has no standard error.
func judged(name string, op experiment.Op, outcome experiment.Verdict, room *float64) GateResult {
	return GateResult{Gate: name, Candidate: "new", Op: op, Severity: experiment.Blocking, Outcome: outcome, Room: room}
}

func TestDeciding_GateOfVerdict(t *testing.T) {
	advisory := judged("advisory", experiment.RatioAtLeast, noGo, ptr.To(-9.0))
	advisory.Severity = experiment.Advisory
	other := judged("of another", experiment.RatioAtLeast, noGo, ptr.To(-9.0))
	other.Candidate = "other"
	for name, c := range map[string]struct {
		verdict experiment.Verdict
		gates   []GateResult
		want    string
	}{
		"the NoGo of the second point, not the first gate": {noGo, []GateResult{
			judged("holds", experiment.RatioAtMost, goes, ptr.To(4.0)), judged("missed", experiment.RatioAtMost, noGo, ptr.To(-3.0))}, "missed"},
		"the clearest miss of several": {noGo, []GateResult{
			judged("narrow", experiment.RatioAtMost, noGo, ptr.To(-3.0)), judged("clear", experiment.AtMost, noGo, ptr.To(-8.0))}, "clear"},
		"Go by the least room, though another ratio is first": {goes, []GateResult{
			judged("wide", experiment.RatioAtLeast, goes, ptr.To(40.0)), judged("narrow", experiment.AtMost, goes, ptr.To(3.1))}, "narrow"},
		"Go by a share of trials with less room": {goes, []GateResult{
			judged("wide", experiment.RatioAtLeast, goes, ptr.To(40.0)),
			judged("nearly all", experiment.Completes, goes, ptr.To(1.2))}, "nearly all"},
		"a gate without a standard error follows those with one": {goes, []GateResult{
			judged("exact", experiment.RatioAtLeast, goes, nil), judged("all", experiment.Completes, goes, nil),
			judged("same", experiment.ParityEqual, goes, nil), judged("wide", experiment.RatioAtLeast, goes, ptr.To(40.0))}, "wide"},
		"a figure without a standard error precedes completion and outputs": {goes, []GateResult{
			judged("same", experiment.ParityEqual, goes, nil), judged("all", experiment.Completes, goes, nil),
			judged("exact", experiment.RatioAtLeast, goes, nil)}, "exact"},
		"different outputs precede every figure": {noGo, []GateResult{
			judged("all", experiment.Completes, noGo, nil), judged("missed", experiment.RatioAtMost, noGo, ptr.To(-3.0)),
			judged("same", experiment.ParityEqual, noGo, nil)}, "same"},
		"failed trials precede the figures of the others": {noGo, []GateResult{
			judged("missed", experiment.RatioAtMost, noGo, ptr.To(-30.0)), judged("all", experiment.Completes, noGo, ptr.To(-2.0))}, "all"},
		"Inconclusive by the gate closest to a miss": {inconclusive, []GateResult{
			judged("inside", experiment.RatioAtMost, inconclusive, ptr.To(1.0)),
			judged("outside", experiment.RatioAtMost, inconclusive, ptr.To(-1.0)),
			judged("passed", experiment.RatioAtMost, goes, ptr.To(-5.0))}, "outside"},
		"an Inconclusive after decisions rests on one of them": {inconclusive, []GateResult{
			judged("lost", experiment.RatioAtMost, invalid, nil), judged("wide", experiment.RatioAtMost, goes, ptr.To(9.0)),
			judged("narrow", experiment.RatioAtMost, goes, ptr.To(3.0))}, "narrow"},
		"the first of equal gates": {noGo, []GateResult{
			judged("first", experiment.RatioAtMost, noGo, ptr.To(-3.0)), judged("second", experiment.RatioAtMost, noGo, ptr.To(-3.0))}, "first"},
		"Invalid by the gate that is":                        {invalid, []GateResult{judged("few", experiment.RatioAtMost, invalid, nil)}, "few"},
		"an Invalid that no gate explains":                   {invalid, []GateResult{judged("holds", experiment.RatioAtMost, goes, ptr.To(1.0))}, ""},
		"a NoGo that no gate explains":                       {noGo, []GateResult{judged("holds", experiment.RatioAtMost, goes, ptr.To(1.0))}, ""},
		"neither advisory gates nor those of another decide": {noGo, []GateResult{advisory, other}, ""},
		"no verdict": {"", []GateResult{judged("g", experiment.RatioAtMost, "", ptr.To(1.0))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if gate := Deciding("new", c.verdict, c.gates); gate != nil {
				got = gate.Gate
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// For any set of gates the headline's gate has the outcome of the verdict, and of the gates of its rank it has the least room.
func TestDeciding_RandomGatesHaveOutcomeOfVerdictAndLeastRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...experiment.Verdict) experiment.Verdict { return words[random.IntN(len(words))] }
	ops := experiment.Ops()
	for range 20_000 {
		var gates []GateResult
		count := map[experiment.Verdict]int{}
		for range random.IntN(7) {
			gate := judged("g", ops[random.IntN(len(ops))], pick(goes, goes, noGo, inconclusive, invalid), nil)
			if random.IntN(3) > 0 {
				gate.Room = ptr.To(float64(random.IntN(9) - 4))
			}
			switch random.IntN(6) {
			case 0:
				gate.Severity = experiment.Advisory
			case 1:
				gate.Candidate = "other"
			default:
				count[gate.Outcome]++
			}
			gates = append(gates, gate)
		}
		verdict := goes
		for _, weaker := range []experiment.Verdict{inconclusive, invalid, noGo} {
			if count[weaker] > 0 {
				verdict = weaker
			}
		}
		got := Deciding("new", verdict, gates)
		if (got != nil) != (count[verdict] > 0) {
			t.Fatalf("%v for %s of %+v", got, verdict, gates)
		}
		if got == nil {
			continue
		}
		if got.Outcome != verdict || got.Severity != experiment.Blocking || got.Candidate != "new" {
			t.Fatalf("the %s rests on %+v", verdict, got)
		}
		for i := range gates {
			other := &gates[i]
			if other.Outcome != verdict || other.Severity != experiment.Blocking || other.Candidate != "new" {
				continue
			}
			lessRoom := rank(other, verdict) == rank(got, verdict) && other.Room != nil && got.Room != nil && *other.Room < *got.Room
			if rank(other, verdict) < rank(got, verdict) || lessRoom {
				t.Fatalf("the %s rests on %+v and not on %+v", verdict, got, other)
			}
		}
	}
}

func TestHeadlineOf_FigureInUnitOfGate(t *testing.T) {
	exp := &experiment.Experiment{Arms: []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}}}
	estimate := func(unit string, ratio bool, value, low, high float64) *Estimate {
		return &Estimate{Value: value, Unit: unit, Ratio: ratio, Low: &low, High: &high, Blocks: 8}
	}
	for name, c := range map[string]struct {
		op       experiment.Op
		point    string
		estimate *Estimate
		want     string
	}{
		"a ratio":        {experiment.RatioAtMost, "n=8", estimate("1", true, 1.0531, 1.0212, 1.0863), "1.053x [1.021, 1.086] (99.5 %), worth-it at n=8"},
		"a level":        {experiment.AtMost, "", estimate("s", false, 0.0021, 0.0019, 0.0023), "2.100 ms [1.900, 2.300] (99.5 %), worth-it"},
		"a difference":   {experiment.DifferenceAtMost, "", estimate("s", false, 0.0021, 0.0019, 0.0023), "2.100 ms [1.900, 2.300] more than old (99.5 %), worth-it"},
		"completion":     {experiment.Completes, "n=8", estimate("1", false, 0.95, 0.861, 0.9896), "95.0 % of trials complete [86.1 %, 99.0 %] (99.5 %), worth-it at n=8"},
		"outputs":        {experiment.ParityEqual, "n=8", nil, ""},
		"too few blocks": {experiment.RatioAtMost, "", &Estimate{Value: 1, Unit: "1", Ratio: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			gate := &GateResult{Gate: "worth-it", Candidate: "new", Point: c.point, Op: c.op, Outcome: noGo, Estimate: c.estimate, Confidence: 0.995}
			if headline := HeadlineOf(exp, gate); headline != nil {
				got = headline.Text
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if HeadlineOf(exp, nil) != nil {
		t.Error("no gate has a headline")
	}
}

func TestRunHeadline_OfLeadingCandidate(t *testing.T) {
	exp := &experiment.Experiment{}
	gate := func(candidate string, value float64) GateResult {
		return GateResult{Gate: "worth-it", Candidate: candidate, Point: "n=8", Op: experiment.RatioAtLeast, Severity: experiment.Blocking,
			Outcome:  goes,
			Estimate: &Estimate{Value: value, Unit: "1", Ratio: true, Low: ptr.To(value), High: ptr.To(value)}, Confidence: 0.99}
	}
	gates := []GateResult{gate("a", 2), gate("b", 3)}
	candidate := func(name string, verdict experiment.Verdict) Candidate {
		return Candidate{Name: name, Verdict: verdict, Headline: HeadlineOf(exp, Deciding(name, verdict, gates))}
	}
	for name, c := range map[string]struct {
		of   Analysis
		want string
	}{
		"the best": {Analysis{Verdict: goes, Best: "b", Candidates: []Candidate{candidate("a", goes), candidate("b", goes)}},
			"3.000x [3.000, 3.000] (99 %), worth-it of b at n=8"},
		"the first of those that may be the best": {Analysis{Verdict: goes, BestOf: []string{"b", "a"}, Candidates: []Candidate{candidate("a", goes),
			candidate("b", goes)}}, "3.000x [3.000, 3.000] (99 %), worth-it of b at n=8"},
		"the first with the verdict": {Analysis{Verdict: goes, Candidates: []Candidate{candidate("x", noGo), candidate("a", goes)}},
			"2.000x [2.000, 2.000] (99 %), worth-it of a at n=8"},
		"the only candidate with a verdict has no name": {Analysis{Verdict: goes, Candidates: []Candidate{candidate("x", ""), candidate("a", goes)}},
			"2.000x [2.000, 2.000] (99 %), worth-it at n=8"},
		"a candidate without a figure": {Analysis{Verdict: noGo, Candidates: []Candidate{candidate("a", noGo)}}, ""},
		"no verdict":                   {Analysis{Candidates: []Candidate{candidate("a", "")}}, ""},
		"no candidate":                 {Analysis{Verdict: goes}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.of.Gates = gates
			got := ""
			if headline := RunHeadline(exp, &c.of); headline != nil {
				got = headline.Text
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A headline of a foreign analysis may name a gate that is missing.
func TestGateOf_UnknownGateIsNil(t *testing.T) {
	a := &Analysis{Gates: []GateResult{{Gate: "g", Candidate: "c", Point: "p"}}}
	if a.GateOf(nil) != nil || a.GateOf(&Headline{Gate: "g", Candidate: "c"}) != nil ||
		a.GateOf(&Headline{Gate: "g", Candidate: "c", Point: "p"}) == nil {
		t.Error("a gate is found by gate, candidate and point")
	}
}
