package experiment

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/record"
)

// Every arm needs one cell at every point, or one for each of its builds.
func TestCheckCells_MissingAndRepeatedCells(t *testing.T) {
	cell := func(point, arm int, build string) record.Cell {
		return record.Cell{Point: point, Arm: arm, Build: build}
	}
	for name, c := range map[string]struct {
		cells []record.Cell
		says  string
	}{
		"one of each arm": {
			[]record.Cell{
				cell(0, 0, ""), cell(0, 1, ""), cell(1, 0, ""), cell(1, 1, ""),
			}, "",
		},
		"two builds of one arm": {
			[]record.Cell{
				cell(0, 0, "a"), cell(0, 0, "b"), cell(0, 1, ""), cell(1, 0, "a"),
				cell(1, 0, "b"), cell(1, 1, ""),
			}, "",
		},
		"builds of both": {
			[]record.Cell{
				cell(0, 0, "a"), cell(0, 0, "b"), cell(0, 1, "a"), cell(0, 1, "b"),
				cell(1, 0, "a"), cell(1, 0, "b"), cell(1, 1, "a"), cell(1, 1, "b"),
			}, "",
		},
		"an arm twice": {
			[]record.Cell{
				cell(0, 0, ""), cell(0, 1, ""), cell(1, 0, ""), cell(1, 0, ""),
			}, "cells[3] is arm 0 at point 1, build \"\", which another one is already",
		},
		"a build twice": {
			[]record.Cell{
				cell(0, 0, "a"), cell(0, 0, "a"),
			}, `cells[1] is arm 0 at point 0, build "a", which another one is already`,
		},
		"an arm with and without builds": {
			[]record.Cell{
				cell(0, 0, "a"), cell(0, 1, ""), cell(1, 0, ""), cell(1, 1, ""),
			}, "cells[2] is of arm 0, which has cells with and without a build",
		},
		"a build that one point lacks": {
			[]record.Cell{
				cell(0, 0, "a"), cell(0, 0, "b"), cell(0, 1, ""), cell(1, 0, "a"),
				cell(1, 1, ""),
			}, "cells has 5 and 2 points of 2 arms have 6",
		},
		"an arm that is not there": {
			[]record.Cell{cell(0, 2, "")}, "cells[0] is arm 2 at point 0, and there are 2 arms and 2 points",
		},
		"a point before the first": {
			[]record.Cell{cell(-1, 0, "")}, "cells[0] is arm 0 at point -1",
		},
		"another build at each of the points": {
			[]record.Cell{
				cell(0, 0, "a"), cell(0, 1, ""), cell(1, 0, "b"), cell(1, 1, ""),
			}, "cells has 4 and 2 points of 2 arms have 6",
		},
		"an arm without any": {
			[]record.Cell{
				cell(0, 0, ""), cell(1, 0, ""),
			}, "cells has 2 and 2 points of 2 arms have 4",
		},
		"build 2 of arm 1 beside arm 12": {
			[]record.Cell{
				cell(0, 0, ""), cell(0, 1, "2"), cell(1, 0, ""), cell(1, 1, "2"),
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Experiment{Points: make([]record.Point, 2), Arms: make([]record.Arm, 2), Cells: c.cells}
			err := e.checkCells()
			if said := ""; err != nil {
				if said = err.Error(); c.says == "" || !strings.Contains(said, c.says) {
					t.Errorf("%s, want %q", said, c.says)
				}
			} else if c.says != "" {
				t.Errorf("it was accepted, want %q", c.says)
			}
		})
	}
}
