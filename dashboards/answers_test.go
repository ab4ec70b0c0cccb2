package dashboards

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"

	q "assay.dev/assay/dashboards/queries"
)

// begin and end are the time shown: an hour, in whose tenth minute another operator took the lead.
var (
	begin = time.Unix(0, 0)
	end   = begin.Add(time.Hour)
)

// samples writes series as promqltest reads them, one sample in 15 seconds for an hour.
type samples struct{ strings.Builder }

// gauge is a series that both operators show in turn. Labels are written name="value", with a comma before.
func (s *samples) gauge(metric, labels string, value float64) {
	labels = strings.TrimPrefix(labels, ",")
	fmt.Fprintf(s, "  %s{%s,instance=\"a\",pod=\"operator-a\"} %gx39 stale\n", metric, labels, value)
	fmt.Fprintf(s, "  %s{%s,instance=\"b\",pod=\"operator-b\"} _x40 %gx200\n", metric, labels, value)
}

// counter grows by one with each sample.
func (s *samples) counter(metric, labels string) {
	fmt.Fprintf(s, "  %s{%s,instance=\"b\",pod=\"operator-b\"} _x40 0+1x200\n", metric, strings.TrimPrefix(labels, ","))
}

// histogram has n observations below each of its ends.
func (s *samples) histogram(metric, labels string, ends ...string) {
	for _, le := range append(ends, "+Inf") {
		s.counter(metric+"_bucket", labels+`,le="`+le+`"`)
	}
}

// run is all that a finished run of two arms over a sweep shows.
func (s *samples) run(name, fingerprint string, created, base float64) {
	of := `namespace="default",run="` + name + `"`
	s.gauge("assay_run_info", of+`,uid="uid-`+name+`",template="pir-scan",phase="Succeeded",verdict="Go",best="fused",fingerprint="`+fingerprint+`"`, 1)
	for metric, value := range map[string]float64{
		"created_timestamp_seconds": created, "start_timestamp_seconds": created + 10, "completion_timestamp_seconds": created + 310, "remaining_seconds": 5,
		"waves": 1, "planned_trials": 40, "valid_blocks": 5, "relative_half_width_ratio": 0.02, "trial_seconds": 80, "block_seconds": 100,
		"trial_overhead_seconds": 0.5, "moved_controls": 0, "warnings": 0,
	} {
		s.gauge("assay_run_"+metric, of, value)
	}
	s.gauge("assay_run_trials", of+`,outcome="done"`, 36)
	s.gauge("assay_run_trials", of+`,outcome="invalid"`, 4)
	s.gauge("assay_run_condition", of+`,condition="Complete",reason="VerdictReached"`, 1)
	s.gauge("assay_run_excluded_attempts", of+`,reason="stale_lease"`, 0)
	s.gauge("assay_run_noisy_trials", of+`,kind="steal"`, 2)
	s.gauge("assay_metrics_left_out_series", of, 3)
	s.gauge("assay_search_load", of+`,arm="fused",axis="rate",edge="feasible_max"`, 1000)
	for _, size := range []int{1, 8} {
		point := fmt.Sprintf(`%s,point="batchSize=%d,threads=2"`, of, size)
		s.gauge("assay_point_axis_value", point+`,axis="batchSize"`, float64(size))
		s.gauge("assay_point_axis_value", point+`,axis="threads"`, 2)
		for i, arm := range []string{"loop", "fused"} {
			at := fmt.Sprintf(`%s,arm="%s"`, point, arm)
			figure := at + `,metric="throughput",statistic="value"`
			value := base * float64(1+i) * float64(size)
			for part, factor := range map[string]float64{"estimate": 1, "low": 0.9, "high": 1.1} {
				s.gauge("assay_result_"+part, figure+`,unit="queries/s"`, value*factor)
			}
			s.gauge("assay_result_blocks", figure+`,unit="queries/s"`, 5)
			s.gauge("assay_result_ceiling_ratio", at+`,ceiling="read bandwidth"`, 0.4)
			for _, phase := range []string{"scan", "expand"} {
				s.gauge("assay_phase_seconds", at+`,phase="`+phase+`"`, 0.001)
			}
			if arm == "loop" {
				continue
			}
			for part, factor := range map[string]float64{"ratio": 1, "low_ratio": 0.95, "high_ratio": 1.05} {
				s.gauge("assay_comparison_"+part, figure, 2*factor)
			}
			s.gauge("assay_comparison_blocks", figure, 5)
			s.gauge("assay_prediction_ratio", figure, 1.5)
			gate := at + `,gate="gain",unit="1"`
			s.gauge("assay_gate_outcome", gate+`,op="RatioAtLeast",metric="throughput",statistic="value",severity="Blocking",outcome="Go"`, 1)
			for part, value := range map[string]float64{"estimate": 2, "low": 1.9, "high": 2.1, "bound": 1.5} {
				s.gauge("assay_gate_"+part, gate, value)
			}
		}
	}
}

// fleet holds the series of the platform itself.
func (s *samples) fleet() {
	for _, node := range []string{"node-a", "node-b"} {
		on := `node="` + node + `"`
		s.gauge("assay_node_ready", on, 1)
		s.gauge("assay_node_allocatable_cpus", on, 4)
		s.gauge("assay_node_noise_trials", on, 40)
		s.gauge("assay_node_noise_timestamp_seconds", on, 300)
		s.gauge("assay_node_noise_breaches", on+`,kind="steal"`, 2)
		s.gauge("assay_node_noise_limit_ratio", on+`,kind="steal"`, 0.01)
		for _, statistic := range []string{"newest", "median", "max"} {
			s.gauge("assay_node_noise_ratio", on+`,kind="steal",statistic="`+statistic+`"`, 0.005)
		}
	}
	for state, count := range map[string]float64{"Confirmed": 1, "Suspected": 2, "Fixed": 0} {
		s.gauge("assay_history_changes", `namespace="default",state="`+state+`"`, count)
	}
	for change, direction := range map[string]string{"3f2a9c": "regression", "77d01e": "improvement"} {
		s.gauge("assay_history_change_info", `namespace="default",change="`+change+`",direction="`+direction+`"`, 1)
	}
	s.gauge("assay_history_last_point_timestamp_seconds", `namespace="default",series="scan-nightly"`, 1500)
	held := `node="node-a",namespace="default",run="scan"`
	s.gauge("assay_lease_held", held, 1)
	s.gauge("assay_lease_expiry_timestamp_seconds", held, 3630)
	s.gauge("assay_runs", `namespace="default",phase="Succeeded"`, 3)
	for _, metric := range []string{"assay_lease_queue_length", "assay_ledger_up", "assay_metrics_left_out_runs"} {
		s.gauge(metric, `job="operator"`, 1)
	}
	s.gauge("process_resident_memory_bytes", `job="operator"`, 5e7)
	fmt.Fprintf(s, "  process_resident_memory_bytes{job=\"prometheus\",instance=\"c\"} 5e9x240\n")
	s.histogram("assay_lease_wait_seconds", `job="operator"`, "0.1", "15")
	s.histogram("assay_ledger_operation_seconds", `operation="get"`, "0.01", "1")
	s.histogram("controller_runtime_reconcile_time_seconds", `controller="benchmarkrun"`, "0.01", "0.1")
	s.counter("controller_runtime_reconcile_errors_total", `controller="benchmarkrun"`)
	s.counter("assay_ledger_operation_errors_total", `operation="get",reason="Timeout"`)
	s.counter("assay_lease_events_total", `event="acquired"`)
	fmt.Fprintf(s, "  ALERTS{alertname=\"AssayNoisyNode\",alertstate=\"firing\",severity=\"warning\"} 1x240\n")
}

type answers struct {
	storage *teststorage.TestStorage
	engine  *promql.Engine
}

func newAnswers(t *testing.T) *answers {
	t.Helper()
	data := &samples{}
	data.WriteString("load 15s\n")
	data.run("scan", "0123", 600, 100)
	data.run("scan-2", "0123", 1200, 110)
	data.run("scan-3", "4567", 1800, 90)
	data.fleet()
	storage := promqltest.LoadedStorage(t, data.String())
	t.Cleanup(func() { _ = storage.Close() })
	return &answers{storage, promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6)}
}

// ask returns the series of an answer, by their labels, with the newest value. Values that are no numbers do not count.
func (a *answers) ask(t *testing.T, expression string, instant bool) map[string]float64 {
	t.Helper()
	var query promql.Query
	var err error
	if instant {
		query, err = a.engine.NewInstantQuery(t.Context(), a.storage, nil, expression, end)
	} else {
		query, err = a.engine.NewRangeQuery(t.Context(), a.storage, nil, expression, begin, end, 15*time.Second)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, expression)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%v\n%s", result.Err, expression)
	}
	out := map[string]float64{}
	switch value := result.Value.(type) {
	case promql.Vector:
		for _, sample := range value {
			if !math.IsNaN(sample.F) {
				out[sample.Metric.String()] = sample.F
			}
		}
	case promql.Matrix:
		for _, series := range value {
			for _, point := range series.Floats {
				if !math.IsNaN(point.F) {
					out[series.Metric.String()] = point.F
				}
			}
		}
	default:
		t.Fatalf("an answer is %T", value)
	}
	return out
}

func TestQueries_HaveAnswers(t *testing.T) {
	data := newAnswers(t)
	panels(t, func(t *testing.T, _ string, panel *dashboard.Panel) {
		for _, query := range queriesOf(t, panel) {
			instant := query.Instant != nil && *query.Instant
			answer := data.ask(t, filled(query.Expr), instant)
			if len(answer) == 0 {
				t.Errorf("nothing is there for %s", query.Expr)
			}
			for labels := range answer {
				if strings.Contains(labels, "instance") || strings.Contains(labels, "pod=") {
					t.Errorf("the answer has labels of the scrape: %s", labels)
				}
			}
		}
	})
}

func TestAnswers(t *testing.T) {
	data := newAnswers(t)
	for name, tc := range map[string]struct {
		query string
		want  map[string]float64
	}{
		"a curve has a place and a name for every arm, and the other axis in the name": {
			q.Curves(q.Results[:2], q.Figure), map[string]float64{
				`{curve="loop  threads=2 (estimate)", x="1"}`: 100, `{curve="loop  threads=2 (estimate)", x="8"}`: 800,
				`{curve="fused  threads=2 (estimate)", x="1"}`: 200, `{curve="fused  threads=2 (estimate)", x="8"}`: 1600,
				`{curve="loop  threads=2 (low)", x="1"}`: 90, `{curve="loop  threads=2 (low)", x="8"}`: 720,
				`{curve="fused  threads=2 (low)", x="1"}`: 180, `{curve="fused  threads=2 (low)", x="8"}`: 1440,
			},
		},
		"of a curve only the lines that are there": {
			q.Curves([]q.Line{q.Predicted, {Metric: "assay_comparison_low_ratio", Word: "low"}}, q.Figure), map[string]float64{
				`{curve="fused  threads=2 (predicted)", x="1"}`: 1.5, `{curve="fused  threads=2 (predicted)", x="8"}`: 1.5,
				`{curve="fused  threads=2 (low)", x="1"}`: 1.9, `{curve="fused  threads=2 (low)", x="8"}`: 1.9,
			},
		},
		"a run that ended has taken its time":              {q.Elapsed(), map[string]float64{`{}`: 300}},
		"trials that were no use count as progress":        {q.Progress(q.Run), map[string]float64{`{namespace="default", run="scan"}`: 1}},
		"the share of a limit is by node and kind":         {q.NoiseOfLimit(), map[string]float64{`{kind="steal", node="node-a"}`: 0.5, `{kind="steal", node="node-b"}`: 0.5}},
		"no run's controls moved, and that is a zero":      {q.MovedShare(), map[string]float64{`{}`: 0}},
		"the memory is the leading operator's":             {q.Leader("process_resident_memory_bytes"), map[string]float64{`{}`: 5e7}},
		"the counts are complete and belong to the leader": {q.Increase("assay_lease_events_total", q.All, "event"), map[string]float64{`{event="acquired"}`: 200}},
		"a share of breaches is of the node's trials":      {q.BreachShare(), map[string]float64{`{kind="steal", node="node-a"}`: 0.05, `{kind="steal", node="node-b"}`: 0.05}},
		"runs of one workload, by verdict":                 {q.Verdicts(q.Workload), map[string]float64{`{verdict="Go"}`: 3}},
		"changes by state, none of them twice": {q.Changes(), map[string]float64{
			`{state="Confirmed"}`: 1, `{state="Suspected"}`: 2, `{state="Fixed"}`: 0,
		}},
		"changes that wait, in one direction": {q.Waiting("regression"), map[string]float64{
			`{change="3f2a9c", direction="regression", namespace="default"}`: 1,
		}},
		"the newest point of a series, in milliseconds": {q.NewestPoints(), map[string]float64{
			`{namespace="default", series="scan-nightly"}`: 1500000,
		}},
		"overhead over the time of the runs": {q.OverheadHistory(), map[string]float64{
			`{created="600000", curve="0123"}`: 0.5, `{created="1200000", curve="0123"}`: 0.5, `{created="1800000", curve="4567"}`: 0.5,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := data.ask(t, filled(tc.query), true)
			for labels, want := range tc.want {
				if value, ok := got[labels]; !ok || math.Abs(value-want) > 1e-9*math.Abs(want) {
					t.Errorf("%s is %v, want %v", labels, value, want)
				}
			}
			if len(got) != len(tc.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A run that is gone stays in the history, and a name that was used again is not mixed up.
func TestHistory_ShowsEarlierRuns(t *testing.T) {
	data := newAnswers(t)
	gone := &samples{}
	gone.WriteString("load 15s\n")
	labels := `namespace="default",run="deleted"`
	figure := labels + `,point="batchSize=8,threads=2",arm="loop",metric="throughput",statistic="value",unit="queries/s",instance="a"`
	fmt.Fprintf(gone, "  assay_run_info{%s,template=\"pir-scan\",phase=\"Running\",verdict=\"None\",fingerprint=\"0123\",instance=\"a\"} "+
		"1x20 stale\n", labels)
	fmt.Fprintf(gone, "  assay_run_info{%s,template=\"pir-scan\",phase=\"Succeeded\",verdict=\"Go\",fingerprint=\"0123\",instance=\"a\"} "+
		"_x20 1x20 stale\n", labels)
	fmt.Fprintf(gone, "  assay_run_created_timestamp_seconds{%s,instance=\"a\"} 30x40 stale\n", labels)
	fmt.Fprintf(gone, "  assay_result_estimate{%s} 77x40 stale\n", figure)
	// The run again was deleted and made anew, after its node had got another kernel.
	labels, figure = strings.ReplaceAll(labels, "deleted", "again"), strings.ReplaceAll(figure, "deleted", "again")
	fmt.Fprintf(gone, "  assay_run_info{%s,template=\"pir-scan\",phase=\"Succeeded\",verdict=\"Go\",fingerprint=\"0123\",instance=\"a\"} "+
		"1x40 stale\n", labels)
	fmt.Fprintf(gone, "  assay_run_info{%s,template=\"pir-scan\",phase=\"Succeeded\",verdict=\"Go\",fingerprint=\"4567\",instance=\"a\"} "+
		"_x100 1x140\n", labels)
	fmt.Fprintf(gone, "  assay_run_created_timestamp_seconds{%s,instance=\"a\"} 40x40 stale _x60 1500x140\n", labels)
	fmt.Fprintf(gone, "  assay_result_estimate{%s} 78x40 stale _x60 79x140\n", figure)
	data.storage = promqltest.LoadedStorage(t, gone.String())
	t.Cleanup(func() { _ = data.storage.Close() })
	got := data.ask(t, filled(q.History(q.Results)), true)
	if len(got) != 2 || got[`{created="30000", curve="batchSize=8,threads=2 loop 0123 (estimate)"}`] != 77 ||
		got[`{created="1500000", curve="batchSize=8,threads=2 loop 4567 (estimate)"}`] != 79 {
		t.Errorf("got %v", got)
	}
}

func TestHistory_LineJoinsRunsOfOneEnvironment(t *testing.T) {
	data := newAnswers(t)
	var places []string
	for labels := range data.ask(t, filled(q.History(q.Results)), true) {
		if strings.Contains(labels, `batchSize=8,threads=2 fused 0123 (estimate)`) {
			places = append(places, labels)
		}
	}
	slices.Sort(places)
	if want := []string{
		`{created="1200000", curve="batchSize=8,threads=2 fused 0123 (estimate)"}`, `{created="600000", curve="batchSize=8,threads=2 fused 0123 (estimate)"}`,
	}; !slices.Equal(places, want) {
		t.Errorf("got %q", places)
	}
}
