package report

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Processes is a row per arm of what its processes used, with a column for what is known of any. It is empty where nothing is.
func Processes(result *analysis.Analysis) Table {
	if result.Usage == nil || len(result.Usage.Processes) == 0 {
		return Table{}
	}
	var shown []record.ProcessQuantity
	table := Table{Header: []string{"arm", "trials"}}
	for _, one := range record.ProcessQuantities {
		for _, use := range result.Usage.Processes {
			if _, ok := use.Used[one.Name]; ok {
				shown, table.Header = append(shown, one), append(table.Header, one.Name)
				break
			}
		}
	}
	for _, use := range result.Usage.Processes {
		row := []string{use.Arm, fmt.Sprint(use.Trials)}
		for _, one := range shown {
			cell := ""
			if value, ok := use.Used[one.Name]; ok {
				unit := one.Unit
				if unit != "s" && unit != "By" {
					unit = "1"
				}
				cell = quantity.Format(value, unit)
			}
			row = append(row, cell)
		}
		table.add(row...)
	}
	return table
}

// ProcessesNote explains what the table is.
const ProcessesNote = "The mean of a trial, over all points; of memory the most of any trial. Gates and tables name the same as " +
	"process.wallTime and so on, point by point."

func (v *view) processes(out *document) {
	if out.section("What the processes used", Processes(v.result)) {
		out.line("\n%s", ProcessesNote)
	}
}
