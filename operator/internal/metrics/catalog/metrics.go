package catalog

var (
	ofRun    = []string{"namespace", "run"}
	ofResult = []string{"namespace", "run", "point", "arm", "metric", "statistic", "unit"}
	ofRatio  = []string{"namespace", "run", "point", "arm", "metric", "statistic"}
	ofPhase  = []string{"namespace", "run", "point", "arm", "phase"}
	ofGate   = []string{"namespace", "run", "gate", "arm", "point", "unit"}
	ofNoise  = []string{"node", "kind"}
)

const (
	onceAnalysed = "a wave was analysed"
	onceJudged   = "a wave was analysed and the run has gates"
	onceHistory  = "the history was read"
	hasInterval  = "there are enough blocks for an interval"
)

// Groups lists all metrics.
var Groups = []Group{
	{
		Title: "Operator",
		Intro: "Counters start at the leading operator's start, and are reset when the leader changes; use `rate` or `increase`.",
		Bound: "namespaces that the operator watches, times the values of the other labels",
		Metrics: []Metric{
			{Name: "assay_runs_finished_total", Type: Counter, Labels: []string{"namespace", "phase", "verdict"}, Help: "Runs that ended",
				When: "a run ended since the operator started"},
			{Name: "assay_waves_started_total", Type: Counter, Labels: []string{"namespace", "purpose"}, Help: "Waves that were started",
				When: "a wave was started since the operator started"},
			{Name: "assay_trials_finished_total", Type: Counter, Labels: []string{"namespace", "outcome"},
				Help: "Trials of runs that ended with an analysis, by outcome", When: "a run ended since the operator started"},
			{Name: "assay_gates_judged_total", Type: Counter, Labels: []string{"namespace", "severity", "outcome"},
				Help: "Gates of runs that ended, one per candidate and point", When: "a run with gates ended since the operator started"},
		},
	},
	{
		Title: "Runs and nodes now",
		Intro: "Read from the operator's caches at every scrape. Only the leading operator exports them.",
		Bound: "namespaces times 7 phases; the first 1,000 nodes of the cluster by name; one lease per node",
		Metrics: []Metric{
			{Name: "assay_runs", Type: Gauge, Labels: []string{"namespace", "phase"}, Help: "Number of runs, by phase", When: "there is " +
				"a run"},
			{Name: "assay_lease_queue_length", Type: Gauge, Help: "Runs that wait for a node"},
			{Name: "assay_lease_held", Type: Gauge, Labels: []string{"node", "namespace", "run"}, Help: "1 while the run holds the node",
				When: "a run holds a node"},
			{Name: "assay_lease_expiry_timestamp_seconds", Type: Gauge, Unit: "s", Labels: []string{"node", "namespace", "run"},
				Help: "When the run's lease of the node expires unless renewed, in Unix time", When: "a run holds a node"},
			{Name: "assay_lease_wait_seconds", Type: Histogram, Unit: "s", Help: "Time that a run waited until it acquired a node, 0 " +
				"if it " +
				"did not wait", Buckets: []float64{0.1, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400}},
			{Name: "assay_lease_events_total", Type: Counter, Labels: []string{"event"},
				Help: "Events of node leases: acquired, renewed, released, or lost by the holder"},
			{Name: "assay_node_ready", Type: Gauge, Labels: []string{"node"}, Help: "1 if the node is ready and is schedulable, else 0",
				When: "there is a node"},
			{Name: "assay_node_allocatable_cpus", Type: Gauge, Labels: []string{"node"}, Help: "Allocatable CPUs of the node",
				When: "there is a node"},
		},
	},
	{
		Title: "Ledger",
		Bound: "4 operations times about 20 causes",
		Metrics: []Metric{
			{Name: "assay_ledger_up", Type: Gauge,
				Help: "1 if the last probe of the object store succeeded, else 0; the interval is 30 seconds"},
			{Name: "assay_ledger_stored_bytes", Type: Gauge, Unit: "B", Labels: []string{"namespace"}, Help: "Size of the ledgers of the " +
				"namespace at the last update, every 10 minutes", When: "the policy limits the storage of the namespace"},
			{Name: "assay_ledger_stored_objects", Type: Gauge, Labels: []string{"namespace"}, Help: "Number of objects in the ledgers " +
				"of the namespace",
				When: "the policy limits the storage of the namespace"},
			{Name: "assay_ledger_operation_seconds", Type: Histogram, Unit: "s", Labels: []string{"operation"},
				Help:    "Duration of an operation of the object store: get, create, replace or list",
				Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}},
			{Name: "assay_ledger_operation_errors_total", Type: Counter, Labels: []string{"operation", "reason"},
				Help: "Failed operations of the object store, by cause; absent and existing objects do not count as failures",
				When: "an operation failed since the operator started"},
		},
	},
	{
		Title: "Each run",
		Intro: "At most `--metrics-runs` runs. Namespaces are selected round-robin, so that one with many runs does not displace the " +
			"others; in each, " +
			"unfinished runs precede finished ones, newer ones first. A deleted run disappears.",
		Bound: "runs shown times about 40",
		Metrics: []Metric{
			{Name: "assay_run_info", Type: Gauge, Labels: []string{"namespace", "run", "uid", "template", "phase", "verdict", "best", "fingerprint",
				"cause"},
				Help: "1; the labels describe the run and its state"},
			{Name: "assay_run_condition", Type: Gauge, Labels: []string{"namespace", "run", "condition", "reason"},
				Help: "1 if the condition is True, else 0; reason is its reason", When: "the operator reconciled the run"},
			{Name: "assay_run_created_timestamp_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "When the run was created, in " +
				"Unix time"},
			{Name: "assay_run_start_timestamp_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "When the first wave started, in " +
				"Unix time",
				When: "the first wave started"},
			{Name: "assay_run_completion_timestamp_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "When the run ended, in Unix " +
				"time",
				When: "the run ended"},
			{Name: "assay_run_remaining_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "Expected time to the end of the current " +
				"wave",
				When: "a block of the wave ended"},
			{Name: "assay_run_waves", Type: Gauge, Labels: ofRun, Help: "Waves started so far", When: "the first wave started"},
			{Name: "assay_run_planned_trials", Type: Gauge, Labels: ofRun, Help: "Trials planned so far, warm-ups included",
				When: "the first wave started"},
			{Name: "assay_run_trials", Type: Gauge, Labels: []string{"namespace", "run", "outcome"}, Help: "Trials so far: done, " +
				"invalid or failed",
				When: "the first wave started"},
			{Name: "assay_run_valid_blocks", Type: Gauge, Labels: ofRun, Help: "Minimum over points and arms of the blocks with valid " +
				"trials",
				When: onceAnalysed},
			{Name: "assay_run_relative_half_width_ratio", Type: Gauge, Labels: ofRun, Help: "Largest half width of the intervals of the " +
				"Blocking gates, relative to the estimate", When: "every Blocking gate has an interval"},
			{Name: "assay_run_trial_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "Total time of all trials", When: onceAnalysed},
			{Name: "assay_run_block_seconds", Type: Gauge, Unit: "s", Labels: ofRun,
				Help: "Total time of all blocks, each from the start of its first trial to the end of its last", When: onceAnalysed},
			{Name: "assay_run_trial_overhead_seconds", Type: Gauge, Unit: "s", Labels: ofRun,
				Help: "Overhead in blocks per trial: starting, waiting for a quiet machine, and reading its state", When: onceAnalysed},
			{Name: "assay_run_excluded_attempts", Type: Gauge, Labels: []string{"namespace", "run", "reason"},
				Help: "Attempts excluded from the results, by reason; stale_lease means that another run may have used the node",
				When: onceAnalysed},
			{Name: "assay_run_noisy_trials", Type: Gauge, Labels: []string{"namespace", "run", "kind"},
				Help: "Trials that exceeded a noise limit, by limit", When: onceAnalysed},
			{Name: "assay_run_moved_controls", Type: Gauge, Labels: ofRun,
				Help: "Comparisons of the null arm or of a control phase with a significant difference, which should not " +
					"occur", When: onceAnalysed},
			{Name: "assay_run_warnings", Type: Gauge, Labels: ofRun,
				Help: "Warnings about the validity of the results; the report has their texts", When: onceAnalysed},
		},
	},
	{
		Title: "Results of each run",
		Intro: "From the newest analysis of the ledger, which may be of an intermediate wave. Intervals are at `design.confidence`, " +
			"those of " +
			"gates at `design.gateConfidence`.",
		Bound: "`--metrics-series-per-run` for one run, and 50,000 for all; the rest is omitted, with runs and metrics in the order " +
			"above and below, " +
			"and `assay_metrics_left_out_series` counts it",
		Metrics: []Metric{
			{Name: "assay_gate_outcome", Type: Gauge, Labels: []string{"namespace", "run", "gate", "arm", "point", "unit", "op", "metric",
				"statistic", "severity", "outcome"}, Help: "1; the label outcome is the gate's outcome for the arm at the " +
				"point", When: onceJudged},
			{Name: "assay_gate_estimate", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "Estimate that the gate compares with " +
				"its bound",
				When: "the gate has an estimate"},
			{Name: "assay_gate_low", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "Low end of the interval of assay_gate_estimate",
				When: hasInterval},
			{Name: "assay_gate_high", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "High end of the interval of " +
				"assay_gate_estimate",
				When: hasInterval},
			{Name: "assay_gate_bound", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "The gate's bound", When: onceJudged},
			{Name: "assay_comparison_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio,
				Help: "The arm over the baseline at the point, paired by block", When: "a wave was analysed and there are two arms"},
			{Name: "assay_comparison_low_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio,
				Help: "Low end of the interval of assay_comparison_ratio", When: hasInterval},
			{Name: "assay_comparison_high_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio,
				Help: "High end of the interval of assay_comparison_ratio", When: hasInterval},
			{Name: "assay_comparison_blocks", Type: Gauge, Labels: ofRatio, Help: "Blocks used for assay_comparison_ratio",
				When: "a wave was analysed and there are two arms"},
			{Name: "assay_result_estimate", Type: Gauge, Unit: AsLabelled, Labels: ofResult, Help: "A metric of an arm at a point",
				When: onceAnalysed},
			{Name: "assay_result_low", Type: Gauge, Unit: AsLabelled, Labels: ofResult, Help: "Low end of the interval of " +
				"assay_result_estimate",
				When: hasInterval},
			{Name: "assay_result_high", Type: Gauge, Unit: AsLabelled, Labels: ofResult, Help: "High end of the interval of " +
				"assay_result_estimate",
				When: hasInterval},
			{Name: "assay_result_blocks", Type: Gauge, Labels: ofResult, Help: "Blocks used for assay_result_estimate", When: onceAnalysed},
			{Name: "assay_result_ceiling_ratio", Type: Gauge, Unit: "ratio", Labels: []string{"namespace", "run", "point", "arm", "ceiling"},
				Help: "Largest share of a physical limit that the arm achieved: 0.8 is 80 %", When: "the workload measures a ceiling"},
			{Name: "assay_point_axis_value", Type: Gauge, Labels: []string{"namespace", "run", "point", "axis"},
				Help: "Value of a numeric sweep axis, or load of a search, at the point", When: "the run sweeps a number"},
			{Name: "assay_phase_seconds", Type: Gauge, Unit: "s", Labels: ofPhase, Help: "Time of one phase of an arm per iteration",
				When: "the workload reports phases"},
			{Name: "assay_phase_low_seconds", Type: Gauge, Unit: "s", Labels: ofPhase, Help: "Low end of the interval of " +
				"assay_phase_seconds",
				When: hasInterval},
			{Name: "assay_phase_high_seconds", Type: Gauge, Unit: "s", Labels: ofPhase, Help: "High end of the interval of " +
				"assay_phase_seconds",
				When: hasInterval},
			{Name: "assay_prediction_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio, Help: "Author's prediction of " +
				"assay_comparison_ratio",
				When: "the run has predictions"},
			{Name: "assay_search_load", Type: Gauge, Labels: []string{"namespace", "run", "arm", "axis", "edge"},
				Help: "Bounds of the result of a search, in the unit of the axis: feasible_max, infeasible_min and first_breach",
				When: "a wave of a search was analysed and found such a load"},
			{Name: "assay_search_value", Type: Gauge, Unit: AsLabelled, Labels: []string{"namespace", "run", "arm", "metric", "statistic", "unit"},
				Help: "The maximized metric at the highest feasible load", When: "a search found a feasible load"},
		},
	},
	{
		Title: "Noise of each node",
		Intro: "From the newest analysis, among the exported runs, with a trial on the node. A run that was observed to hold " +
			"the node's lease precedes runs that only claim to have used it. An analysis with trials in the future is ignored, " +
			"and so are all but the 100 nodes of a run with the newest trials.",
		Bound: "the first 1,000 nodes of the cluster by name, times 7 kinds, times 5",
		Metrics: []Metric{
			{Name: "assay_node_noise_ratio", Type: Gauge, Unit: "ratio", Labels: []string{"node", "kind", "statistic"},
				Help: "Noise readings on the node during the run's trials, in the unit of the limit: newest, median and max",
				When: "the runner could read the value"},
			{Name: "assay_node_noise_limit_ratio", Type: Gauge, Unit: "ratio", Labels: ofNoise, Help: "The run's limit on " +
				"assay_node_noise_ratio",
				When: "the run has the limit"},
			{Name: "assay_node_noise_trials", Type: Gauge, Labels: []string{"node"}, Help: "Trials on the node that were checked",
				When: onceAnalysed},
			{Name: "assay_node_noise_breaches", Type: Gauge, Labels: ofNoise, Help: "Number of assay_node_noise_trials that exceeded " +
				"the limit", When: onceAnalysed},
			{Name: "assay_node_noise_timestamp_seconds", Type: Gauge, Unit: "s", Labels: []string{"node"},
				Help: "End of the newest of the node's trials, in Unix time", When: onceAnalysed},
			{Name: "assay_node_clock_ahead_seconds", Type: Gauge, Unit: "s", Labels: []string{"node"},
				Help: "Largest offset of the node's clock to the object store's; negative if it is behind", When: onceAnalysed},
			{Name: "assay_node_clock_uncertainty_seconds", Type: Gauge, Unit: "s", Labels: []string{"node"},
				Help: "Uncertainty of assay_node_clock_ahead_seconds", When: onceAnalysed},
		},
	},
	{
		Title: "Histories",
		Intro: "Of namespaces with a BenchmarkSchedule. Read from the object store every five minutes, because people decide about " +
			"changes there " +
			"as well.",
		Bound: "namespaces times 8 states; 100 open changes in each; schedules times 2",
		Metrics: []Metric{
			{Name: "assay_history_changes", Type: Gauge, Labels: []string{"namespace", "state"},
				Help: "Changes in the history of the namespace, by state", When: onceHistory},
			{Name: "assay_history_change_info", Type: Gauge, Labels: []string{"namespace", "change", "direction"},
				Help: "1 for a confirmed change that is neither acknowledged nor decided", When: "there is such a change"},
			{Name: "assay_history_last_point_timestamp_seconds", Type: Gauge, Unit: "s", Labels: []string{"namespace", "series"},
				Help: "Start of the newest run with a point of the series, in Unix time", When: "the series has a point"},
			{Name: "assay_schedule_interval_seconds", Type: Gauge, Unit: "s", Labels: []string{"namespace", "series"},
				Help: "Longest interval between consecutive due times of the series' schedule within the next week",
				When: "the schedule is not suspended"},
		},
	},
	{
		Title: "The metrics themselves",
		Bound: "runs shown",
		Metrics: []Metric{
			{Name: "assay_metrics_left_out_runs", Type: Gauge,
				Help: "Runs without individual series because of --metrics-runs; alerts for single runs do not cover them"},
			{Name: "assay_metrics_left_out_schedules", Type: Gauge,
				Help: "Schedules without series because their namespaces have more than 200; alerts for series do not cover them"},
			{Name: "assay_metrics_left_out_series", Type: Gauge, Labels: ofRun, Help: "Results of the run that exceed the bounds",
				When: "results were omitted"},
			{Name: "assay_metrics_unread_analyses", Type: Gauge,
				Help: "Runs whose analysis could not be read or was not read yet, as after a restart"},
		},
	},
}

// Labels describes the labels.
var Labels = []Label{
	{"namespace", "namespace of the run, not of the operator: scrape with `honor_labels: true` (`honorLabels` in a ServiceMonitor), as " +
		"the " +
		"chart does, or it becomes `exported_namespace`"},
	{"run", "name of the BenchmarkRun. If a name is reused, `uid` in `assay_run_info` differs"},
	{"template", "name of the BenchmarkTemplate; inline/ and the name of its schedule, or of the run without a generated suffix, for a " +
		"template written in the run"},
	{"phase", "of a run: `Pending`, `Running`, `Suspended`, `Analyzing`, `Succeeded`, `Failed` or `Cancelled`. Of `assay_phase_*`: the " +
		"name " +
		"in the workload's report"},
	{"verdict", "`Go`, `NoGo`, `Inconclusive`, `Invalid`, or `None` (no gates, or not judged). `Other` is an unknown value"},
	{"best", "the Go candidate with the largest gain; empty without one"},
	{"cause", "first 128 bytes of `status.reason`: why the run waits or failed, or why its verdict is not `Go`; empty without a reason"},
	{"fingerprint", "first 12 hex digits of the sha256 of the hard keys of the environment, as JSON: runs with the same value are " +
		"comparable; empty before the first analysis"},
	{"point", "`name=value` of every sweep axis, joined by commas; empty without a sweep"},
	{"arm", "name of the arm; in comparisons and gates the candidate"},
	{"metric, statistic, unit", "of the workload's metric, as its template says. A gate on a ratio has unit `1`"},
	{"outcome", "of a trial: `used`, `warmup`, `failed`, `invalid`, `missing` (`done`, `invalid`, `failed` in `assay_run_trials`, as in " +
		"the " +
		"status). Of a gate: as `verdict`"},
	{"purpose", "`screen`, `confirm` or `search`"},
	{"kind", "name of a noise limit, as in `spec.environment.noise`"},
	{"reason", "of excluded attempts: `foreign`, `altered`, `unreadable`, `stale_lease`, `superseded`, `failed`, `not_started`, " +
		"`unusable`, " +
		"`environment`, `noise`. Of a condition: its reason. Of a failed operation: the cause, such as `ConnectionRefused`, " +
		"`AccessDenied` or " +
		"`CertificateExpired`, as in errors of the store"},
	{"node", "name of the Kubernetes node"},
	{"series", "`spec.series` of the BenchmarkSchedule"},
	{"change", "identity of the change, as `assay changes` lists it"},
	{"direction", "`regression` or `improvement`"},
	{"state", "`Suspected`, `Confirmed`, `Locating`, `Located`, `Fixed`, `Accepted`, `Invalid` or `Infrastructure`"},
}
