package browser

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// specimen writes invented series in the format of OpenMetrics: a fleet of two nodes on which runs of one workload ended, and one is
// active. The names are as long as real ones. Samples are 15 s apart.
type specimen struct {
	families map[string]*strings.Builder
	from, to time.Time
}

const (
	sampleStep = 15 * time.Second
	shownRun   = "figures-pir-batch-29411460"
)

// series adds samples of value between two times. Missing samples are NaN.
func (s *specimen) series(metric, labels string, from, to time.Time, value func(time.Time) float64) {
	family := s.families[metric]
	if family == nil {
		family = &strings.Builder{}
		s.families[metric] = family
	}
	for at := from; !at.After(to); at = at.Add(sampleStep) {
		if v := value(at); !math.IsNaN(v) {
			fmt.Fprintf(family, "%s{%s} %g %d\n", metric, strings.Trim(labels, ","), v, at.Unix())
		}
	}
}

func (s *specimen) gauge(metric, labels string, value float64) {
	s.series(metric, labels, s.from, s.to, func(time.Time) float64 { return value })
}

// grows is a counter that grows by a step each minute.
func (s *specimen) grows(metric, labels string, perMinute float64) {
	s.series(metric, labels, s.from, s.to, func(at time.Time) float64 { return math.Floor(perMinute * at.Sub(s.from).Minutes()) })
}

func (s *specimen) histogram(metric, labels string, perMinute float64, ends ...float64) {
	for i, end := range ends {
		share := math.Min(1, float64(i+1)/float64(len(ends)-1))
		s.grows(metric+"_bucket", fmt.Sprintf(`%s,le="%g"`, labels, end), perMinute*share)
	}
	s.grows(metric+"_bucket", labels+`,le="+Inf"`, perMinute)
}

// scrape are the labels that Prometheus adds.
const scrape = `,instance="10.244.1.17:8443",job="assay",pod="assay-operator-7d9c6b5f4d-x2x9p"`

func unix(at time.Time) float64 { return float64(at.Unix()) }

// run is a run with two points, four arms and two metrics. Since is the time when it was created.
func (s *specimen) run(name, verdict string, since, ended time.Time, speed float64) {
	of := `namespace="team-search",run="` + name + `"`
	until := s.to
	active := ended.After(s.to)
	one := func(time.Time) float64 { return 1 }
	info := func(phase, verdict, best string) string {
		return of + `,uid="8c1f2d5e-7a34-4b0e-9d55-` + fmt.Sprintf("%012x", since.Unix()) + `",template="pir-scan",phase="` +
			phase + `",verdict="` + verdict +
			`",best="` + best + `",fingerprint="9f86d081884c",cause=""` + scrape
	}
	running := ended
	if active {
		running = until
	}
	s.series("assay_run_info", info("Running", "None", ""), since, running, one)
	// at is a gauge of the run.
	at := func(metric, labels string, from time.Time, value func(time.Time) float64) {
		s.series(metric, of+labels+scrape, from, until, value)
	}
	fixed := func(value float64) func(time.Time) float64 { return func(time.Time) float64 { return value } }
	share := func(now time.Time) float64 { return math.Min(1, now.Sub(since).Minutes()/ended.Sub(since).Minutes()) }
	at("assay_run_created_timestamp_seconds", "", since, fixed(unix(since)))
	at("assay_run_start_timestamp_seconds", "", since, fixed(unix(since.Add(20*time.Second))))
	at("assay_run_planned_trials", "", since, fixed(176))
	at("assay_run_waves", "", since, func(now time.Time) float64 { return 1 + math.Floor(2*share(now)) })
	at("assay_run_trials", `,outcome="done"`, since, func(now time.Time) float64 { return math.Floor(168 * share(now)) })
	at("assay_run_trials", `,outcome="invalid"`, since, func(now time.Time) float64 { return math.Floor(6 * share(now)) })
	at("assay_run_trials", `,outcome="failed"`, since, func(now time.Time) float64 { return math.Floor(2 * share(now)) })
	s.series("assay_run_remaining_seconds", of+scrape, since, running, func(now time.Time) float64 { return ended.Sub(now).Seconds() })
	for condition, reason := range map[string]string{
		"Complete": "VerdictReached", "Admitted": "NodesAcquired", "PlatformReady": "AsExpected",
	} {
		at("assay_run_condition", fmt.Sprintf(`,condition=%q,reason=%q`, condition, reason), since, fixed(1))
	}
	at("assay_run_condition", `,condition="Cancelled",reason="NotRequested"`, since, fixed(0))
	if !active {
		best := map[string]string{"Go": "fused-m4r"}[verdict]
		s.series("assay_run_info", info("Succeeded", verdict, best), ended, until, one)
		at("assay_run_completion_timestamp_seconds", "", ended, fixed(unix(ended)))
	}
	judged := since.Add(4 * time.Minute)
	at("assay_run_valid_blocks", "", judged, func(now time.Time) float64 { return math.Floor(11 * share(now)) })
	at("assay_run_relative_half_width_ratio", "", judged, func(now time.Time) float64 { return 0.03 / math.Sqrt(share(now)) })
	at("assay_run_moved_controls", "", judged, fixed(0))
	at("assay_run_warnings", "", judged, fixed(1))
	at("assay_run_trial_seconds", "", judged, func(now time.Time) float64 { return 410 * share(now) })
	at("assay_run_block_seconds", "", judged, func(now time.Time) float64 { return 520 * share(now) })
	at("assay_run_trial_overhead_seconds", "", judged, fixed(0.62))
	at("assay_run_excluded_attempts", `,reason="stale_lease"`, judged, fixed(0))
	at("assay_run_excluded_attempts", `,reason="superseded"`, judged, fixed(2))
	at("assay_run_noisy_trials", `,kind="steal"`, judged, fixed(4))
	at("assay_run_noisy_trials", `,kind="canary-spread"`, judged, fixed(1))
	for i, batch := range []int{8, 32} {
		point := fmt.Sprintf(`,point="batchSize=%d,threads=2"`, batch)
		at("assay_point_axis_value", point+`,axis="batchSize"`, judged, fixed(float64(batch)))
		at("assay_point_axis_value", point+`,axis="threads"`, judged, fixed(2))
		for j, arm := range []string{"loop", "fused-naive", "fused-tiled", "fused-m4r"} {
			on := fmt.Sprintf(`%s,arm=%q`, point, arm)
			value := speed * (1 + 0.6*float64(j)) * (1 + 0.8*float64(i))
			width := 0.04
			for _, metric := range []struct {
				name, statistic, unit string
				value                 float64
			}{{"throughput", "value", "queries/s", value}, {"latency", "p99", "s", 12 / value}, {"cpuTime", "median", "s", 9 / value}} {
				labels := fmt.Sprintf(`%s,metric=%q,statistic=%q`, on, metric.name, metric.statistic)
				for part, factor := range map[string]float64{"estimate": 1, "low": 1 - width, "high": 1 + width} {
					at("assay_result_"+part, labels+fmt.Sprintf(`,unit=%q`, metric.unit), judged, fixed(metric.value*factor))
				}
				at("assay_result_blocks", labels+fmt.Sprintf(`,unit=%q`, metric.unit), judged, fixed(11))
				if j == 0 {
					continue
				}
				ratio := 1 + 0.6*float64(j)
				if metric.unit == "s" {
					ratio = 1 / ratio
				}
				for part, factor := range map[string]float64{"ratio": 1, "low_ratio": 1 - width, "high_ratio": 1 + width} {
					at("assay_comparison_"+part, labels, judged, fixed(ratio*factor))
				}
				at("assay_comparison_blocks", labels, judged, fixed(11))
				if metric.name == "throughput" {
					at("assay_prediction_ratio", labels, judged, fixed(1+0.5*float64(j)))
				}
			}
			at("assay_result_ceiling_ratio", on+`,ceiling="read bandwidth"`, judged, fixed(0.2+0.15*float64(j)))
			at("assay_result_ceiling_ratio", on+`,ceiling="instructions per cycle"`, judged, fixed(0.3+0.1*float64(j)))
			for k, phase := range []string{"expand keys", "scan", "answer"} {
				at("assay_phase_seconds", fmt.Sprintf(`%s,phase=%q`, on, phase), judged, fixed(0.0004*float64(1+k)*(2-0.3*float64(j))))
			}
			if j == 0 {
				continue
			}
			gate := on + `,gate="at least twice the throughput",unit="1"`
			outcome := []string{"", "NoGo", "Inconclusive", "Go"}[j]
			judgement := fmt.Sprintf(`,op="RatioAtLeast",metric="throughput",statistic="value",severity="Blocking",outcome=%q`, outcome)
			at("assay_gate_outcome", gate+judgement, judged, fixed(1))
			gain := 1 + 0.6*float64(j)
			for part, v := range map[string]float64{"estimate": gain, "low": gain * 0.96, "high": gain * 1.04, "bound": 2} {
				at("assay_gate_"+part, gate, judged, fixed(v))
			}
		}
	}
}

func (s *specimen) fleet() {
	for i, node := range []string{"ip-10-0-3-117.eu-central-1.compute.internal", "ip-10-0-3-42.eu-central-1.compute.internal"} {
		on := fmt.Sprintf(`node=%q`, node)
		s.gauge("assay_node_ready", on+scrape, 1)
		s.gauge("assay_node_allocatable_cpus", on+scrape, float64(16-8*i))
		s.gauge("assay_node_noise_trials", on+scrape, 352)
		s.gauge("assay_node_noise_timestamp_seconds", on+scrape, unix(s.to.Add(-time.Duration(i+1)*time.Minute)))
		for kind, limit := range map[string]float64{"steal": 0.01, "canary-spread": 0.05, "otherWork": 0.1} {
			of := fmt.Sprintf(`%s,kind=%q`, on, kind)
			s.gauge("assay_node_noise_limit_ratio", of+scrape, limit)
			s.gauge("assay_node_noise_breaches", of+scrape, float64(3*i))
			s.series("assay_node_noise_ratio", of+`,statistic="newest"`+scrape, s.from, s.to, func(at time.Time) float64 {
				return limit * (0.5 + 0.4*math.Sin(float64(at.Unix())/300+float64(i)))
			})
			s.gauge("assay_node_noise_ratio", of+`,statistic="median"`+scrape, limit*0.4)
			s.gauge("assay_node_noise_ratio", of+`,statistic="max"`+scrape, limit*1.3)
		}
	}
	for phase, count := range map[string]float64{"Succeeded": 41, "Failed": 2, "Running": 1, "Pending": 3} {
		s.gauge("assay_runs", fmt.Sprintf(`namespace="team-search",phase=%q`, phase)+scrape, count)
	}
	s.series("assay_lease_queue_length", strings.TrimPrefix(scrape, ","), s.from, s.to, func(at time.Time) float64 {
		return math.Round(1.5 + 1.5*math.Sin(float64(at.Unix())/600))
	})
	s.gauge("assay_ledger_up", strings.TrimPrefix(scrape, ","), 1)
	s.gauge("assay_metrics_left_out_runs", strings.TrimPrefix(scrape, ","), 0)
	s.gauge("process_resident_memory_bytes", strings.TrimPrefix(scrape, ","), 1.3e8)
	for state, count := range map[string]float64{"Suspected": 2, "Confirmed": 1, "Acknowledged": 1, "Fixed": 4} {
		s.gauge("assay_history_changes", fmt.Sprintf(`namespace="team-search",state=%q`, state)+scrape, count)
	}
	s.gauge("assay_history_change_info", `namespace="team-search",change="3f2a9c1b",direction="regression"`+scrape, 1)
	for i, name := range []string{"figures-pir-batch", "figures-pir-nightly"} {
		newest := unix(s.to.Add(-time.Duration(i+1) * time.Hour))
		s.gauge("assay_history_last_point_timestamp_seconds", fmt.Sprintf(`namespace="team-search",series=%q`, name)+scrape, newest)
	}
	s.histogram("assay_lease_wait_seconds", strings.TrimPrefix(scrape, ","), 0.5, 0, 1, 15, 60, 300, 900)
	for _, operation := range []string{"get", "create", "replace", "list"} {
		s.histogram("assay_ledger_operation_seconds", fmt.Sprintf(`operation=%q`, operation)+scrape, 12, 0.001, 0.005, 0.02, 0.1, 0.5)
	}
	for _, controller := range []string{"benchmarkrun", "benchmarkschedule"} {
		s.histogram("controller_runtime_reconcile_time_seconds", fmt.Sprintf(`controller=%q`, controller)+scrape, 30, 0.005, 0.01, 0.05, 0.1, 1)
		s.grows("controller_runtime_reconcile_errors_total", fmt.Sprintf(`controller=%q`, controller)+scrape, 0.02)
	}
	for event, perMinute := range map[string]float64{"acquired": 0.3, "renewed": 4, "released": 0.3, "lost": 0.01} {
		s.grows("assay_lease_events_total", fmt.Sprintf(`event=%q`, event)+scrape, perMinute)
	}
}

// writeSpecimen creates the series up to a time, and returns the folder of a Prometheus database with them.
func writeSpecimen(t *testing.T, now time.Time) string {
	t.Helper()
	s := &specimen{families: map[string]*strings.Builder{}, from: now.Add(-3 * time.Hour), to: now}
	s.fleet()
	for i, verdict := range []string{"Go", "NoGo", "Go", "Inconclusive"} {
		since := s.from.Add(time.Duration(10+35*i) * time.Minute)
		name := fmt.Sprintf("figures-pir-batch-%d", 29411340+60*i)
		held := fmt.Sprintf(`node=%q,namespace="team-search",run=%q`, "ip-10-0-3-117.eu-central-1.compute.internal", name)
		s.series("assay_lease_held", held+scrape, since, since.Add(28*time.Minute), func(time.Time) float64 { return 1 })
		s.run(name, verdict, since, since.Add(28*time.Minute), 88*(1+0.01*float64(i)))
	}
	since := now.Add(-20 * time.Minute)
	held := fmt.Sprintf(`node=%q,namespace="team-search",run=%q`, "ip-10-0-3-117.eu-central-1.compute.internal", "figures-pir-batch-29411580")
	s.series("assay_lease_held", held+scrape, since, now, func(time.Time) float64 { return 1 })
	s.series("assay_lease_expiry_timestamp_seconds", held+scrape, since, now, func(at time.Time) float64 { return unix(at) + 40 })
	s.run("figures-pir-batch-29411580", "", since, now.Add(12*time.Minute), 91)

	folder := t.TempDir()
	text := filepath.Join(folder, "specimen.txt")
	var all strings.Builder
	for name, family := range s.families {
		kind := "gauge"
		if strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_total") {
			kind = "unknown"
		}
		fmt.Fprintf(&all, "# TYPE %s %s\n%s", name, kind, family)
	}
	all.WriteString("# EOF\n")
	if err := os.WriteFile(text, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(folder, "data")
	backfill := exec.Command(program(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", text, database)
	if out, err := backfill.CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return database
}
