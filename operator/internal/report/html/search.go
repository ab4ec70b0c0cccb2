package html

import (
	"fmt"

	summary "assay.dev/assay/operator/internal/report"
)

// search adds the question of a search and every tested load.
func (b *builder) search(r *report) {
	if len(b.result.Search) == 0 {
		return
	}
	r.Axis, r.Maximized = b.result.Search[0].Axis, b.result.Search[0].Metric
	r.Loads.Header = []string{"arm", r.Axis, "found", "blocks", "by fresh blocks", "constraint"}
	for _, result := range b.result.Search {
		for _, level := range result.Levels {
			found := summary.SearchCells(level)
			r.Loads.Rows = append(r.Loads.Rows, []string{
				result.Arm, level.Load, found[0], fmt.Sprintf("%d of %d", level.Probe.Blocks, level.Probe.Planned), found[1], found[2],
			})
		}
	}
}
