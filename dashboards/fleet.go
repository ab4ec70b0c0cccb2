package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	q "assay.dev/assay/dashboards/queries"
)

// Fleet is the dashboard for administrators of nodes: active runs, the queue, and noise by machine.
func Fleet() (dashboard.Dashboard, error) {
	p := newPage(FleetUID, "Assay / Fleet",
		"Nodes, their leases and the queue for them, noise, how far verdicts can be trusted, and the operator.", "now-6h", "30s")
	p.builder.WithVariable(choices("node", "Node", "Nodes to show", "label_values(assay_node_ready, node)"))

	p.row("Now",
		number("Nodes ready", "Nodes that are ready and may get pods. The rest are in the table of nodes.", units.NoUnit, tile,
			now("A", q.ReadyNodes(), "ready")).Thresholds(thresholds(bad, step{1, good})),
		number("Nodes", "Nodes of the cluster, of those chosen above.", units.NoUnit, tile, now("A", q.Nodes(), "nodes")),
		number("Waiting", "Runs that wait for a node.", units.NoUnit, tile, now("A", q.One("assay_lease_queue_length", q.All), "waiting")).
			Thresholds(thresholds(good, step{1, unsure})),
		number("Object store", "Whether the object store of the ledgers answered when the operator last asked; it asks twice a minute.",
			units.NoUnit, tile,
			now("A", q.One("assay_ledger_up", q.All), "object store")).Mappings(upLooks).ColorMode(common.BigValueColorModeBackground),
		number("Alerts", "Alerts of Assay that fire, counted by Prometheus. The rules are in dashboards/rules.",
			units.NoUnit, tile,
			now("A", `count(ALERTS{alertname=~"Assay.*",alertstate="firing"})`, "firing")).NoValue("none").
			Thresholds(thresholds(good, step{1, bad})),
		number("Not shown", "Runs that are not shown one by one, because there are more than the operator's --metrics-runs.", units.NoUnit, tile,
			now("A", q.One("assay_metrics_left_out_runs", q.All), "left out")).Thresholds(thresholds(neutral, step{1, unsure})),
	)
	p.row("Runs",
		grid("Newest runs",
			"Runs that are shown one by one, the newest first. A name leads to the run's dashboard, a template to its history.", tall,
			rows("A", q.Info(q.All)), rows("B", q.Since("assay_run_created_timestamp_seconds", q.All)), rows("C", q.Progress(q.All))).
			NoValue(noRuns).
			WithTransformation(merge()).
			WithTransformation(sortBy("Value #B", true)).
			WithTransformation(arrange([]string{"namespace", "run", "verdict", "phase", "Value #C", "best", "template", "Value #B", "fingerprint"},
				map[string]string{"Value #B": "created", "Value #C": "progress"}, "Time", "Value #A", "uid")).
			OverrideByName("run", linked("The run", toRun)).
			OverrideByName("template", linked("Its history", toHistory)).
			OverrideByName("verdict", coloured(verdictLooks)).
			OverrideByName("phase", coloured(phaseLooks)).
			OverrideByName("progress", inUnit(units.PercentUnit)).
			OverrideByName("created", inUnit("dateTimeFromNow")),
		lines("Runs by phase", "Runs that exist, by phase.", units.NoUnit, half,
			over("A", "sum by (phase) ("+q.Series("assay_runs", q.All, "namespace", "phase")+")", "{{phase}}")).
			FillOpacity(20).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).NoValue(noRuns).
			OverrideByName("Pending", color(quiet)).OverrideByName("Running", color(plain)).OverrideByName("Suspended", color(unsure)).
			OverrideByName("Analyzing", color("light-blue")).OverrideByName("Succeeded", color(good)).OverrideByName("Failed", color(bad)).
			OverrideByName("Cancelled", color(neutral)),
		lines("Queue length", "Length of the queue. It is fair: who waited longest is next.", units.NoUnit, half,
			over("A", q.One("assay_lease_queue_length", q.All), "waiting")).Min(0),
	)
	p.row("Nodes and leases",
		grid("Nodes", "Each node, whether it is ready, who holds it, and how long the lease lasts unless the run renews it.", wide,
			rows("A", q.Series("assay_node_ready", q.Node, "node")), rows("B", q.Series("assay_node_allocatable_cpus", q.Node, "node")),
			rows("C", q.LeaseExpiry()), rows("D", "1000 * "+q.Series("assay_node_noise_timestamp_seconds", q.Node, "node"))).
			WithTransformation(merge()).
			WithTransformation(arrange([]string{"node", "Value #A", "Value #B", "namespace", "run", "Value #C", "Value #D"},
				map[string]string{"Value #A": "state", "Value #B": "CPUs", "Value #C": "lease left", "Value #D": "last trial"}, "Time")).
			OverrideByName("state", coloured(readyLooks)).
			OverrideByName("run", linked("The run that holds it", toRun)).
			OverrideByName("lease left", inUnit(units.Seconds)).
			OverrideByName("last trial", inUnit("dateTimeFromNow")),
		leases(),
		bars("Queue time for nodes",
			"How long runs waited until they got a node, since the operator started: the 50th, 90th and 99th percentile.",
			units.Seconds, third,
			now("A", q.QuantileSinceStart(0.5, "assay_lease_wait_seconds"), "p50"),
			now("B", q.QuantileSinceStart(0.9, "assay_lease_wait_seconds"), "p90"),
			now("C", q.QuantileSinceStart(0.99, "assay_lease_wait_seconds"), "p99")),
		bars("Lease events", "Leases of nodes that were acquired, renewed, released, or lost by the run that held them, in the time shown. A "+
			"lease is lost when its operator was away for longer than it lasts.",
			units.NoUnit, third, now("A", q.Increase("assay_lease_events_total", q.All, "event"), "{{event}}")).
			OverrideByName("lost", []dashboard.DynamicConfigValue{property("thresholds",
				options{"mode": "absolute", "steps": []options{{"color": good, "value": nil}, {"color": bad, "value": 1}}})}),
		number("Stale trials", "Trials, of all runs shown, that ran after their run had lost the lease of the node. They are in no figure; "+
			"each is a sign of a broken lease.", units.NoUnit, third,
			now("A", "sum("+q.Series("assay_run_excluded_attempts", `reason="stale_lease"`, "namespace", "run")+")", "stale")).NoValue("none").
			Thresholds(thresholds(good, step{1, bad})),
	)
	p.row("Noise",
		lines("Noise relative to its limit", "The newest noise reading of the node in a run's trials, as a share of the run's "+
			"limit. Above 100 % a trial does not count. Kinds without a limit are not here.",
			units.PercentUnit, wide, over("A", q.NoiseOfLimit(), "{{node}} {{kind}}")).NoValue("no noise limit is set, or nothing is analysed yet").
			Min(0).ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeLine)).
			Thresholds(thresholds("transparent", step{1, bad})),
		grid("Readings", "The noise readings of the newest run's trials on each node, as the shares that limits are set against.", wide,
			rows("A", q.Series("assay_node_noise_ratio", q.Node+`,statistic="median"`, "node", "kind")),
			rows("B", q.Series("assay_node_noise_ratio", q.Node+`,statistic="max"`, "node", "kind")),
			rows("C", q.Series("assay_node_noise_limit_ratio", q.Node, "node", "kind")),
			rows("D", q.Series("assay_node_noise_breaches", q.Node, "node", "kind")),
			rows("E", q.BreachShare())).
			NoValue(notAnalysed).
			WithTransformation(merge()).
			WithTransformation(arrange([]string{"node", "kind", "Value #A", "Value #B", "Value #C", "Value #D", "Value #E"},
				map[string]string{"Value #A": "median", "Value #B": "largest", "Value #C": "limit", "Value #D": "beyond", "Value #E": "share beyond"},
				"Time")).
			OverrideByRegexp("/^(median|largest|limit|share beyond)$/", inUnit(units.PercentUnit)),
	)
	p.row("Trust in verdicts",
		verdicts("Runs shown, by verdict. Inconclusive is an answer: the budget did not allow for more.",
			now("A", q.Verdicts(q.All), "{{verdict}}")),
		number("Runs whose controls moved", "Share of the runs shown in which the null arm, or a phase that the change cannot touch, moved. "+
			"With honest intervals about 1 in 20 does at a confidence of 0.95; much more means that the machines are not calibrated, and such "+
			"runs are at most Inconclusive. docs/methodology/calibration.md has how often verdicts are wrong.",
			units.PercentUnit, third, now("A", q.MovedShare(), "moved")).NoValue(notAnalysed).
			Thresholds(thresholds(good, step{0.1, unsure}, step{0.3, bad})),
		bars("Trials beyond a noise limit", "Trials of all runs shown that ran beyond a noise limit, by the limit.", units.NoUnit, third,
			now("A", "sum by (kind) ("+q.Series("assay_run_noisy_trials", q.All, "namespace", "run", "kind")+")", "{{kind}}")).NoValue(notAnalysed),
		bars("Share of blocks without a trial", "Share of each run's blocks in which no trial ran: starting, waiting until the machine is "+
			"quiet, and reading it.", units.PercentUnit, wide,
			now("A", q.BlockOverhead(q.All), "{{namespace}}/{{run}}")).Max(1).NoValue(notAnalysed),
	)
	p.row("Operator",
		lines("Reconcile duration", "99th percentile of the duration of one reconcile of a run or a node. The objective is below 0.1 s.",
			units.Seconds, half,
			over("A", q.Quantile(0.99, "controller_runtime_reconcile_time_seconds", `controller=~"benchmarkrun|nodelease"`, "controller"),
				"{{controller}}")),
		lines("Object store latency", "99th percentile of the duration of one operation of the object store, as the operator sees it.",
			units.Seconds, half,
			over("A", q.Quantile(0.99, "assay_ledger_operation_seconds", q.All, "operation"), "{{operation}}")),
		bars("Reconcile errors", "Reconciles that ended with an error, in the time range shown. The operator's log has the errors.", units.NoUnit,
			third,
			now("A", q.Increase("controller_runtime_reconcile_errors_total", `controller=~"benchmark(run|schedule)|nodelease"`, "controller"),
				"{{controller}}")).
			Thresholds(thresholds(good, step{1, unsure})),
		bars("Object store errors", "Operations of the object store that failed, by cause, in the time shown.",
			units.NoUnit, third,
			now("A", q.Increase("assay_ledger_operation_errors_total", q.All, "operation", "reason"), "{{operation}}: {{reason}}")).NoValue("none").
			Thresholds(thresholds(good, step{1, unsure})),
		number("Memory", "Resident memory of the operator that leads.", units.BytesIEC, third,
			now("A", q.Leader("process_resident_memory_bytes"), "memory")).
			Thresholds(thresholds(neutral, step{192 << 20, unsure})),
	)
	return p.builder.Build()
}

// leases are who held which node when.
func leases() *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().Title("Leases").Span(wide.w).Height(wide.h).Datasource(source).NoValue("no run held a node").
		Description("Who held which node when. A node is held by one run at a time.").
		WithTarget(over("A", q.Series("assay_lease_held", q.Node, "node", "namespace", "run"), "{{node}}: {{namespace}}/{{run}}")).
		Mappings(heldLooks).ShowValue(common.VisibilityModeNever).RowHeight(0.8).NeverSpanNulls().Thresholds(thresholds(plain)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone))
}
