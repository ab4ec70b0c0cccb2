package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/contrast"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

func asked(t *testing.T, tool string, members ...Member) *Suite {
	t.Helper()
	of, ok := FindTool(tool)
	if !ok {
		t.Fatalf("no tool %s", tool)
	}
	return &Suite{Tool: of, Folders: [2]string{"/old", "/new"}, Members: members, CPUs: 1, Budget: time.Hour, Error: 0.01}
}

func membersNamed(count int) []Member {
	var out []Member
	for i := range count {
		out = append(out, Member{"a.test", fmt.Sprintf("BenchmarkX/n=%d", i)})
	}
	return out
}

func freeze(t *testing.T, s *Suite) *experiment.Experiment {
	t.Helper()
	run, err := s.BenchmarkRun()
	if err != nil {
		t.Fatal(err)
	}
	exp, err := experiment.Freeze(record.Run{Namespace: "local", Name: "suite", UID: "0d9f5c1e-6a57-4b6e-8d8f-3f6f2a9b7c13"}, run.Spec,
		*run.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return exp
}

func TestBenchmarkRun_OneProcessRunsOneBenchmark(t *testing.T) {
	for name, tc := range map[string]struct {
		tool    string
		members []Member
		want    string
	}{
		"Go": {"Go", []Member{{"a.test", "BenchmarkX"}, {"a.test", "BenchmarkJoin/way=a.b"}},
			`/new/a.test -test.run=^$ -test.bench=^BenchmarkJoin$/^way=a\.b$ -test.benchtime=50ms -test.benchmem`},
		"programs of several folders": {"Go", []Member{{"a.test", "BenchmarkX"}, {"pkg/b.test", "BenchmarkX"}},
			"/new/pkg/b.test -test.run=^$ -test.bench=^BenchmarkX$ -test.benchtime=50ms -test.benchmem"},
		"divan": {"Divan", []Member{{"s", "s::a"}, {"s", "s::b"}}, "/new/s --bench --sample-count=50 --exact s::b"},
		"JMH": {"JMH", []Member{{"b.jar", "p.A.x"}, {"b.jar", "p.A.y"}},
			`java -jar /new/b.jar ^p\.A\.y$ -f 1 -wi 1 -w 200ms -i 5 -r 100ms -foe true -rf json -rff jmh.json`},
		"pytest": {"PytestBenchmark", []Member{{"test_a.py", "test_x[1]"}, {"test_a.py", "test_x[2]"}},
			"pytest -q -p no:cacheprovider --benchmark-max-time=0.2 --benchmark-json=pytest-benchmark.json /new/test_a.py::test_x[2]"},
		"Criterion": {"Criterion", []Member{{"f", "find/a b"}, {"f", "find/b"}},
			"/new/f --bench --noplot --warm-up-time=0.1 --measurement-time=0.5 --sample-size=20 --exact find/b"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := freeze(t, asked(t, tc.tool, tc.members...))
			if len(exp.Points) != len(tc.members) || len(exp.Cells) != 2*len(tc.members) {
				t.Fatalf("%d points and %d cells", len(exp.Points), len(exp.Cells))
			}
			last := exp.Cells[len(exp.Cells)-1]
			if got := strings.Join(last.Argv, " "); got != tc.want || exp.Arms[last.Arm].Name != New || last.Point != len(tc.members)-1 {
				t.Errorf("point %d of arm %s: %s\nwant %s", last.Point, exp.Arms[last.Arm].Name, got, tc.want)
			}
		})
	}
}

func TestBenchmarkRun_ProgramsOfTwoNames(t *testing.T) {
	s := asked(t, "Go", membersNamed(2)...)
	s.Files = [2]string{"a.test", "b.test"}
	exp := freeze(t, s)
	for _, cell := range exp.Cells {
		if want := "/" + exp.Arms[cell.Arm].Name + "/" + s.Files[cell.Arm]; cell.Argv[0] != want {
			t.Errorf("arm %s starts %s, want %s", exp.Arms[cell.Arm].Name, cell.Argv[0], want)
		}
	}
}

// The document is read as the API server would, so that kubectl apply accepts it.
func TestDocument_IsAValidManifest(t *testing.T) {
	for _, tool := range Tools() {
		for _, count := range []int{1, 100, MostMembers} {
			s := asked(t, tool.Name, membersNamed(count)...)
			raw, err := s.Document()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "suite.yaml")
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if found, err := manifest.Read(path); err != nil || len(found.Runs) != 1 {
				t.Errorf("%s with %d benchmarks: %v", tool.Name, count, err)
			}
		}
	}
}

func TestBenchmarkRun_InvalidMembers(t *testing.T) {
	long := strings.Repeat("x", longestName)
	for name, tc := range map[string]struct {
		members []Member
		want    string
	}{
		"none":       {nil, "no benchmark is in both builds"},
		"too many":   {membersNamed(MostMembers + 1), "257 benchmarks"},
		"too long":   {[]Member{{"a", long}}, "characters"},
		"duplicates": {[]Member{{"a", "b"}, {"a", "b"}}, "listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := asked(t, "Go", tc.members...).BenchmarkRun(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// simulated measures a suite on a quiet machine with 1 % of noise. Truths are the ratios of the members; broken ones fail in the new build.
func simulated(t *testing.T, truths []float64, broken map[int]bool, room int) (*Result, []record.Wave) {
	t.Helper()
	members := membersNamed(len(truths))
	exp := freeze(t, asked(t, "Go", members...))
	at := map[string]int{}
	for i := range exp.Points {
		at[exp.Points[i].Key] = i
	}
	world := fixture.NewWorld(fixture.Scenario{Trial: 0.01}, 0, 1, 2)
	course, suite, evidence := design.Begin(exp), NewCourse(exp, 0.01), record.Evidence{}
	plan := func() design.Step { return suite.Next(room - Size(exp, course.Waves)) }
	_, err := Follow(course, []design.Lane{{}}, plan, func(wave *record.Wave, _ string) (design.Findings, bool, error) {
		for _, attempt := range world.Run(exp, wave) {
			i := at[attempt.Point]
			if attempt.Arm == New {
				*attempt.Result.Metrics["time"].Value *= truths[i]
			}
			attempt.Result.Metrics["time"] = &record.Metric{Unit: "s", Samples: []float64{*attempt.Result.Metrics["time"].Value}}
			if broken[i] && attempt.Arm == New {
				attempt.Outcome, attempt.Result, attempt.Message = record.Failed, nil, "the process exited with code 2"
			}
			evidence.Attempts = append(evidence.Attempts, attempt)
		}
		evidence.Waves = course.Waves
		suite.Observe(analyze.Evidence(exp, evidence, wave.Wave), &evidence)
		return design.Findings{}, false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return suite.Result(members), course.Waves
}

func rowOf(t *testing.T, r *Result, member int) *Row {
	t.Helper()
	for i := range r.Rows {
		if r.Rows[i].Name == membersNamed(member + 1)[member].Name {
			return &r.Rows[i]
		}
	}
	t.Fatalf("no row of member %d", member)
	return nil
}

func TestFollow_KnownDifferencesAreFound(t *testing.T) {
	result, _ := simulated(t, []float64{1, 1.05, 0.95, 1.1, 1}, nil, 200)
	want := []Outcome{NoDifference, Slower, Faster, Slower, NoDifference}
	for i, outcome := range want {
		if row := rowOf(t, result, i); row.Outcome != outcome {
			t.Errorf("member %d: %s %+v, want %s", i, row.Outcome, row.Ratio, outcome)
		}
	}
	for i := 1; i < len(result.Rows); i++ {
		if result.Rows[i].Ratio.Value > result.Rows[i-1].Ratio.Value {
			t.Errorf("rows are not sorted by change: %v before %v", result.Rows[i-1].Ratio.Value, result.Rows[i].Ratio.Value)
		}
	}
	truth := math.Pow(1.05*0.95*1.1, 1.0/5)
	if m := result.Mean; m == nil || m.Low == nil || *m.Low > truth || *m.High < truth || result.Of != 5 {
		t.Errorf("geometric mean %+v of %d, truth %g", m, result.Of, truth)
	}
}

// A benchmark that fails loses itself: the others have the results that they would have without it.
func TestFollow_FailingMemberLosesItselfOnly(t *testing.T) {
	with, waves := simulated(t, []float64{1.05, 1, 1.1}, map[int]bool{1: true}, 60)
	if row := rowOf(t, with, 1); row.Outcome != Failed || !strings.Contains(row.Cause, "code 2") || row.Blocks != FirstLook() ||
		row.Ratio != nil {
		t.Errorf("the failed member: %+v", row)
	}
	for _, i := range []int{0, 2} {
		if row := rowOf(t, with, i); row.Outcome != Slower || row.Cause != "" {
			t.Errorf("member %d beside it: %s %s", i, row.Outcome, row.Cause)
		}
	}
	if with.Of != 2 || with.Mean == nil {
		t.Errorf("the mean is of %d members", with.Of)
	}
	for _, wave := range waves[1:] {
		for _, point := range wave.Points {
			if strings.Contains(point.Key, "n=1,") {
				t.Error("a later wave has the member that failed")
			}
		}
	}
	all, _ := simulated(t, []float64{1, 1}, map[int]bool{0: true, 1: true}, 60)
	if all.Count(Failed) != 2 || all.Mean != nil {
		t.Errorf("all failed: %+v", all.Rows)
	}
}

func TestJudge_VerdictOfBound(t *testing.T) {
	ratio := func(low, high float64) *Ratio { return &Ratio{Value: math.Sqrt(low * high), Low: &low, High: &high} }
	within, above, open := Row{Ratio: ratio(0.99, 1.01)}, Row{Ratio: ratio(1.06, 1.1)}, Row{Ratio: ratio(1, 1.2)}
	for name, tc := range map[string]struct {
		rows   []Row
		higher bool
		want   experiment.Verdict
	}{
		"all within":                   {[]Row{within, within}, false, experiment.VerdictGo},
		"one above":                    {[]Row{within, above, open}, false, experiment.VerdictNoGo},
		"one undecided":                {[]Row{within, open}, false, experiment.VerdictInconclusive},
		"one fails in the new build":   {[]Row{within, {Outcome: Failed, failedNew: true}}, false, experiment.VerdictNoGo},
		"one fails in both builds":     {[]Row{within, {Outcome: Failed, failedNew: true, failedOld: true}}, false, experiment.VerdictInconclusive},
		"one cannot be compared":       {[]Row{within, {Cause: "doubt", Ratio: ratio(0.9, 1)}}, false, experiment.VerdictInconclusive},
		"a rate that falls is a miss":  {[]Row{above, within}, true, experiment.VerdictNoGo},
		"a rate that grows meets it":   {[]Row{above}, true, experiment.VerdictGo},
		"no interval is no permission": {[]Row{{Ratio: &Ratio{Value: 1}}}, false, experiment.VerdictInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Result{Rows: tc.rows, HigherIsBetter: tc.higher}
			if r.Judge(1.05); r.Verdict != tc.want || r.Reason == "" {
				t.Errorf("%s (%s), want %s", r.Verdict, r.Reason, tc.want)
			}
		})
	}
}

// courseOf is a course whose members have p-values.
func courseOf(rate float64, p ...float64) *Course {
	out := &Course{rate: rate}
	for _, value := range p {
		out.members = append(out.members, state{p: value, blocks: looks[0], judged: looks[0]})
	}
	return out
}

func TestDiffers_HolmsProcedure(t *testing.T) {
	for name, tc := range map[string]struct {
		p    []float64
		want []bool
	}{
		"each step has a larger share":    {[]float64{0.004, 0.0033, 0.5}, []bool{true, true, false}},
		"none after the first that fails": {[]float64{0.0034, 0.0034, 0.0034}, []bool{false, false, false}},
		"one alone has the whole rate":    {[]float64{0.01}, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := courseOf(0.01, tc.p...).differs()
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("%v, want %v", got, tc.want)
					break
				}
			}
		})
	}
}

// The sum of the levels of all looks at all members is the error rate, and every look has two blocks of each order.
func TestLooks_AreFixedAndShareTheRate(t *testing.T) {
	c := courseOf(0.01, 1, 1, 1)
	if sum := c.level() * float64(len(looks)*len(c.members)); math.Abs(sum-0.01) > 1e-12 {
		t.Errorf("the levels add up to %g", sum)
	}
	for i, blocks := range looks {
		if blocks%2 != 0 || i > 0 && blocks <= looks[i-1] {
			t.Errorf("look %d at %d blocks", i, blocks)
		}
	}
}

func TestNext_BudgetGoesToTheNearestDecision(t *testing.T) {
	exp := freeze(t, asked(t, "Go", membersNamed(4)...))
	c := NewCourse(exp, 0.01)
	first := c.Next(0)
	if first.Done || first.Blocks != looks[0] || len(first.Cells) != len(exp.Cells) {
		t.Errorf("the first step is %+v", first)
	}
	for i := range c.members {
		c.members[i] = state{p: 1, blocks: looks[0], needs: math.Inf(1)}
	}
	c.members[0].p, c.members[1].needs, c.members[2].needs, c.members[3].failed = 0, 20, 4, "it failed"
	for name, tc := range map[string]struct {
		room int
		want []int
	}{
		"no room":                {1, nil},
		"room for one":           {2, []int{2}},
		"a part of much room":    {16, []int{2, 1}},
		"all that are undecided": {1000, []int{2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			step := c.Next(tc.room)
			if step.Done != (tc.want == nil) {
				t.Fatalf("step %+v", step)
			}
			points := map[int]bool{}
			for cell := range step.Cells {
				points[exp.Cells[cell].Point] = true
			}
			if len(points) != len(tc.want) {
				t.Errorf("points %v, want %v", points, tc.want)
			}
			for _, want := range tc.want {
				if !points[want] {
					t.Errorf("points %v, want %v", points, tc.want)
				}
			}
		})
	}
}

// However a plan chooses when to stop, a benchmark of equal speed is rarely called different: here the plan stops at the smallest p-value.
func TestLook_StoppingByResultsKeepsTheRate(t *testing.T) {
	if testing.Short() {
		t.Skip("statistical: runs in the long form")
	}
	exp := freeze(t, asked(t, "Go", membersNamed(1)...))
	random, wrong := rand.New(rand.NewPCG(3, 4)), 0
	const runs, rate = 2000, 0.05
	for range runs {
		c := NewCourse(exp, rate)
		m, q := &c.members[0], c.quantity(0)
		perBlock := map[string]float64{}
		for _, blocks := range looks[:8] {
			for len(perBlock) < blocks {
				perBlock[record.BlockName(0, len(perBlock))] = math.Exp(0.01 * random.NormFloat64())
			}
			result := &analysis.Analysis{Confidence: 0.95, GateConfidence: 0.995, Ratios: []analysis.RatioResult{{
				Point: q.Point, Candidate: New, Metric: q.Metric, Statistic: q.Statistic, PerBlock: perBlock,
			}}}
			m.blocks = blocks
			c.look(m, result, q)
		}
		if c.differs()[0] {
			wrong++
		}
	}
	if wrong > rate*runs {
		t.Errorf("%d of %d", wrong, runs)
	}
}

func TestNeeds_IsTheLookThatWouldDecide(t *testing.T) {
	c := courseOf(0.01, 1)
	near := c.needs(contrast.Contrast{LogRatio: 0.05, SE: 0.01 / math.Sqrt(6), DF: 5, Blocks: 6})
	far := c.needs(contrast.Contrast{LogRatio: 0.001, SE: 0.01 / math.Sqrt(6), DF: 5, Blocks: 6})
	if near != 2 || far < float64(looks[len(looks)-1]) {
		t.Errorf("5 %% needs %g further blocks, 0.1 %% needs %g", near, far)
	}
}
