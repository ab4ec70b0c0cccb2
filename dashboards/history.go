package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	q "assay.dev/assay/dashboards/queries"
)

// History is the dashboard of a workload's figures over its runs. Only runs with the same fingerprint of the environment are one line.
func History() (dashboard.Dashboard, error) {
	p := newPage(HistoryUID, "Assay / History", "The figures of one workload over its runs, and the changes of programs that are followed. A "+
		"line joins runs with the same fingerprint of the environment: only these can be compared. It goes back as far as Prometheus keeps "+
		"samples; the pages of assay site go back to the first run.", "now-30d", "5m")
	p.builder.
		WithVariable(choice("template", "Workload", "BenchmarkTemplate of the runs", "label_values(assay_run_info, template)").Regex("/.+/")).
		WithVariable(choices("namespace", "Namespace", "Namespaces of the runs",
			`label_values(assay_run_info{template="$template"}, namespace)`)).
		WithVariable(choice("metric", "Metric", "Metric to show", `label_values(assay_result_estimate{namespace=~"$namespace"}, metric)`)).
		WithVariable(choice("statistic", "Statistic", "Statistic of the metric",
			`label_values(assay_result_estimate{namespace=~"$namespace",metric="$metric"}, statistic)`)).
		WithVariable(choices("point", "Point", "Points of the sweep",
			`label_values(assay_result_estimate{namespace=~"$namespace",metric="$metric"}, point)`)).
		WithVariable(choices("arm", "Arm", "Arms", `label_values(assay_result_estimate{namespace=~"$namespace",metric="$metric"}, arm)`)).
		WithVariable(choices("fingerprint", "Environment", "Fingerprints of environments",
			`label_values(assay_run_info{template="$template"}, fingerprint)`))

	p.row("Figures over runs",
		history("$metric ($statistic)", "Each arm at each point, run after run, at the time when the run was created; dashed are the ends of "+
			"the intervals. In the metric's own unit. Names end with the fingerprint of the environment.", units.SiShort, tall,
			q.History(q.Results)).NoValue(notAnalysed),
		history("Over the baseline", "Each arm over the baseline of the same run, paired by block; dashed are the ends of the intervals. 1 is "+
			"no difference. It moves less than the figures, as noise of a machine affects both.", ratio, tall,
			q.History(q.Comparisons)).NoValue(noComparison),
	)
	p.row("Changes",
		bars("Changes by state", "Changes in the histories of the namespaces. A suspicion is not yet a change: it waits for a confirming run.",
			units.NoUnit, third, now("A", q.Changes(), "{{state}}")).NoValue(noSchedule),
		grid("Changes that wait", "Changes that a run has confirmed, neither acknowledged nor decided: assay changes has their "+
			"figures, assay changes acknowledge ends their wait.", third, rows("A", q.Waiting(".*"))).
			NoValue("no change waits").
			WithTransformation(arrange([]string{"namespace", "change", "direction"}, nil, "Time", "Value")).
			OverrideByName("direction", coloured(directionLooks)),
		grid("Newest points", "When the newest run of every series that is followed began. One that is older than three times the interval of "+
			"its schedule is an alert.", third, rows("A", q.NewestPoints())).
			NoValue(noSchedule).
			WithTransformation(sortBy("Value", false)).
			WithTransformation(arrange([]string{"namespace", "series", "Value"}, map[string]string{"Value": "newest point"}, "Time")).
			OverrideByName("newest point", inUnit("dateTimeFromNow")),
	)
	p.row("Runs",
		verdicts("Runs of the workload that are shown one by one, by verdict.", now("A", q.Verdicts(q.Workload), "{{verdict}}")),
		history("Share of the physical limit", "The share that each arm reached of its closest physical limit.", units.PercentUnit, third,
			q.CeilingHistory()).Min(0).NoValue(noLimit),
		history("Overhead of a trial", "Time in blocks that no trial used, per trial.", units.Seconds, third,
			q.OverheadHistory()).Min(0).NoValue(notAnalysed),
		grid("Runs", "Runs of the workload that are shown one by one, the newest first. A name leads to the run's dashboard.", tall,
			rows("A", q.Info(q.Workload)), rows("B",
				q.Since("assay_run_created_timestamp_seconds", `namespace=~"$namespace"`)+" and on (namespace, run) assay_run_info{"+q.Workload+"}"),
			rows("C", q.Series("assay_run_valid_blocks", `namespace=~"$namespace"`, "namespace",
				"run")+" and on (namespace, run) assay_run_info{"+q.Workload+"}")).
			NoValue(noRuns).
			WithTransformation(merge()).
			WithTransformation(sortBy("Value #B", true)).
			WithTransformation(arrange([]string{"namespace", "run", "verdict", "phase", "best", "Value #C", "Value #B", "fingerprint"},
				map[string]string{"Value #B": "created", "Value #C": "blocks"}, "Time", "Value #A", "uid", "template")).
			OverrideByName("run", linked("The run", toRun)).
			OverrideByName("verdict", coloured(verdictLooks)).
			OverrideByName("phase", coloured(phaseLooks)).
			OverrideByName("created", inUnit("dateTimeAsIso")),
	)
	return p.builder.Build()
}
