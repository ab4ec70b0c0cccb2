package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/barchart"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	q "assay.dev/assay/dashboards/queries"
)

// Run is the dashboard of one run: its progress, its gates, and the figures behind them. The operator fixes its first two variables
// to make the dashboard of a certain run.
func Run() (dashboard.Dashboard, error) {
	p := newPage(RunUID, "Assay / Run", "One run: progress, gates, curves over the sweep, arms side by side, phases, share of the physical "+
		"limit, and its noise.", "now-6h", "30s")
	p.builder.
		WithVariable(choice("namespace", "Namespace", "Namespace of the run", "label_values(assay_run_info, namespace)")).
		WithVariable(choice("run", "Run", "Name of the BenchmarkRun", `label_values(assay_run_info{namespace="$namespace"}, run)`)).
		WithVariable(choice("metric", "Metric", "Metric that curves and bars show",
			`label_values(assay_result_estimate{namespace="$namespace",run="$run"}, metric)`)).
		WithVariable(choice("statistic", "Statistic", "Statistic of the metric",
			`label_values(assay_result_estimate{namespace="$namespace",run="$run",metric="$metric"}, statistic)`)).
		WithVariable(choice("axis", "Axis", "Axis of the sweep that curves go along, of those that are numbers",
			`label_values(assay_point_axis_value{namespace="$namespace",run="$run"}, axis)`))

	p.row("Where it stands",
		word("Verdict", "Go if some candidate is Go, NoGo if all are NoGo, else the weakest honest answer. It is decided by intervals, never "+
			"by a point estimate. It needs gates and an analysis.",
			"verdict", verdictLooks, quarter, rows("A", q.Info(q.Run))).NoValue(noVerdict),
		word("Phase", "Where the run stands.", "phase", phaseLooks, quarter, rows("A", q.Info(q.Run))),
		word("Best", "The Go candidate with the largest gain.", "best", nil, quarter, rows("A", q.Info(q.Run))).NoValue("none is Go"),
		number("Progress", "Trials that ended, of those planned so far, warm-ups included. Runs that repeat until they know enough plan more "+
			"as they go.", units.PercentUnit, quarter,
			now("A", q.Progress(q.Run), "progress")).Min(0).Max(1).NoValue("not started"),
		number("Time", "Time since the first wave started, up to the end of the run.", units.Seconds, quarter,
			now("A", q.Elapsed(), "time")).NoValue("not started"),
		number("Time left", "Expected time to the end of the current wave, from the blocks that ended.",
			units.Seconds, quarter,
			now("A", q.One("assay_run_remaining_seconds", q.Run), "left")).NoValue("no wave is active"),
		number("Blocks", "Fewest blocks with valid trials that any point and arm has. Intervals rest on blocks, and fewer than 5 give wide ones.",
			units.NoUnit, quarter,
			now("A", q.One("assay_run_valid_blocks", q.Run), "blocks")).NoValue(notAnalysed),
		number("Precision", "Widest half width among the intervals of the Blocking gates, relative to the estimate. It needs gates with "+
			"intervals.", units.PercentUnit, quarter,
			now("A", q.One("assay_run_relative_half_width_ratio", q.Run), "half width")).Decimals(2).NoValue("no gate has an interval"),
		number("Controls that moved", "Comparisons of the null arm, or of phases that the change cannot touch, that moved though nothing may. "+
			"With one, the verdict is at most Inconclusive.", units.NoUnit, quarter,
			now("A", q.One("assay_run_moved_controls", q.Run), "moved")).NoValue(notAnalysed).Thresholds(thresholds(good, step{1, bad})),
		number("Warnings", "Reservations of the analysis. The report has their text.", units.NoUnit, quarter,
			now("A", q.One("assay_run_warnings", q.Run), "warnings")).NoValue(notAnalysed).Thresholds(thresholds(good, step{1, unsure})),
		number("Waves", "Waves started so far. The next one is planned from the analysis of the last one.", units.NoUnit, quarter,
			now("A", q.One("assay_run_waves", q.Run), "waves")).NoValue("not started"),
		number("Left out", "Results that are not in Prometheus, because the run has more than the operator's --metrics-series-per-run. The "+
			"report has all.", units.NoUnit, quarter,
			now("A", q.One("assay_metrics_left_out_series", q.Run), "left out")).NoValue("nothing left out").
			Thresholds(thresholds(good, step{1, unsure})),
	)
	gate := []string{"gate", "arm", "point", "unit"}
	p.row("Gates",
		grid("Gates", "Each gate, for every candidate and point: its outcome, its estimate, and the interval beside its bound. A "+
			"gate is Go only if the whole interval is on the right side.", wide,
			rows("A", q.Series("assay_gate_outcome", q.Run, "gate", "arm", "point", "unit", "op", "metric", "statistic", "severity", "outcome")),
			rows("B", q.Series("assay_gate_estimate", q.Run, gate...)), rows("C", q.Series("assay_gate_low", q.Run, gate...)),
			rows("D", q.Series("assay_gate_high", q.Run, gate...)), rows("E", q.Series("assay_gate_bound", q.Run, gate...))).
			WithTransformation(merge()).
			NoValue("the run has no gates, or is not analysed yet").
			WithTransformation(arrange([]string{"gate", "outcome", "arm", "point", "Value #B", "Value #C", "Value #D", "op", "Value #E", "unit",
				"metric", "statistic", "severity"},
				map[string]string{"Value #B": "estimate", "Value #C": "low", "Value #D": "high", "Value #E": "bound"}, "Time", "Value #A")).
			OverrideByName("outcome", coloured(verdictLooks)).
			OverrideByRegexp("/^(estimate|low|high|bound)$/", inUnit(units.SiShort)),
	)
	p.row("Curves over the sweep",
		curves("$metric ($statistic) over $axis", "The figure of each arm along the axis; dashed are the ends of the intervals. Other axes of "+
			"the sweep are in the names. In the metric's own unit, which the table of figures names.", half,
			rows("A", q.Curves(q.Results, q.Figure))).
			Unit(units.SiShort).AxisLabel("$metric").NoValue(noCurve),
		curves("Over the baseline, along $axis", "Each arm over the baseline, paired by block; dashed are the ends of the intervals, and "+
			"predicted is the author's expectation. 1 is no difference.", half,
			rows("A", q.Curves(append(append([]q.Line{}, q.Comparisons...), q.Predicted), q.Figure))).
			Unit(ratio).AxisLabel("× baseline").NoValue(noCurve),
	)
	result := []string{"point", "arm", "metric", "statistic", "unit"}
	compared := []string{"point", "arm", "metric", "statistic"}
	p.row("Arms side by side",
		bars("$metric ($statistic)", "Each arm at each point, in the metric's own unit. Bars begin at 0.", units.SiShort, half,
			now("A", q.Series("assay_result_estimate", q.Figure, "point", "arm", "unit"), "{{point}} {{arm}} ({{unit}})")).NoValue(notAnalysed).
			ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)),
		bars("Over the baseline", "Each arm over the baseline at each point, paired by block. 1 is no difference.", ratio, half,
			now("A", q.Series("assay_comparison_ratio", q.Figure, "point", "arm"), "{{point}} {{arm}}")).NoValue(noComparison).
			ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)),
		grid("Comparisons", "Each arm over the baseline, for every metric: the ratio, its interval, its number of blocks, and the "+
			"ratio that the author predicted.", tall,
			rows("A", q.Series("assay_comparison_ratio", q.Run, compared...)), rows("B", q.Series("assay_comparison_low_ratio", q.Run, compared...)),
			rows("C", q.Series("assay_comparison_high_ratio", q.Run, compared...)),
			rows("D", q.Series("assay_comparison_blocks", q.Run, compared...)),
			rows("E", q.Series("assay_prediction_ratio", q.Run, compared...))).
			WithTransformation(merge()).
			NoValue(noComparison).
			WithTransformation(arrange([]string{"point", "arm", "metric", "statistic", "Value #A", "Value #B", "Value #C", "Value #D", "Value #E"},
				map[string]string{"Value #A": "ratio", "Value #B": "low", "Value #C": "high", "Value #D": "blocks", "Value #E": "predicted"}, "Time")).
			OverrideByRegexp("/^(ratio|low|high|predicted)$/", inUnit(ratio)),
		grid("Figures", "Each metric of each arm at each point: the estimate, its interval, and the blocks it rests on. A prefix "+
			"belongs to the unit beside it: 19.9 m and s are 19.9 ms.", tall,
			rows("A", q.Series("assay_result_estimate", q.Run, result...)), rows("B", q.Series("assay_result_low", q.Run, result...)),
			rows("C", q.Series("assay_result_high", q.Run, result...)), rows("D", q.Series("assay_result_blocks", q.Run, result...))).
			WithTransformation(merge()).
			NoValue(notAnalysed).
			WithTransformation(arrange([]string{"point", "arm", "metric", "statistic", "Value #A", "Value #B", "Value #C", "unit", "Value #D"},
				map[string]string{"Value #A": "estimate", "Value #B": "low", "Value #C": "high", "Value #D": "blocks"}, "Time")).
			OverrideByRegexp("/^(estimate|low|high)$/", inUnit(units.SiShort)),
		grid("Search", "For a run that searches: the loads between which the answer lies, in the axis' own unit.", size{24, 5},
			rows("A", q.Series("assay_search_load", q.Run, "arm", "axis", "edge"))).
			NoValue("this run does not search").
			WithTransformation(arrange([]string{"arm", "axis", "edge", "Value"}, map[string]string{"Value": "load"}, "Time")).
			OverrideByName("load", inUnit(units.SiShort)),
	)
	p.row("Why",
		phases(),
		bars("Share of the physical limit", "The share that each arm reached of its closest physical limit, as measured on the same machine. "+
			"Above 100 % the claim is impossible or the limit is wrong.", units.PercentUnit, half,
			now("A", q.Series("assay_result_ceiling_ratio", q.Run, "point", "arm", "ceiling"), "{{point}} {{arm}}: {{ceiling}}")).
			Max(1).NoValue(noLimit).Thresholds(thresholds(plain, step{0.9, unsure}, step{1.05, bad})),
	)
	p.row("How it went",
		lines("Trials", "Trials planned so far, by their fate.", units.NoUnit, half,
			over("A", q.One("assay_run_planned_trials", q.Run), "planned"),
			over("B", q.Series("assay_run_trials", q.Run, "outcome"), "{{outcome}}")).
			NoValue("not started").Min(0).OverrideByName("done", color(good)).OverrideByName("invalid", color(broken)).OverrideByName("failed",
			color(bad)).OverrideByName("planned", color(neutral)),
		lines("Precision over time", "Widest relative half width among the intervals of the Blocking gates, as waves were analysed.",
			units.PercentUnit, half,
			over("A", q.One("assay_run_relative_half_width_ratio", q.Run), "half width")).Min(0).NoValue("no gate has an interval"),
		bars("Trials beyond a noise limit", "Trials that ran beyond a noise limit, by the limit.", units.NoUnit, third,
			now("A", q.Series("assay_run_noisy_trials", q.Run, "kind"), "{{kind}}")).NoValue(notAnalysed).
			Thresholds(thresholds(good, step{1, unsure})),
		bars("Left out of the figures", "Attempts in the ledger that are not in the figures, by reason. stale_lease means that another run "+
			"may have been on the node.", units.NoUnit, third,
			now("A", q.Series("assay_run_excluded_attempts", q.Run, "reason"), "{{reason}}")).NoValue(notAnalysed).
			Thresholds(thresholds(good, step{1, unsure})),
		bars("Where the time went", "Time of all blocks, of the trials in them, and for each trial the time in its block that no trial used.",
			units.Seconds, third,
			now("A", q.One("assay_run_block_seconds", q.Run), "blocks"), now("B", q.One("assay_run_trial_seconds", q.Run), "trials"),
			now("C", q.One("assay_run_trial_overhead_seconds", q.Run), "overhead of a trial")).NoValue(notAnalysed),
		grid("Conditions", "The conditions of the run's status. kubectl describe has their messages.", wide,
			rows("A", q.Series("assay_run_condition", q.Run, "condition", "reason"))).
			NoValue("the operator has not seen the run yet").
			WithTransformation(arrange([]string{"condition", "Value", "reason"}, map[string]string{"Value": "status"}, "Time")).
			OverrideByName("status", coloured(trueLooks)),
	)
	return p.builder.Build()
}

// ratio is the unit of something over something else.
const ratio = "suffix:×"

// phases stack the phases of every point and arm.
func phases() *barchart.PanelBuilder {
	return barchart.NewPanelBuilder().Title("Phases").Span(half.w).Height(half.h).Datasource(source).NoValue(noPhases).Unit(units.Seconds).
		Description("Where the time of an iteration goes, for each arm at each point.").
		WithTarget(rows("A", q.Phases())).
		WithTransformation(without("Time")).
		WithTransformation(transform("groupingToMatrix",
			options{"columnField": "phase", "rowField": "cell", "valueField": "Value", "emptyValue": "null"})).
		Orientation(common.VizOrientationHorizontal).Stacking(common.StackingModeNormal).ShowValue(common.VisibilityModeNever).
		BarWidth(0.8).GroupWidth(0.8).FillOpacity(80).XTickLabelMaxLength(40).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Thresholds(thresholds(plain))
}
