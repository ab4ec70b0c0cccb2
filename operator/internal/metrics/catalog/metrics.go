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

// Groups are all metrics.
var Groups = []Group{
	{
		Title: "Operator",
		Intro: "Counters count from the start of the operator that leads, and begin again when another one takes over: use `rate` or `increase`.",
		Bound: "namespaces that the operator watches, times the values of the other labels",
		Metrics: []Metric{
			{Name: "assay_runs_finished_total", Type: Counter, Labels: []string{"namespace", "phase", "verdict"}, Help: "Runs that ended",
				When: "a run ended since the operator started"},
			{Name: "assay_waves_started_total", Type: Counter, Labels: []string{"namespace", "purpose"}, Help: "Waves that were started",
				When: "a wave was started since the operator started"},
			{Name: "assay_trials_finished_total", Type: Counter, Labels: []string{"namespace", "outcome"},
				Help: "Trials of runs that ended with an analysis, by what became of them", When: "a run ended since the operator started"},
			{Name: "assay_gates_judged_total", Type: Counter, Labels: []string{"namespace", "severity", "outcome"},
				Help: "Gates of runs that ended, one per candidate and point", When: "a run with gates ended since the operator started"},
		},
	},
	{
		Title: "Runs and nodes now",
		Intro: "Read from the operator's caches at every scrape. The operator that leads has them, the others do not.",
		Bound: "namespaces times 7 phases; the first 1,000 nodes of the cluster by name; one lease per node",
		Metrics: []Metric{
			{Name: "assay_runs", Type: Gauge, Labels: []string{"namespace", "phase"}, Help: "Runs there are, by phase", When: "there is a run"},
			{Name: "assay_lease_queue_length", Type: Gauge, Help: "Runs that wait for a node"},
			{Name: "assay_lease_held", Type: Gauge, Labels: []string{"node", "namespace", "run"}, Help: "1 while the run holds the node",
				When: "a run holds a node"},
			{Name: "assay_lease_expiry_timestamp_seconds", Type: Gauge, Unit: "s", Labels: []string{"node", "namespace", "run"},
				Help: "When others may take the node unless the run renews its lease before, in Unix time", When: "a run holds a node"},
			{Name: "assay_lease_wait_seconds", Type: Histogram, Unit: "s", Help: "Time that a run waited for its nodes until it took one, 0 if it " +
				"did not have to", Buckets: []float64{0.1, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400}},
			{Name: "assay_lease_events_total", Type: Counter, Labels: []string{"event"},
				Help: "Events of node leases: acquired, renewed, released, or lost by the run that held it"},
			{Name: "assay_node_ready", Type: Gauge, Labels: []string{"node"}, Help: "1 if the node is ready and may get pods, else 0",
				When: "there is a node"},
			{Name: "assay_node_allocatable_cpus", Type: Gauge, Labels: []string{"node"}, Help: "CPUs that pods can have on the node",
				When: "there is a node"},
		},
	},
	{
		Title: "Ledger",
		Bound: "4 operations times about 20 causes",
		Metrics: []Metric{
			{Name: "assay_ledger_up", Type: Gauge,
				Help: "1 if the object store answered when it was last asked, else 0; it is asked twice a minute"},
			{Name: "assay_ledger_stored_bytes", Type: Gauge, Unit: "B", Labels: []string{"namespace"}, Help: "What the ledgers of the namespace " +
				"held when they were last summed up, every 10 minutes", When: "the policy bounds what the namespace stores"},
			{Name: "assay_ledger_stored_objects", Type: Gauge, Labels: []string{"namespace"}, Help: "How many objects these are",
				When: "the policy bounds what the namespace stores"},
			{Name: "assay_ledger_operation_seconds", Type: Histogram, Unit: "s", Labels: []string{"operation"},
				Help:    "Time of one operation of the object store: get, create, replace or list",
				Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}},
			{Name: "assay_ledger_operation_errors_total", Type: Counter, Labels: []string{"operation", "reason"},
				Help: "Operations of the object store that failed, by cause; that an object is absent, or there already, is not a failure",
				When: "an operation failed since the operator started"},
		},
	},
	{
		Title: "Each run",
		Intro: "As many runs as `--metrics-runs` says. Namespaces take turns, so that none hides the runs of others by having many; of each, " +
			"runs that go on come before those that ended, and of these the newer ones first. A run that is deleted disappears.",
		Bound: "runs shown times about 40",
		Metrics: []Metric{
			{Name: "assay_run_info", Type: Gauge, Labels: []string{"namespace", "run", "uid", "template", "phase", "verdict", "best", "fingerprint"},
				Help: "1; the labels say what the run is and where it stands"},
			{Name: "assay_run_condition", Type: Gauge, Labels: []string{"namespace", "run", "condition", "reason"},
				Help: "1 if the condition is True, else 0; reason is its reason", When: "the operator looked at the run"},
			{Name: "assay_run_created_timestamp_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "When the run was created, in Unix time"},
			{Name: "assay_run_start_timestamp_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "When the first wave started, in Unix time",
				When: "the first wave started"},
			{Name: "assay_run_completion_timestamp_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "When the run ended, in Unix time",
				When: "the run ended"},
			{Name: "assay_run_remaining_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "Expected time to the end of the current wave",
				When: "a block of the wave ended"},
			{Name: "assay_run_waves", Type: Gauge, Labels: ofRun, Help: "Waves started so far", When: "the first wave started"},
			{Name: "assay_run_planned_trials", Type: Gauge, Labels: ofRun, Help: "Trials planned so far, warm-ups included",
				When: "the first wave started"},
			{Name: "assay_run_trials", Type: Gauge, Labels: []string{"namespace", "run", "outcome"}, Help: "Trials so far: done, invalid or failed",
				When: "the first wave started"},
			{Name: "assay_run_valid_blocks", Type: Gauge, Labels: ofRun, Help: "Fewest blocks with valid trials that any point and arm has",
				When: onceAnalysed},
			{Name: "assay_run_relative_half_width_ratio", Type: Gauge, Labels: ofRun, Help: "Widest half width among the intervals of the " +
				"Blocking gates, relative to the estimate", When: "every Blocking gate has an interval"},
			{Name: "assay_run_trial_seconds", Type: Gauge, Unit: "s", Labels: ofRun, Help: "Time of all trials together", When: onceAnalysed},
			{Name: "assay_run_block_seconds", Type: Gauge, Unit: "s", Labels: ofRun,
				Help: "Time of all blocks together, each from the start of its first trial to the end of its last", When: onceAnalysed},
			{Name: "assay_run_trial_overhead_seconds", Type: Gauge, Unit: "s", Labels: ofRun,
				Help: "Time in blocks that no trial used, per trial: starting, waiting until the machine is quiet, and reading it", When: onceAnalysed},
			{Name: "assay_run_excluded_attempts", Type: Gauge, Labels: []string{"namespace", "run", "reason"},
				Help: "Attempts in the ledger that are not in the figures, by reason; stale_lease means that somebody else may have been on the node",
				When: onceAnalysed},
			{Name: "assay_run_noisy_trials", Type: Gauge, Labels: []string{"namespace", "run", "kind"},
				Help: "Trials that ran beyond a noise limit, by the limit", When: onceAnalysed},
			{Name: "assay_run_moved_controls", Type: Gauge, Labels: ofRun,
				Help: "Comparisons of the null arm or of a control phase that moved though nothing may", When: onceAnalysed},
			{Name: "assay_run_warnings", Type: Gauge, Labels: ofRun,
				Help: "Warnings that a careful reviewer would raise; the report has them in words", When: onceAnalysed},
		},
	},
	{
		Title: "Results of each run",
		Intro: "From the newest analysis of the ledger, also of a wave that was not the last. Intervals are at `design.confidence`, those of " +
			"gates at `design.gateConfidence`.",
		Bound: "`--metrics-series-per-run` for one run, and 50,000 for all; what is beyond is left out, the runs come in the order above and " +
			"what is named first here first, and `assay_metrics_left_out_series` counts it",
		Metrics: []Metric{
			{Name: "assay_gate_outcome", Type: Gauge, Labels: []string{"namespace", "run", "gate", "arm", "point", "unit", "op", "metric",
				"statistic", "severity", "outcome"}, Help: "1; the label outcome is the gate's outcome for the arm at the point", When: onceJudged},
			{Name: "assay_gate_estimate", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "What the gate compares with its bound",
				When: "the gate could be judged by a number"},
			{Name: "assay_gate_low", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "Low end of the interval of assay_gate_estimate",
				When: hasInterval},
			{Name: "assay_gate_high", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "High end of the interval of assay_gate_estimate",
				When: hasInterval},
			{Name: "assay_gate_bound", Type: Gauge, Unit: AsLabelled, Labels: ofGate, Help: "The gate's bound", When: onceJudged},
			{Name: "assay_comparison_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio,
				Help: "The arm over the baseline at the point, paired by block", When: "a wave was analysed and there are two arms"},
			{Name: "assay_comparison_low_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio,
				Help: "Low end of the interval of assay_comparison_ratio", When: hasInterval},
			{Name: "assay_comparison_high_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio,
				Help: "High end of the interval of assay_comparison_ratio", When: hasInterval},
			{Name: "assay_comparison_blocks", Type: Gauge, Labels: ofRatio, Help: "Blocks that assay_comparison_ratio rests on",
				When: "a wave was analysed and there are two arms"},
			{Name: "assay_result_estimate", Type: Gauge, Unit: AsLabelled, Labels: ofResult, Help: "A metric of an arm at a point",
				When: onceAnalysed},
			{Name: "assay_result_low", Type: Gauge, Unit: AsLabelled, Labels: ofResult, Help: "Low end of the interval of assay_result_estimate",
				When: hasInterval},
			{Name: "assay_result_high", Type: Gauge, Unit: AsLabelled, Labels: ofResult, Help: "High end of the interval of assay_result_estimate",
				When: hasInterval},
			{Name: "assay_result_blocks", Type: Gauge, Labels: ofResult, Help: "Blocks that assay_result_estimate rests on", When: onceAnalysed},
			{Name: "assay_result_ceiling_ratio", Type: Gauge, Unit: "ratio", Labels: []string{"namespace", "run", "point", "arm", "ceiling"},
				Help: "What the arm achieved of the physical limit it came closest to: 0.8 is 80 %", When: "the workload measures a ceiling"},
			{Name: "assay_point_axis_value", Type: Gauge, Labels: []string{"namespace", "run", "point", "axis"},
				Help: "Value of a numeric sweep axis, or of the load of a search, at the point", When: "the run sweeps a number"},
			{Name: "assay_phase_seconds", Type: Gauge, Unit: "s", Labels: ofPhase, Help: "Time of one phase of an arm per iteration",
				When: "the workload reports phases"},
			{Name: "assay_phase_low_seconds", Type: Gauge, Unit: "s", Labels: ofPhase, Help: "Low end of the interval of assay_phase_seconds",
				When: hasInterval},
			{Name: "assay_phase_high_seconds", Type: Gauge, Unit: "s", Labels: ofPhase, Help: "High end of the interval of assay_phase_seconds",
				When: hasInterval},
			{Name: "assay_prediction_ratio", Type: Gauge, Unit: "ratio", Labels: ofRatio, Help: "What the author expected of assay_comparison_ratio",
				When: "the run has predictions"},
			{Name: "assay_search_load", Type: Gauge, Labels: []string{"namespace", "run", "arm", "axis", "edge"},
				Help: "Loads between which the answer of a search lies, in the axis' own unit: feasible_max, infeasible_min and first_breach",
				When: "a wave of a search was analysed and found such a load"},
			{Name: "assay_search_value", Type: Gauge, Unit: AsLabelled, Labels: []string{"namespace", "run", "arm", "metric", "statistic", "unit"},
				Help: "The maximized metric at the highest feasible load", When: "a search found a feasible load"},
		},
	},
	{
		Title: "Noise of each node",
		Intro: "Of nodes of the cluster: from the newest analysis, among the runs shown, with a trial on the node. A run that the operator has " +
			"seen hold the node's lease comes before those that only say that they were there. An analysis whose trials are yet to come is left " +
			"out, as are all but the 100 nodes of a run with the newest trials.",
		Bound: "the first 1,000 nodes of the cluster by name, times 7 kinds, times 5",
		Metrics: []Metric{
			{Name: "assay_node_noise_ratio", Type: Gauge, Unit: "ratio", Labels: []string{"node", "kind", "statistic"},
				Help: "Readings of others on the node in the run's trials, as the share that the limit is set against: newest, median and max",
				When: "the runner could read it"},
			{Name: "assay_node_noise_limit_ratio", Type: Gauge, Unit: "ratio", Labels: ofNoise, Help: "The run's limit on assay_node_noise_ratio",
				When: "the run has the limit"},
			{Name: "assay_node_noise_trials", Type: Gauge, Labels: []string{"node"}, Help: "Trials on the node that were judged",
				When: onceAnalysed},
			{Name: "assay_node_noise_breaches", Type: Gauge, Labels: ofNoise, Help: "Of these, trials beyond the limit", When: onceAnalysed},
			{Name: "assay_node_noise_timestamp_seconds", Type: Gauge, Unit: "s", Labels: []string{"node"},
				Help: "When the newest of these trials ended, in Unix time", When: onceAnalysed},
			{Name: "assay_node_clock_ahead_seconds", Type: Gauge, Unit: "s", Labels: []string{"node"},
				Help: "How far the node's clock was ahead of the object store's at most; below zero, behind", When: onceAnalysed},
			{Name: "assay_node_clock_uncertainty_seconds", Type: Gauge, Unit: "s", Labels: []string{"node"},
				Help: "How wrong assay_node_clock_ahead_seconds can be", When: onceAnalysed},
		},
	},
	{
		Title: "Histories",
		Intro: "Of namespaces with a BenchmarkSchedule. Read from the object store every five minutes: people decide about changes there " +
			"as well.",
		Bound: "namespaces times 8 states; 100 changes that wait for somebody in each; schedules times 2",
		Metrics: []Metric{
			{Name: "assay_history_changes", Type: Gauge, Labels: []string{"namespace", "state"},
				Help: "Changes in the history of the namespace, by state", When: onceHistory},
			{Name: "assay_history_change_info", Type: Gauge, Labels: []string{"namespace", "change", "direction"},
				Help: "1 for a change that was confirmed and that nobody has acknowledged or decided about", When: "there is such a change"},
			{Name: "assay_history_last_point_timestamp_seconds", Type: Gauge, Unit: "s", Labels: []string{"namespace", "series"},
				Help: "When the newest run that measured a point of the series began, in Unix time", When: "the series has a point"},
			{Name: "assay_schedule_interval_seconds", Type: Gauge, Unit: "s", Labels: []string{"namespace", "series"},
				Help: "The longest time between due times of the series' schedule that follow each other within the next week",
				When: "the schedule is not suspended"},
		},
	},
	{
		Title: "The metrics themselves",
		Bound: "runs shown",
		Metrics: []Metric{
			{Name: "assay_metrics_left_out_runs", Type: Gauge,
				Help: "Runs that are not shown one by one, because there are more than --metrics-runs: no alert of single runs is of these"},
			{Name: "assay_metrics_left_out_schedules", Type: Gauge,
				Help: "Schedules of which nothing is shown, because their namespaces have more than 200: no alert of a series is of these"},
			{Name: "assay_metrics_left_out_series", Type: Gauge, Labels: ofRun, Help: "Results of the run that are not shown, because of the bounds",
				When: "results were left out"},
			{Name: "assay_metrics_unread_analyses", Type: Gauge,
				Help: "Runs whose analysis is still to be read from the ledger, as after a restart, or could not be read"},
		},
	},
}

// Labels are what the labels mean.
var Labels = []Label{
	{"namespace", "namespace of the run, not of the operator: scrape with `honor_labels: true` (`honorLabels` in a ServiceMonitor), as the " +
		"chart does, or it becomes `exported_namespace`"},
	{"run", "name of the BenchmarkRun. A name that is used again is another `uid` in `assay_run_info`"},
	{"template", "name of the BenchmarkTemplate; empty for a template written in the run"},
	{"phase", "of a run: `Pending`, `Running`, `Suspended`, `Analyzing`, `Succeeded`, `Failed` or `Cancelled`. Of `assay_phase_*`: the name " +
		"that the workload gives"},
	{"verdict", "`Go`, `NoGo`, `Inconclusive`, `Invalid`, or `None` (no gates, or not judged). `Other` is a word of none of ours"},
	{"best", "the Go candidate with the largest gain; empty without one"},
	{"fingerprint", "first 12 hex digits of the sha256 of the hard keys of the environment, as JSON: runs with the same one can be " +
		"compared; empty before the first analysis"},
	{"point", "`name=value` of every sweep axis, joined by commas; empty without a sweep"},
	{"arm", "name of the arm; in comparisons and gates the candidate"},
	{"metric, statistic, unit", "of the workload's metric, as its template says. A gate on a ratio has unit `1`"},
	{"outcome", "of a trial: `used`, `warmup`, `failed`, `invalid`, `missing` (`done`, `invalid`, `failed` in `assay_run_trials`, as in the " +
		"status). Of a gate: as `verdict`"},
	{"purpose", "`screen`, `confirm` or `search`"},
	{"kind", "name of a noise limit, as in `spec.environment.noise`"},
	{"reason", "of excluded attempts: `foreign`, `altered`, `unreadable`, `stale_lease`, `superseded`, `failed`, `not_started`, `unusable`, " +
		"`environment`, `noise`. Of a condition: its reason. Of a failed operation: the cause, such as `ConnectionRefused`, `AccessDenied` or " +
		"`CertificateExpired`, as the ledger's errors have it"},
	{"node", "name of the Kubernetes node"},
	{"series", "`spec.series` of the BenchmarkSchedule"},
	{"change", "identity of the change, as `assay changes` lists it"},
	{"direction", "`regression` or `improvement`"},
	{"state", "`Suspected`, `Confirmed`, `Locating`, `Located`, `Fixed`, `Accepted`, `Invalid` or `Infrastructure`"},
}
