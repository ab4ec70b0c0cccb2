package estimate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestNew_IndexesWhatCounts(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 2)
	late, early := made.add(selection.At(0, 0), "b1", 1), made.add(selection.At(0, 1), "b1", 2)
	late.StartedAt, early.StartedAt = time.Unix(9, 0), time.Unix(4, 0)
	made.add(selection.At(0, 0), "b2", 1)
	noisy := made.add(selection.At(0, 1), "b2", 7)
	made.chosen.Used, made.chosen.Kinds[noisy] = made.chosen.Used[:3], selection.Noisy
	hung := made.timeOut(selection.At(0, 1), "b3")
	unusable := made.attempt(selection.At(0, 1), "b4")
	made.chosen.Kinds[unusable] = selection.Unusable
	stale := made.attempt(selection.At(0, 1), "b5")
	stale.Outcome, made.chosen.Kinds[stale] = record.TimedOut, selection.Rejection("superseded")
	hung.Environment.Soft = map[string]any{"nodeName": "n3"}
	made.exp.Plan.Workload.TimeoutSeconds = 30

	d := made.data()
	mine := selection.At(0, 1)
	if got := len(d.Trials[selection.At(0, 0)]) + 10*len(d.Trials[mine]); got != 12 {
		t.Errorf("trials %v", d.Trials)
	}
	if got, want := slices.Sorted(maps.Keys(d.Measured[mine])), []string{"b1", "b3", "b4"}; !slices.Equal(got, want) {
		t.Errorf("measured in %v, want %v", got, want)
	}
	if got, want := d.TimedOut[mine], (map[string][]float64{"b3": {30}}); !reflect.DeepEqual(got, want) {
		t.Errorf("timed out %v, want %v", got, want)
	}
	if !d.started["b1"].Equal(time.Unix(4, 0)) || d.nodes["b3"] != "n3" {
		t.Errorf("started %v, nodes %v", d.started, d.nodes)
	}
	if d.Rejected[mine] != 1 || d.Everything == nil || len(d.Everything.Trials[mine]) != 2 || d.Everywhere != nil {
		t.Errorf("rejected %v", d.Rejected)
	}
	part := New(made.exp, made.chosen, func(block string) bool { return block == "b1" })
	if len(part.Trials[selection.At(0, 0)]) != 1 || len(part.TimedOut) != 0 || part.Everything != nil || len(part.Rejected) != 0 {
		t.Errorf("of one block: %v, timed out %v, rejected %v", part.Trials, part.TimedOut, part.Rejected)
	}
	if none := New(made.exp, made.chosen, func(block string) bool { return block == "b3" }); len(none.TimedOut) != 1 {
		t.Errorf("of the block with a timeout: %v", none.TimedOut)
	}
}

// A timed-out trial has the node and the start of its block only if no other trial of the block counts.
func TestNew_TimedOutTrialLeavesItsBlock(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 1)
	made.timeOut(selection.At(0, 0), "b1").Environment.Soft = map[string]any{"nodeName": "other"}
	counts := made.add(selection.At(0, 0), "b1", 1)
	counts.Environment.Soft = map[string]any{"nodeName": "n1"}
	if d := made.data(); d.nodes["b1"] != "n1" || !d.started["b1"].Equal(counts.StartedAt) {
		t.Errorf("node %s, started %v", d.nodes["b1"], d.started["b1"])
	}
}

func TestNew_OtherEnvironmentsAreAnalyzedAboveATenth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		here, elsewhere int
		shared          bool
		want            bool
	}{
		"none":                             {here: 10},
		"a tenth of the blocks":            {here: 9, elsewhere: 1},
		"more than a tenth of the blocks":  {here: 8, elsewhere: 1, want: true},
		"a trial of a block that counts":   {here: 20, elsewhere: 1, shared: true, want: true},
		"all blocks in other environments": {elsewhere: 3, want: true},
	} {
		made := newTrials(seconds, 1, 1)
		for i := range c.here {
			made.add(selection.At(0, 0), fmt.Sprint("here", i), 1)
		}
		made.chosen.Elsewhere = map[*record.Attempt]int{}
		for i := range c.elsewhere {
			block := fmt.Sprint("elsewhere", i)
			if c.shared {
				block = "here0"
			}
			made.chosen.Elsewhere[made.attempt(selection.At(0, 0), block)] = i + 1
		}
		d := made.data()
		if got := d.Everywhere != nil; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if d.Everywhere != nil && !c.shared && d.Everywhere.nodes["elsewhere0"] != ", environment 1" {
			t.Errorf("%s: nodes %v", name, d.Everywhere.nodes)
		}
		if none := New(made.exp, made.chosen, func(string) bool { return false }); none.Everywhere != nil {
			t.Errorf("%s: other environments of no block", name)
		}
	}
}

func TestBefore_CountsBlocksByMeanSlot(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 2)
	for block, order := range []string{"01", "01", "01", "10", "0110", "0"} {
		for _, arm := range order {
			made.add(selection.At(0, int(arm-'0')), fmt.Sprint("b", block), 1)
		}
	}
	lost := made.chosen.Used[0]
	made.chosen.Used, made.chosen.Kinds[lost] = made.chosen.Used[1:], selection.Noisy
	if earlier, later := made.data().Before(0, 0, 1); earlier != 3 || later != 1 {
		t.Errorf("first in %d blocks and last in %d, want 3 and 1", earlier, later)
	}
}

func TestConditions_OfEveryPointAreSums(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 2, 1)
	for point, levels := range [][]string{{"Shared", "Exclusive", "Shared"}, {"Shared"}} {
		for i, level := range levels {
			made.add(selection.At(point, 0), fmt.Sprint("b", i), 1).Isolation.Level = level
		}
	}
	d := made.data()
	sum := map[string]map[string]int{}
	for point := range 2 {
		for name, counts := range d.Conditions(selection.At(point, 0)) {
			for value, n := range counts {
				selection.Inner(sum, name)[value] += n
			}
		}
	}
	for range 2 { // The second result is cached.
		got := d.Conditions(selection.Cell{Point: EveryPoint, Arm: 0})
		for name, counts := range sum {
			if !maps.Equal(got[name], counts) {
				t.Errorf("%s: %v, want %v", name, got[name], counts)
			}
		}
	}
}

func TestCensors_TimesAndRatesDuringTheTrial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metric, unit  string
		direction     experiment.Direction
		higher, lower bool
	}{
		"time":                       {"time", "ms", experiment.LowerIsBetter, true, false},
		"time of which more is good": {"time", "ms", experiment.HigherIsBetter, false, false},
		"rate":                       {"rate", "queries/s", experiment.HigherIsBetter, false, true},
		"rate of which less is good": {"rate", "errors/s", experiment.LowerIsBetter, false, false},
		"size":                       {"size", "By", experiment.LowerIsBetter, false, false},
		"wall time of the process":   {"process.wallTime", "s", experiment.LowerIsBetter, true, false},
		"CPU time of the process":    {"process.cpuTime", "s", experiment.LowerIsBetter, false, false},
	} {
		d := newTrials(experiment.Metric{Name: c.metric, Unit: c.unit, Direction: c.direction}, 1, 1).data()
		if higher, lower := d.Censors(c.metric); higher != c.higher || lower != c.lower {
			t.Errorf("%s: %v and %v, want %v and %v", name, higher, lower, c.higher, c.lower)
		}
	}
	if higher, lower := newTrials(seconds, 1, 1).data().Censors("other"); higher || lower {
		t.Error("a metric that is not there is censored")
	}
}

func TestTimeouts_EnterAtTheirBound(t *testing.T) {
	t.Parallel()
	milliseconds := experiment.Metric{Name: "time", Unit: "ms", Direction: experiment.LowerIsBetter, Statistic: experiment.StatisticMean}
	rate := experiment.Metric{Name: "rate", Unit: "queries/s", Direction: experiment.HigherIsBetter, Statistic: experiment.StatisticMean}
	fixed := milliseconds
	fixed.SamplesFrom = "iterations"
	type visited struct {
		value   float64
		samples int64
		block   string
	}
	for name, c := range map[string]struct {
		metric     experiment.Metric
		timeout    float64
		ran        [][]float64
		ofBaseline bool
		iterations string
		want       []visited
	}{
		"times": {metric: milliseconds, timeout: 30, ran: [][]float64{{1, 2}, {1, 2, 3, 4}, {5, 6, 7}}, want: []visited{{30000, 3, "h1"}, {30000, 3, "h2"}}},
		"times without a timeout": {
			metric: milliseconds, ran: [][]float64{{1, 2}}, want: []visited{{1000, 2, "h1"}, {1000, 2, "h2"}}, // They took a second.
		},
		"rates": {
			metric: rate, timeout: 4, ran: [][]float64{{10, 20}, {80, 30}}, want: []visited{{20, 2, "h1"}, {20, 2, "h2"}},
		},
		"rates of the other arm": {
			metric: rate, timeout: 4, ran: [][]float64{{10, 20}, {80, 30}}, ofBaseline: true, want: []visited{{20, 2, "h1"}, {20, 2, "h2"}},
		},
		"rates of no arm":               {metric: rate, timeout: 4},
		"times of no arm":               {metric: milliseconds, timeout: 4, want: []visited{{4000, 1, "h1"}, {4000, 1, "h2"}}},
		"a number of samples":           {metric: fixed, timeout: 4, ran: [][]float64{{1, 2}}, iterations: "50", want: []visited{{4000, 50, "h1"}, {4000, 50, "h2"}}},
		"a number that is too large":    {metric: fixed, timeout: 4, iterations: "9223372036854775807", want: []visited{{4000, 1 << 36, "h1"}, {4000, 1 << 36, "h2"}}},
		"a number of samples of 0":      {metric: fixed, timeout: 4, ran: [][]float64{{1, 2}}, iterations: "0", want: []visited{{4000, 2, "h1"}, {4000, 2, "h2"}}},
		"a number of samples as a text": {metric: fixed, timeout: 4, ran: [][]float64{{1, 2}}, iterations: "many", want: []visited{{4000, 2, "h1"}, {4000, 2, "h2"}}},
		"a size, which is not censored": {metric: experiment.Metric{Name: "size", Unit: "By", Direction: experiment.LowerIsBetter}, timeout: 4, ran: [][]float64{{1, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			made := newTrials(c.metric, 1, 2)
			arm := 1
			if c.ofBaseline {
				arm = 0
			}
			for i, values := range c.ran {
				made.add(selection.At(0, arm), fmt.Sprint("b", i), values...)
			}
			made.timeOut(selection.At(0, 1), "h2")
			made.timeOut(selection.At(0, 1), "h1")
			made.exp.Plan.Workload.TimeoutSeconds = c.timeout
			made.exp.Cells = []record.Cell{{Arm: 0, Parameters: map[string]string{"iterations": "7"}},
				{Arm: 1, Parameters: map[string]string{"iterations": c.iterations}}}
			var got []visited
			d := made.data()
			d.eachTimeout(made.of(1, experiment.StatisticMean), func(value float64, samples int64, block string) {
				got = append(got, visited{value, samples, block})
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			d.eachTimeout(made.of(0, experiment.StatisticMean), func(float64, int64, string) { t.Error("the other arm has timeouts") })
		})
	}
}

func TestOpenEnds_WhereTimeoutsBoundTheFigure(t *testing.T) {
	t.Parallel()
	rate := experiment.Metric{Name: "rate", Unit: "queries/s", Direction: experiment.HigherIsBetter, Statistic: experiment.StatisticMean}
	mean, p50 := experiment.StatisticMean, experiment.StatisticP50
	for name, c := range map[string]struct {
		metric    experiment.Metric
		statistic experiment.Statistic
		hung      int
		want      Open
	}{
		"mean time":                   {seconds, mean, 1, Open{Higher: true}},
		"mean rate":                   {rate, mean, 1, Open{Lower: true}},
		"mean time without a timeout": {seconds, mean, 0, Open{}},
		"median of times":             {seconds, p50, 1, Open{}},
		"median of times that hung":   {seconds, p50, 9, Open{Higher: true}},
		"median of rates":             {rate, p50, 1, Open{}},
		"median of rates that hung":   {rate, p50, 9, Open{Lower: true}},
	} {
		made := newTrials(c.metric, 1, 1)
		for block := range 8 {
			made.add(selection.At(0, 0), fmt.Sprint("b", block), 2, 3, 4)
		}
		for block := range c.hung {
			made.timeOut(selection.At(0, 0), fmt.Sprint("b", block))
		}
		made.exp.Plan.Workload.TimeoutSeconds = 10
		if got := made.data().OpenEnds(made.of(0, c.statistic)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for _, c := range []struct{ mine, theirs, want Open }{
		{Open{Higher: true}, Open{}, Open{Higher: true}}, {Open{}, Open{Higher: true}, Open{Lower: true}},
		{Open{Lower: true}, Open{}, Open{Lower: true}}, {Open{}, Open{Lower: true}, Open{Higher: true}}, {Open{}, Open{}, Open{}},
	} {
		if got := c.mine.Over(c.theirs); got != c.want {
			t.Errorf("%+v over %+v: %+v, want %+v", c.mine, c.theirs, got, c.want)
		}
	}
}

func TestBindingCeiling_ClosestByMeanShare(t *testing.T) {
	t.Parallel()
	reported := func(name string, limit, achieved float64) record.Ceiling {
		out := record.Ceiling{Name: name, Limit: limit}
		if achieved > 0 {
			out.Achieved = &achieved
		}
		return out
	}
	for name, c := range map[string]struct {
		trials [][]record.Ceiling
		want   *Ceiling
	}{
		"none":                 {},
		"one not achieved":     {trials: [][]record.Ceiling{{reported("a", 10, 0)}}},
		"the closer of two":    {trials: [][]record.Ceiling{{reported("a", 10, 5), reported("b", 4, 3)}}, want: &Ceiling{"b", 0.75}},
		"the closer is first":  {trials: [][]record.Ceiling{{reported("b", 4, 3), reported("a", 10, 5)}}, want: &Ceiling{"b", 0.75}},
		"the first of a tie":   {trials: [][]record.Ceiling{{reported("b", 4, 2), reported("a", 10, 5)}}, want: &Ceiling{"b", 0.5}},
		"the mean over trials": {trials: [][]record.Ceiling{{reported("a", 10, 9)}, {reported("a", 10, 2), reported("b", 4, 2.4)}}, want: &Ceiling{"b", 0.6}},
	} {
		made := newTrials(seconds, 1, 1)
		for i, ceilings := range c.trials {
			made.add(selection.At(0, 0), fmt.Sprint("b", i), 1).Result.Ceilings = ceilings
		}
		got := made.data().BindingCeiling(selection.At(0, 0))
		if (got == nil) != (c.want == nil) || got != nil && (got.Name != c.want.Name || !near(got.Share, c.want.Share)) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestPhases_MeansByBlockInReportedOrder(t *testing.T) {
	t.Parallel()
	made := newTrials(seconds, 1, 2)
	for block, times := range []float64{0.11, 0.2, 0.17, 0.13} {
		for arm, factor := range []float64{1, 3} {
			made.add(selection.At(0, arm), fmt.Sprint("b", block), 1).Result.Phases = []record.Phase{
				{Name: "scan", Samples: []float64{times * factor, times * factor * 1.01}}, {Name: "none"}, {Name: "load", Samples: []float64{0.5, 0.7, 0.9}},
			}
		}
	}
	d := made.data()
	names, series := d.Phases(selection.At(0, 0))
	if !slices.Equal(names, []string{"scan", "load"}) || series["scan"].samples != 8 || series["load"].samples != 12 ||
		!near(series["scan"].Blocks["b1"][0], 0.2*1.005) {
		t.Errorf("phases %v: %+v", names, series)
	}
	if got := d.PhaseRatio(0, 1, "scan"); !near(got.Value, 3) || got.Blocks != 4 || !got.HasInterval() {
		t.Errorf("ratio of scan: %+v", got)
	}
	found := Phases(d, &selection.Parity{})
	if len(found) != 4 || found[0].Phase != "scan" || found[0].Arm != "arm0" || !near(found[0].Estimate.Value, 0.1525*1.005) ||
		found[0].Estimate.Samples != 8 || found[0].Estimate.Low == nil {
		t.Errorf("phases %+v", found)
	}
	if found := Phases(d, &selection.Parity{Wrong: map[string]string{"arm0": "wrong"}}); len(found) != 2 || found[0].Arm != "arm1" {
		t.Errorf("phases without those of a wrong arm %+v", found)
	}
	if got := d.PhaseRatio(0, 1, "none"); got.Reason != `no trial of both arms reports a phase "none"` {
		t.Errorf("reason %q", got.Reason)
	}
	made.chosen.Used[1].Result.Phases[0].Samples = []float64{0}
	if got := made.data().PhaseRatio(0, 1, "scan"); got.Reason != `phase "scan" has times that are not positive, and a ratio needs positive ones` {
		t.Errorf("reason %q", got.Reason)
	}
	made.chosen.Used[1].Result.Phases = nil
	for _, a := range made.chosen.Used[4:] {
		a.Result.Phases = nil
	}
	if got := made.data().PhaseRatio(0, 1, "scan"); got.Reason != "1 of at least 3 blocks with the phase in both arms" {
		t.Errorf("reason %q", got.Reason)
	}
}

func TestMostPhases_SharedByCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ points, arms, want int }{{1, 1, 64}, {0, 0, 64}, {128, 3, 64}, {1000, 2, 12}, {4096, 1, 6}, {4096, 10, 1}} {
		if got := newTrials(seconds, c.points, c.arms).data().MostPhases(); got != c.want {
			t.Errorf("%d points and %d arms: %d phases, want %d", c.points, c.arms, got, c.want)
		}
	}
	made := newTrials(seconds, 1, 1)
	for trial := range 2 {
		var phases []record.Phase
		for i := range 60 {
			phases = append(phases, record.Phase{Name: fmt.Sprint(trial*40 + i), Samples: []float64{1}})
		}
		made.add(selection.At(0, 0), "b1", 1).Result.Phases = phases
	}
	if names, series := made.data().Phases(selection.At(0, 0)); len(names) != 64 || len(series) != 64 || series["50"].samples != 2 {
		t.Errorf("%d phases, %d of the shared one", len(names), series["50"].samples)
	}
}

func TestRarely_MovesTheEndOfTheArmThatMayBeSlow(t *testing.T) {
	t.Parallel()
	const slowdown = 0.5
	rate := experiment.Metric{Name: "rate", Unit: "queries/s", Direction: experiment.HigherIsBetter}
	d := newTrials(seconds, 1, 1).data()
	plain := studentInference(map[string]float64{"b1": 1.1, "b2": 0.9, "b3": 1.2, "b4": 1.05}, 0.95, true)
	level := studentInference(map[string]float64{"b1": -1.1, "b2": -0.9, "b3": -1.2, "b4": -1.05}, 0.95, false)
	if got := d.Rarely(plain, &seconds, experiment.StatisticMean, true); got.up != 0 || got.down != 0 {
		t.Errorf("without a declared slowdown it moves by %g and %g", got.down, got.up)
	}
	d.Exp.Plan.Design.RareSlowdown = slowdown
	share := 0.6837722339831620 // 1 - 0.01^(1/4): as many affected blocks are not seen in 4 at a confidence of 0.99.
	log := 0.4054651081081644   // The logarithm of 1.5.
	for name, c := range map[string]struct {
		found     Inference
		metric    experiment.Metric
		statistic experiment.Statistic
		down, up  float64
	}{
		"ratio of mean times":  {plain, seconds, experiment.StatisticMean, share * log, share * log},
		"ratio of mean rates":  {plain, rate, experiment.StatisticMean, share * log, share * log},
		"ratio of percentiles": {plain, seconds, experiment.StatisticP95, log, log},
		"ratio of maxima":      {plain, seconds, experiment.StatisticMax, log, log},
		"level of times":       {level, seconds, experiment.StatisticMean, 0, share * slowdown * 1.0625},
	} {
		if got := d.Rarely(c.found, &c.metric, c.statistic, c.found.logarithmic); !near(got.down, c.down) || !near(got.up, c.up) {
			t.Errorf("%s: moves by %g and %g, want %g and %g", name, got.down, got.up, c.down, c.up)
		}
	}
	if got := d.Rarely(Inference{Reason: "few"}, &seconds, experiment.StatisticMean, true); got.up != 0 {
		t.Errorf("a missing interval moves by %g", got.up)
	}
}
