package report

import (
	"fmt"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Processes tabulates resource usage per arm. Columns without any value are omitted, and the table is empty if no usage was recorded.
func Processes(result *analysis.Analysis) Table {
	if len(result.Usage.Processes) == 0 {
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

// ProcessesNote explains the table of processes.
const ProcessesNote = "Means per trial over all points, and the maximum of all trials for memory. Gates and tables can use these values " +
	"per point as process.wallTime and so on."

func (v *view) processes(out *document) {
	if out.section("Resource usage of processes", Processes(v.result)) {
		out.line("\n%s", ProcessesNote)
	}
}
