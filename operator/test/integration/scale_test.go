package integration

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/test/fakeexecutor"
)

// The short form shows that the order and the reasons are right. make bench-nodes measures the full one, and no other test runs then.
var (
	scaleRuns     = flag.Int("scale-runs", 24, "runs of the scale test")
	scaleNodes    = flag.Int("scale-nodes", 12, "nodes of the scale test; at most half of the runs")
	scaleReleases = flag.Int("scale-releases", 2, "how often the scale test releases one node and awaits its next holder")
	scaleFigures  = flag.String("scale-figures", "", "file for the figures of the scale test, one JSON line each")
)

const (
	// scaleTeams is the number of namespaces over which the runs are spread.
	scaleTeams = 5
	// scalePatience is the timeout of a step of the full form.
	scalePatience = 15 * time.Minute
)

// contest is a world with many runs and nodes, and an engine whose executions run until the test ends them.
type contest struct {
	*world
	engine *fakeexecutor.Executor
	teams  []string
}

// Twice as many runs as nodes: each node has one holder at any time, all others wait and say so, and every run has its turn.
func TestScale_ManyRunsOnManyNodes(t *testing.T) {
	t.Parallel()
	if *scaleFigures != "" {
		debug.SetGCPercent(100) // That of the operator.
	}
	c := newContest(t)
	began := time.Now()
	c.createRuns(*scaleRuns)
	c.untilHolders("every node has a holder", *scaleNodes)
	half := time.Since(began)
	t.Logf("half of the runs have a node after %s", half)
	c.untilOthersWait(*scaleRuns - *scaleNodes)
	memory := residentMiB(t)
	status := c.largestStatusKiB()

	t.Logf("the others wait after %s", time.Since(began))
	var next []float64
	for range min(*scaleReleases, *scaleRuns-*scaleNodes) {
		next = append(next, c.release(1).Seconds())
	}
	t.Logf("seconds until the next holder: %.1f", next)
	c.release(min(*scaleNodes, *scaleRuns-*scaleNodes-len(next)))
	t.Logf("every run has had a node after %s", time.Since(began))
	c.checkTurns(*scaleNodes + len(next) + min(*scaleNodes, *scaleRuns-*scaleNodes-len(next)))
	if *scaleFigures == "" {
		return
	}
	p99, passes := passP99(t)
	all := []figures.Figure{
		{Figure: "scale.runs", Value: float64(*scaleRuns), Unit: "1", Samples: 1},
		{Figure: "scale.half_leased_s", Value: half.Seconds(), Unit: "s", Samples: *scaleNodes},
		{Figure: "scale.next_holder_s", Value: slices.Max(next), Unit: "s", Low: slices.Min(next), High: slices.Max(next),
			Samples: len(next)},
		{Figure: "scale.pass_p99_ms", Value: p99, Unit: "ms", Samples: passes},
		{Figure: "scale.operator_mib", Value: memory, Unit: "MiB", Samples: 1},
		{Figure: "scale.status_kib", Value: status, Unit: "KiB", Samples: *scaleRuns},
	}
	writeFigures(t, all)
	checkRequired(t, all)
}

func newContest(t *testing.T) *contest {
	t.Helper()
	c := &contest{world: newNamespace(t, nil), engine: fakeexecutor.New()}
	inTeams := func(w *world, o *testOperator) {
		for i := range scaleTeams {
			team := fmt.Sprintf("%s-team-%d", w.namespace, i)
			w.must(admin.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}))
			template := w.template.DeepCopy()
			template.Namespace = team
			w.must(admin.Create(w.ctx, template))
			c.teams = append(c.teams, team)
		}
		o.namespaces = append(o.namespaces, c.teams...)
	}
	// Nodes exist before the operator, as on a cluster.
	c.inParallel(*scaleNodes, func(i int) error {
		c.addNode(fmt.Sprintf("node-%03d", i), "4")
		return nil
	})
	c.startOperator(withEngine(c.engine), inTeams)
	return c
}

// inParallel calls f with each number, some at a time.
func (c *contest) inParallel(count int, f func(int) error) {
	c.t.Helper()
	var tasks errgroup.Group
	tasks.SetLimit(8)
	for i := range count {
		tasks.Go(func() error { return f(i) })
	}
	c.must(tasks.Wait())
}

func (c *contest) createRuns(count int) {
	c.t.Helper()
	c.inParallel(count, func(i int) error {
		run := c.run.DeepCopy()
		run.Namespace, run.Name = c.teams[i%scaleTeams], fmt.Sprintf("run-%04d", i)
		return admin.Create(c.ctx, run)
	})
}

// executions are those of the first waves, by whether they have ended. Two that run on one node at the same time fail the test.
func (c *contest) executions() (running, ended []executor.Execution) {
	c.t.Helper()
	holders := map[string]string{}
	for _, team := range c.teams {
		c.must(c.engine.Visit(c.ctx, executor.Query{Namespace: team}, func(e executor.Execution) {
			if e.Ended {
				ended = append(ended, e)
				return
			}
			running = append(running, e)
			for _, node := range e.Nodes {
				if other, held := holders[node]; held {
					c.t.Errorf("%s and %s run on %s at the same time", other, e.Run.Run(), node)
				}
				holders[node] = e.Run.Run()
			}
		}))
	}
	return running, ended
}

// within polls a condition for the patience of a large contest.
func (c *contest) within(what string, check func() error) {
	c.t.Helper()
	var last error
	for began := time.Now(); time.Since(began) < scalePatience; time.Sleep(20 * time.Millisecond) {
		if last = check(); last == nil {
			return
		}
	}
	c.t.Fatalf("waited for: %s\nlast: %v", what, last)
}

func (c *contest) untilHolders(what string, count int) {
	c.t.Helper()
	c.within(what, func() error {
		if running, _ := c.executions(); len(running) != count {
			return fmt.Errorf("%d executions run, want %d", len(running), count)
		}
		return nil
	})
}

// untilOthersWait waits until so many runs say that they wait for a lease.
func (c *contest) untilOthersWait(count int) {
	c.t.Helper()
	c.within("all others wait and say why", func() error {
		waiting := 0
		for _, run := range c.runs() {
			condition := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionProgressing)
			if condition != nil && condition.Reason == assayv1alpha1.ReasonWaitingForLease && len(run.Status.Leases) == 0 {
				waiting++
			}
		}
		if waiting != count {
			return fmt.Errorf("%d runs wait for a lease, want %d", waiting, count)
		}
		return nil
	})
}

func (c *contest) runs() []assayv1alpha1.BenchmarkRun {
	c.t.Helper()
	var all []assayv1alpha1.BenchmarkRun
	for _, team := range c.teams {
		var list assayv1alpha1.BenchmarkRunList
		c.must(admin.List(c.ctx, &list, client.InNamespace(team)))
		all = append(all, list.Items...)
	}
	return all
}

// release cancels so many runs that hold a node, ends their executions, and returns the time until others run on all of these nodes.
func (c *contest) release(count int) time.Duration {
	c.t.Helper()
	running, _ := c.executions()
	freed := running[:count]
	c.inParallel(count, func(i int) error {
		run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: freed[i].Run.Namespace, Name: freed[i].Run.Name}}
		if err := admin.Get(c.ctx, client.ObjectKeyFromObject(run), run); err != nil {
			return err
		}
		before := run.DeepCopy()
		run.Spec.Cancel = ptr.To(true)
		return admin.Patch(c.ctx, run, client.MergeFrom(before))
	})
	c.within("the cancelled executions are stopped", func() error {
		for _, e := range freed {
			stopped := false
			c.must(c.engine.Visit(c.ctx, executor.Query{Namespace: e.Run.Namespace, Name: e.Run.Name}, func(now executor.Execution) {
				stopped = stopped || now.Stopped
			}))
			if !stopped {
				return fmt.Errorf("the execution of %s runs on", e.Run.Run())
			}
		}
		return nil
	})
	began := time.Now()
	for _, e := range freed {
		c.engine.Set(e.Run.Namespace, e.Name, func(e *executor.Execution) { e.Ended = true })
	}
	c.untilHolders("the released nodes have other holders", *scaleNodes)
	return time.Since(began)
}

// checkTurns checks that so many runs have had a node, none of them twice.
func (c *contest) checkTurns(want int) {
	c.t.Helper()
	running, ended := c.executions()
	seen := map[string]int{}
	for _, e := range slices.Concat(running, ended) {
		if seen[e.Run.Run()]++; seen[e.Run.Run()] > 1 && !e.Analysis {
			c.t.Errorf("%s has run %d times", e.Run.Run(), seen[e.Run.Run()])
		}
	}
	if len(seen) != want {
		c.t.Errorf("%d runs had a node, want %d", len(seen), want)
	}
}

// ---- figures

func (c *contest) largestStatusKiB() float64 {
	c.t.Helper()
	largest := 0
	for _, run := range c.runs() {
		raw, err := json.Marshal(run.Status)
		c.must(err)
		largest = max(largest, len(raw))
	}
	return float64(largest) / 1024
}

// residentMiB is the resident memory of this process, in which the operator and the test are.
func residentMiB(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("/proc/self/status has no VmRSS")
	return 0
}

// passP99 is the upper bound of the histogram bucket with the 99th percentile of the duration of a pass over a run, in milliseconds.
func passP99(t *testing.T) (p99 float64, passes int) {
	t.Helper()
	families, err := controllermetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_time_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if of := metric.GetLabel(); !slices.ContainsFunc(of, func(l *dto.LabelPair) bool { return l.GetValue() == "benchmarkrun" }) {
				continue
			}
			histogram := metric.GetHistogram()
			for _, bucket := range histogram.GetBucket() {
				if float64(bucket.GetCumulativeCount()) >= 0.99*float64(histogram.GetSampleCount()) {
					return 1000 * bucket.GetUpperBound(), int(histogram.GetSampleCount())
				}
			}
			return math.Inf(1), int(histogram.GetSampleCount())
		}
	}
	t.Fatal("the operator counted no pass")
	return 0, 0
}

func writeFigures(t *testing.T, all []figures.Figure) {
	t.Helper()
	file, err := os.Create(*scaleFigures)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, figure := range all {
		if figure.Low == 0 && figure.High == 0 {
			figure.Low, figure.High = figure.Value, figure.Value
		}
		if err := figure.Write(file); err != nil {
			t.Fatal(err)
		}
	}
}
