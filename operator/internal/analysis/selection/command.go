package selection

import (
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// An attempt counts as what it says it is only if it ran the command of its cell. An object that was moved between cells,
// written for another experiment, or edited by hand shows here.

// command is what a trial of a cell runs.
type command struct {
	argv       []string
	parameters map[string]string
}

// variant is a build of an arm at a point; without a name the arm is one build.
type variant struct {
	Cell
	build string
}

// commands are the experiment's own, by cell and build.
func commands(exp *experiment.Experiment) map[variant]command {
	out := make(map[variant]command, len(exp.Cells))
	for _, c := range exp.Cells {
		out[variant{Cell{c.Point, c.Arm}, c.Build}] = command{c.Argv, c.Parameters}
	}
	return out
}

// unknownBuild explains that an arm does not have the build of an attempt.
func unknownBuild(exp *experiment.Experiment, attempt *record.Attempt, at Cell) string {
	var builds []string
	for _, c := range exp.Cells {
		if c.Point == at.Point && c.Arm == at.Arm && c.Build != "" {
			builds = append(builds, c.Build)
		}
	}
	switch {
	case len(builds) == 0:
		return fmt.Sprintf("it ran build %q and arm %q has no builds", attempt.Build, attempt.Arm)
	case attempt.Build == "":
		return fmt.Sprintf("it does not name the build of arm %q that it ran: allowed are %s", attempt.Arm, strings.Join(builds, ", "))
	default:
		return fmt.Sprintf("arm %q has no build %q; it has %s", attempt.Arm, attempt.Build, strings.Join(builds, ", "))
	}
}

// contradiction is how what an attempt ran differs from what its cell runs. A plan may name another path of the program, as
// the executor of this machine does, but not another program or other arguments; the attempt must have run what its plan says.
func contradiction(attempt *record.Attempt, asked command, planned *command) string {
	if planned != nil {
		if reason := differentCommand(*planned, asked, true); reason != "" {
			return fmt.Sprintf("the plan of wave %d contradicts the experiment: %s", attempt.Wave, reason)
		}
		asked = *planned
	}
	return differentCommand(command{attempt.Argv, attempt.Parameters}, asked, planned == nil)
}

// differentCommand describes how a command differs from the one asked for; with anyPath only the program's name matters.
func differentCommand(found, asked command, anyPath bool) string {
	switch {
	case len(found.argv) != len(asked.argv) || len(found.argv) == 0:
		return fmt.Sprintf("it ran %d arguments and the cell has %d", len(found.argv), len(asked.argv))
	case anyPath && path.Base(found.argv[0]) != path.Base(asked.argv[0]), !anyPath && found.argv[0] != asked.argv[0]:
		return fmt.Sprintf("it ran %q and the cell runs %q", found.argv[0], asked.argv[0])
	}
	for i := range asked.argv {
		if i > 0 && found.argv[i] != asked.argv[i] {
			return fmt.Sprintf("argument %d is %q and the cell has %q", i, found.argv[i], asked.argv[i])
		}
	}
	if !maps.Equal(found.parameters, asked.parameters) {
		quoted := func(value string, _ bool) string { return strconv.Quote(value) }
		return "its parameters are not those of the cell: " + strings.Join(differences(found.parameters, asked.parameters, quoted), "; ")
	}
	return ""
}
