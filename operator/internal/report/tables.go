package report

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
)

// OwnTable is a table of spec.report.tables. Numbers have their intervals; missing ones are empty.
type OwnTable struct {
	Name, Title string
	header      []string
	rows        [][]figure
}

// figure is one cell: text, or a number with its interval in the scale of the column.
type figure struct {
	text string
	// known is true for numbers.
	known     bool
	value     float64
	low, high *float64
	unit      string
}

func words(text string) figure { return figure{text: text} }

// scaled converts an estimate to a scale of its unit.
func scaled(estimate *analysis.Estimate, scale float64) figure {
	out := figure{known: true, value: estimate.Value / scale}
	if estimate.Low != nil && estimate.High != nil {
		low, high := *estimate.Low/scale, *estimate.High/scale
		out.low, out.high = &low, &high
	}
	return out
}

func share(part float64) figure { return figure{known: true, value: 100 * part, unit: "%"} }

// OwnTables returns the tables of spec.report.tables in their order.
func OwnTables(exp *experiment.Experiment, result *analysis.Analysis) []OwnTable {
	v := newView(exp, result)
	var out []OwnTable
	for i := range exp.Plan.Tables {
		asked := &exp.Plan.Tables[i]
		table := OwnTable{Name: asked.Name, Title: asked.Title}
		if asked.Phases {
			v.phaseRows(asked, &table)
		} else {
			v.pointRows(asked, &table)
		}
		out = append(out, table)
	}
	return out
}

// each visits the points and arms of a table, with the cells of the key.
func (v *view) each(asked *experiment.Table, visit func(names []figure, r row)) {
	for _, point := range v.exp.Points {
		if !experiment.Matches(asked.At, point.Parameters) {
			continue
		}
		arms := asked.Arms
		if len(arms) == 0 {
			arms = v.exp.ArmNames()
		}
		for _, arm := range arms {
			var names []figure
			for _, value := range append(v.axisValues(point.Parameters), arm) {
				names = append(names, words(value))
			}
			visit(names, row{point.Key, arm})
		}
	}
}

func (v *view) pointRows(asked *experiment.Table, table *OwnTable) {
	table.header = append(slices.Clone(v.axes), "arm")
	for _, c := range asked.Columns {
		table.header = append(table.header, c.Title)
	}
	table.header = append(table.header, "share of ceiling", "ceiling")
	v.each(asked, func(names []figure, r row) {
		cells, part, ceiling := names, figure{}, figure{}
		for _, c := range asked.Columns {
			cell := figure{}
			switch {
			case c.Phase != "":
				if phase := v.phase(r, c.Phase); phase != nil {
					cell = scaled(phase, c.Scale)
				}
			case c.Compared:
				if ratio, ok := v.ratios[r.of(c.Metric, c.Statistic)]; ok {
					cell = scaled(&ratio.Estimate, 1)
					cell.unit = quantity.Times
				}
			default:
				if level, ok := v.levels[r.of(c.Metric, c.Statistic)]; ok {
					cell = scaled(&level.Estimate, c.Scale)
					if level.ShareOfCeiling != nil && !part.known {
						part, ceiling = share(*level.ShareOfCeiling), words(level.Ceiling)
					}
				}
			}
			cells = append(cells, cell)
		}
		table.rows = append(table.rows, append(cells, part, ceiling))
	})
}

func (v *view) phase(r row, name string) *analysis.Estimate {
	for i := range v.result.Phases {
		if phase := &v.result.Phases[i]; phase.Point == r.point && phase.Arm == r.arm && phase.Phase == name {
			return &phase.Estimate
		}
	}
	return nil
}

func (v *view) phaseRows(asked *experiment.Table, table *OwnTable) {
	scale := asked.Scale
	table.header = append(slices.Clone(v.axes), "arm", "phase", "time ("+asked.Unit+")", "share")
	v.each(asked, func(names []figure, r row) {
		total, sum := 0.0, 0.0
		var whole *analysis.ArmResult
		if metric := v.exp.Metric(asked.Total); metric != nil {
			whole = v.levels[r.of(asked.Total, metric.Statistic)]
		}
		for _, phase := range v.result.Phases {
			if phase.Point == r.point && phase.Arm == r.arm {
				sum += phase.Estimate.Value
			}
		}
		if total = sum; whole != nil {
			total = whole.Estimate.Value
		}
		for i := range v.result.Phases {
			phase := &v.result.Phases[i]
			if phase.Point != r.point || phase.Arm != r.arm || total <= 0 {
				continue
			}
			part := share(phase.Estimate.Value / total)
			table.rows = append(table.rows, append(slices.Clone(names), words(phase.Phase), scaled(&phase.Estimate, scale), part))
		}
		if whole != nil && total > 0 && sum > 0 {
			table.rows = append(table.rows,
				append(slices.Clone(names), words("all phases together"), figure{known: true, value: sum / scale}, share(sum/total)),
				append(slices.Clone(names), words(asked.Total), scaled(&whole.Estimate, scale), share(1)))
		}
	})
}

func (v *view) ownTables(out *document) {
	for _, table := range OwnTables(v.exp, v.result) {
		out.heading(Escape(table.Heading()))
		out.table(table.Text())
	}
}

// Heading returns the title of the table, or its name without a title.
func (t OwnTable) Heading() string { return cmp.Or(t.Title, t.Name) }

// Text formats the table for people.
func (t OwnTable) Text() Table {
	out := Table{Header: t.header}
	for _, cells := range t.rows {
		var line []string
		for _, cell := range cells {
			line = append(line, cell.String())
		}
		out.add(line...)
	}
	return out
}

// String formats the cell with four significant digits.
func (f figure) String() string {
	switch {
	case !f.known:
		return f.text
	case f.low == nil:
		return quantity.Format(f.value, f.unit)
	default:
		return quantity.Interval(f.value, f.low, f.high, f.unit)
	}
}

// Markdown renders the table with its title.
func (t OwnTable) Markdown() []byte {
	out := &document{}
	out.line("### %s\n", Escape(t.Heading()))
	out.table(t.Text())
	return out.Bytes()
}

// CSV renders the table with two more columns for every column with intervals.
func (t OwnTable) CSV() []byte {
	wide := make([]bool, len(t.header))
	for _, cells := range t.rows {
		for i, cell := range cells {
			wide[i] = wide[i] || cell.low != nil
		}
	}
	var out sheet
	var header []string
	for i, title := range t.header {
		header = append(header, title)
		if wide[i] {
			header = append(header, title+" low", title+" high")
		}
	}
	out.row(header)
	for _, cells := range t.rows {
		var line []string
		for i, cell := range cells {
			if cell.known {
				line = append(line, quantity.Full(cell.value))
			} else {
				line = append(line, cell.text)
			}
			if wide[i] {
				line = append(line, number(cell.low), number(cell.high))
			}
		}
		out.row(line)
	}
	return out.Bytes()
}
