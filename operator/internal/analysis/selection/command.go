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

// An attempt is of its cell only if it ran the cell's command. This detects objects that were moved between cells, written for another
// experiment or edited.

// command is the command line of a trial with its parameters.
type command struct {
	argv       []string
	parameters map[string]string
}

// variant is a build of an arm at a point. The name is empty if the arm has no builds.
type variant struct {
	Cell
	build string
}

// commands returns the commands of the experiment by cell and build.
func commands(exp *experiment.Experiment) map[variant]command {
	out := make(map[variant]command, len(exp.Cells))
	for _, c := range exp.Cells {
		out[variant{Cell{c.Point, c.Arm}, c.Build}] = command{c.Argv, c.Parameters}
	}
	return out
}

// unknownBuild describes a build of an attempt that its arm does not have.
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

// contradiction describes how the command of an attempt differs from that of its cell; empty if it does not. A plan may name another path
// of the program, as the local executor does, but neither another program nor other arguments. The attempt must have run the planned
// command.
func contradiction(attempt *record.Attempt, asked command, planned *command) string {
	if planned != nil {
		if reason := differentCommand(*planned, asked, true); reason != "" {
			return fmt.Sprintf("the plan of wave %d contradicts the experiment: %s", attempt.Wave, reason)
		}
		asked = *planned
	}
	return differentCommand(command{attempt.Argv, attempt.Parameters}, asked, planned == nil)
}

// differentCommand describes how a command differs from the requested one; empty if it does not. With anyPath only the name of the program
// is compared, and not its folder.
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
