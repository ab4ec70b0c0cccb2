package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/grafana/grafana-foundation-sdk/go/xychart"
)

// Colours, named by meaning and not by hue. Grafana adjusts named colours to a light or dark theme.
const (
	good    = "green"
	bad     = "red"
	unsure  = "orange"
	broken  = "purple"
	neutral = "text"
	plain   = "blue"
	// intervalColor is seen on light and on dark.
	intervalColor = "#8a8a8a"
	// quiet is a background on which white text can be read.
	quiet = "#6e6e6e"
)

// absent is the text of a cell without a value: never a zero.
const absent = "–"

// nothing is the text of a panel without data, unless the panel knows a reason.
const nothing = "nothing in the time shown"

// Reasons for a panel without data.
const (
	notAnalysed  = "not analysed yet"
	noComparison = "no arm was compared yet"
	noCurve      = "no axis of the sweep is a number, or nothing is analysed yet"
	noLimit      = "the workload measures no limit"
	noSchedule   = "no schedule follows a program"
	noPhases     = "the workload reports no phases"
	noRuns       = "no runs"
)

// source is the Prometheus that the viewer chose.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// ---- queries

func query(ref, expr string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().RefId(ref).Expr(expr).Datasource(source).EditorMode(prometheus.QueryEditorModeCode)
}

// now asks for the values at the end of the time shown, one series each.
func now(ref, expr, legend string) *prometheus.DataqueryBuilder {
	return query(ref, expr).Instant().Format(prometheus.PromQueryFormatTimeSeries).LegendFormat(legend)
}

// rows asks for the values at the end of the time shown, one row each with the labels as columns.
func rows(ref, expr string) *prometheus.DataqueryBuilder {
	return query(ref, expr).Instant().Format(prometheus.PromQueryFormatTable)
}

// over asks for the values over the time shown.
func over(ref, expr, legend string) *prometheus.DataqueryBuilder {
	return query(ref, expr).Range().Format(prometheus.PromQueryFormatTimeSeries).LegendFormat(legend)
}

// ---- values

type step struct {
	from  float64
	color string
}

// thresholds colour a value by the highest step that it reaches.
func thresholds(base string, steps ...step) cog.Builder[dashboard.ThresholdsConfig] {
	all := []dashboard.Threshold{{Color: base}}
	for _, s := range steps {
		all = append(all, dashboard.Threshold{Color: s.color, Value: &s.from})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(all)
}

type look struct{ value, text, color string }

const noVerdict = "no verdict"

// mapping shows values as texts with colours, in the order given.
func mapping(looks ...look) []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for i, l := range looks {
		result := dashboard.ValueMappingResult{Color: &l.color, Index: new(int32(i))}
		if l.text != "" {
			result.Text = &l.text
		}
		options[l.value] = result
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

// Words of the platform and their meaning for a reader.
var (
	verdictLooks = mapping(look{"Go", "Go", good}, look{"NoGo", "NoGo", bad}, look{"Inconclusive", "Inconclusive", unsure},
		look{"Invalid", "Invalid", broken}, look{"None", noVerdict, quiet})
	phaseLooks = mapping(look{"Pending", "", quiet}, look{"Running", "", plain}, look{"Suspended", "", unsure},
		look{"Analyzing", "", plain}, look{"Succeeded", "", good}, look{"Failed", "", bad}, look{"Cancelled", "", quiet})
	directionLooks = mapping(look{"regression", "", bad}, look{"improvement", "", good})

	upLooks    = mapping(look{"0", "down", bad}, look{"1", "up", good})
	readyLooks = mapping(look{"0", "not ready", bad}, look{"1", "ready", good})
	heldLooks  = mapping(look{"1", "held", plain})
	trueLooks  = mapping(look{"0", "False", quiet}, look{"1", "True", plain})
)

// ---- panels

// size of a panel on Grafana's grid of 24 columns, in rows of 30 pixels and a gap of 8. A phone shows one panel below the
// other, in the same order.
type size struct{ w, h uint32 }

var (
	tile    = size{4, 4}
	half    = size{12, 9}
	wide    = size{24, 9}
	tall    = size{24, 12}
	third   = size{8, 8}
	quarter = size{6, 4}
)

// number is a panel with one value.
func number(title, description, unit string, at size, targets ...*prometheus.DataqueryBuilder) *stat.PanelBuilder {
	panel := stat.NewPanelBuilder().Title(title).Description(description).Datasource(source).Span(at.w).Height(at.h).
		Unit(unit).NoValue(nothing).ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		TextMode(common.BigValueTextModeValue).JustifyMode(common.BigValueJustifyModeAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Thresholds(thresholds(neutral))
	for _, target := range targets {
		panel.WithTarget(target)
	}
	return panel
}

// word is a panel with a label of a series as text.
func word(title, description, label string, looks []dashboard.ValueMapping, at size,
	target *prometheus.DataqueryBuilder) *stat.PanelBuilder {
	panel := number(title, description, units.String, at, target).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields("/^" + label + "$/"))
	if looks != nil {
		panel.Mappings(looks).ColorMode(common.BigValueColorModeBackground)
	}
	return panel
}

// bars is a panel with one bar for each series, its name on the left, so that long names fit a phone.
func bars(title, description, unit string, at size, targets ...*prometheus.DataqueryBuilder) *bargauge.PanelBuilder {
	panel := bargauge.NewPanelBuilder().Title(title).Description(description).Datasource(source).Span(at.w).Height(at.h).
		Unit(unit).NoValue(nothing).Min(0).DisplayMode(common.BarGaugeDisplayModeBasic).Orientation(common.VizOrientationHorizontal).
		NamePlacement(common.BarGaugeNamePlacementTop).ShowUnfilled(true).
		// With automatic sizes a few bars have huge names, and many bars have none.
		Sizing(common.BarGaugeSizingManual).MinVizHeight(34).MaxVizHeight(52).
		Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(13).ValueSize(18)).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Thresholds(thresholds(plain))
	for _, target := range targets {
		panel.WithTarget(target)
	}
	return panel
}

// verdicts is a panel with one bar for each verdict, in the verdict's colour.
func verdicts(description string, target *prometheus.DataqueryBuilder) *bargauge.PanelBuilder {
	panel := bars("Verdicts", description, units.NoUnit, third, target).NoValue(noRuns)
	return panel.OverrideByName("Go", color(good)).OverrideByName("NoGo", color(bad)).OverrideByName("Inconclusive", color(unsure)).
		OverrideByName("Invalid", color(broken)).
		OverrideByName("None", append(color(quiet), property("displayName", noVerdict)))
}

// lines is a panel with values over time. A missing value leaves a gap.
func lines(title, description, unit string, at size, targets ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	panel := timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(source).Span(at.w).Height(at.h).
		Unit(unit).NoValue(nothing).LineWidth(2).FillOpacity(0).ShowPoints(common.VisibilityModeAuto).
		SpanNulls(common.BoolOrFloat64{Bool: new(false)}).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Thresholds(thresholds(plain))
	for _, target := range targets {
		panel.WithTarget(target)
	}
	return panel
}

// grid is a panel with a table.
func grid(title, description string, at size, targets ...*prometheus.DataqueryBuilder) *table.PanelBuilder {
	panel := table.NewPanelBuilder().Title(title).Description(description).Datasource(source).Span(at.w).Height(at.h).
		NoValue(nothing).ShowHeader(true).CellHeight(common.TableCellHeightSm).Filterable(true).Thresholds(thresholds(neutral)).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
	for _, target := range targets {
		panel.WithTarget(target)
	}
	panel.OverrideByRegexp("/.*/", []dashboard.DynamicConfigValue{property("noValue", absent)})
	for _, one := range columnWidths {
		panel.OverrideByRegexp("/^("+one.columns+")$/", []dashboard.DynamicConfigValue{property("custom.width", one.pixels)})
	}
	return panel
}

// columnWidths are the widths of columns whose names or figures have a usual length, in pixels. The others share the rest.
var columnWidths = []struct {
	columns string
	pixels  int
}{
	{"node", 330},
	{"run|gate|point", 220},
	{"created", 165},
	{"namespace|fingerprint|newest point|last trial|op", 120},
	{"verdict|outcome|phase|severity|direction|state|share beyond", 110},
	{"estimate|low|high|bound|ratio|predicted|blocks|progress|median|largest|limit|beyond|CPUs|unit|statistic", 90},
}

// curves is a panel with lines over a number, with the ends of intervals as thin dashed lines.
func curves(title, description string, at size, target *prometheus.DataqueryBuilder) *xychart.PanelBuilder {
	return xychart.NewPanelBuilder().Title(title).Description(description).Datasource(source).Span(at.w).Height(at.h).
		NoValue(nothing).Mapping(xychart.SeriesMappingAuto).Show(xychart.XYShowModePointsAndLines).LineWidth(2).
		PointSize(xychart.NewXychartFieldConfigPointSizeBuilder().Fixed(6)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		Thresholds(thresholds(plain)).
		WithTarget(target).
		WithTransformation(transform("convertFieldType",
			options{"fields": options{}, "conversions": []options{{"targetField": "x", "destinationType": "number"}}})).
		WithTransformation(sortBy("x", false)).
		WithTransformation(split("curve")).
		OverrideByRegexp(`/\((low|high)\)$/`, intervalEnd(property("custom.show", "lines"))).
		// The unit of the panel is that of the curves, and not that of the axis.
		OverrideByName("x", []dashboard.DynamicConfigValue{property("unit", units.SiShort), property("custom.axisLabel", "$axis")})
}

// history is a panel with lines over the time when runs were created, with the ends of intervals as thin dashed lines.
func history(title, description, unit string, at size, expr string) *timeseries.PanelBuilder {
	return lines(title, description, unit, at, rows("A", expr)).
		DrawStyle(common.GraphDrawStyleLine).ShowPoints(common.VisibilityModeAlways).PointSize(7).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		WithTransformation(without("Time")).
		WithTransformation(transform("convertFieldType", options{"fields": options{}, "conversions": []options{
			{"targetField": "created", "destinationType": "number"}, {"targetField": "created", "destinationType": "time"},
		}})).
		WithTransformation(sortBy("created", false)).
		WithTransformation(split("curve")).
		OverrideByRegexp(`/\((low|high)\)$/`, intervalEnd(property("custom.showPoints", "never")))
}

// intervalEnd is how the end of an interval looks: one grey for all, so that the colours are the arms'.
func intervalEnd(more ...dashboard.DynamicConfigValue) []dashboard.DynamicConfigValue {
	return append([]dashboard.DynamicConfigValue{
		property("custom.lineWidth", 1),
		property("custom.lineStyle", options{"fill": "dash", "dash": []int{4, 4}}),
		property("color", options{"mode": "fixed", "fixedColor": intervalColor}),
		property("custom.hideFrom", options{"legend": true, "tooltip": false, "viz": false}),
	}, more...)
}

// ---- transformations and overrides, whose options Grafana's schema leaves open

type options = map[string]any

func transform(id string, with options) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: id, Options: with}
}

func sortBy(field string, descending bool) dashboard.DataTransformerConfig {
	return transform("sortBy", options{"fields": options{}, "sort": []options{{"field": field, "desc": descending}}})
}

// split makes one series for every value of a column.
func split(column string) dashboard.DataTransformerConfig {
	return transform("partitionByValues", options{"fields": []string{column}, "keepFields": false, "naming": options{"asLabels": true}})
}

// merge puts rows with the same labels beside each other.
func merge() dashboard.DataTransformerConfig { return transform("merge", options{}) }

func without(fields ...string) dashboard.DataTransformerConfig { return arrange(nil, nil, fields...) }

// arrange orders and renames columns, and leaves some out.
func arrange(order []string, names map[string]string, leaveOut ...string) dashboard.DataTransformerConfig {
	index, exclude, rename := options{}, options{}, options{}
	for i, name := range order {
		index[name] = i
	}
	for from, to := range names {
		rename[from] = to
	}
	for _, name := range leaveOut {
		exclude[name] = true
	}
	return transform("organize", options{"excludeByName": exclude, "indexByName": index, "renameByName": rename, "includeByName": options{}})
}

func property(id string, value any) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: id, Value: value}
}

// coloured shows a column's words with their colours.
func coloured(looks []dashboard.ValueMapping) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		property("mappings", looks),
		property("custom.cellOptions", options{"type": "color-background", "mode": "basic"}),
	}
}

func inUnit(unit string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("unit", unit)}
}

// color shows a series in one colour.
func color(name string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("color", options{"mode": "fixed", "fixedColor": name})}
}

// linked makes a column's cells lead somewhere.
func linked(title, url string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("links", []options{{"title": title, "url": url, "targetBlank": false}})}
}

// Addresses within the same Grafana, which adds its own path before them.
const (
	toRun = "/d/" + RunUID + "?var-datasource=${datasource}" +
		"&var-namespace=${__data.fields.namespace}&var-run=${__data.fields.run}&${__url_time_range}"
	toHistory = "/d/" + HistoryUID + "?var-datasource=${datasource}&var-template=${__data.fields.template}"
)
