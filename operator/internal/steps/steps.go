// Package steps defines the commands around the trials of a run on this machine, outside of every measurement (pure).
//
// The runner executes them (runner/runner/src/steps.rs). runner/schema/steps.schema.json defines the format of the document by which it
// gets them.
package steps

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/experiment"
)

// Schema is the id of the format.
const Schema = "assay.dev/steps/v1alpha1"

// Key is the object of a ledger with the steps of its run.
const Key = "steps.json"

// Kind is the kind of a step.
type Kind string

// Kinds of steps.
const (
	// Setup runs once for each arm and point, before the first trial of the run.
	Setup Kind = "setup"
	// Prepare runs directly before every trial, warm-ups included.
	Prepare Kind = "prepare"
	// Conclude runs directly after every trial that was started, with any outcome.
	Conclude Kind = "conclude"
	// Cleanup runs once for each arm and point whose setup began, after the last trial of the run.
	Cleanup Kind = "cleanup"
)

// Kinds lists all kinds in the order in which they run.
var Kinds = []Kind{Setup, Prepare, Conclude, Cleanup}

// MaxTimeout is the longest time of a step.
const MaxTimeout = 24 * time.Hour

// Document has the steps of all points and arms of a run.
type Document struct {
	Schema string `json:"schema"`
	// TimeoutSeconds limits every step.
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	// Inherited are the names of the caller's variables that setup and cleanup get; the steps of a trial get those of the trial.
	Inherited []string `json:"inherited,omitempty"`
	Cells     []Cell   `json:"cells"`
}

// Cell has the steps of one point and arm, each a program with its arguments. A nil step is not run.
type Cell struct {
	Point string `json:"point"`
	Arm   string `json:"arm"`
	// Env are the variables of setup and cleanup, those of the cell's trials.
	Env      map[string]string `json:"env"`
	Setup    []string          `json:"setup,omitempty"`
	Prepare  []string          `json:"prepare,omitempty"`
	Conclude []string          `json:"conclude,omitempty"`
	Cleanup  []string          `json:"cleanup,omitempty"`
}

// Argv returns a step of the cell; nil if it has none.
func (c *Cell) Argv(kind Kind) []string { return *c.step(kind) }

func (c *Cell) step(kind Kind) *[]string {
	return map[Kind]*[]string{Setup: &c.Setup, Prepare: &c.Prepare, Conclude: &c.Conclude, Cleanup: &c.Cleanup}[kind]
}

// Has reports whether any cell has a step of the kind.
func (d *Document) Has(kind Kind) bool {
	return slices.ContainsFunc(d.Cells, func(cell Cell) bool { return cell.Argv(kind) != nil })
}

// Lines are the steps as people write them, by kind: none, one for all arms, or one for each arm.
type Lines map[Kind][]string

// Any reports whether there is a step.
func (l Lines) Any() bool {
	for _, lines := range l {
		if len(lines) > 0 {
			return true
		}
	}
	return false
}

// ForArm returns the line of a kind for the arm at a position; "" without one. Steps that were given in another number than none, one or
// the number of arms are an error with both numbers.
func (l Lines) ForArm(kind Kind, arm, arms int) (string, error) {
	switch given := l[kind]; len(given) {
	case 0:
		return "", nil
	case 1:
		return given[0], nil
	case arms:
		return given[arm], nil
	default:
		return "", fmt.Errorf("invalid --%s: given %d times for %d arms; give it once for all arms, or once for each arm, the baseline first",
			kind, len(given), arms)
	}
}

// Resolve returns the program and the arguments of a line for the arm at a position and a point, with values in place of names in braces.
type Resolve func(line string, arm int, point map[string]string) ([]string, error)

// Of returns the steps of an experiment. Every arm that a person wrote has a position, and the null arm has the steps of the baseline.
func Of(exp *experiment.Experiment, lines Lines, timeout time.Duration, inherited []string, resolve Resolve) (*Document, error) {
	if timeout <= 0 || timeout > MaxTimeout {
		return nil, fmt.Errorf("invalid --step-timeout %s: allowed are durations above 0 and up to %s, such as 5m", timeout, MaxTimeout)
	}
	out := &Document{Schema: Schema, TimeoutSeconds: timeout.Seconds(), Inherited: inherited}
	position, arms := positions(exp)
	for i := range exp.Cells {
		of := &exp.Cells[i]
		arm, point := &exp.Arms[of.Arm], &exp.Points[of.Point]
		cell := Cell{Point: point.Key, Arm: arm.Name, Env: maps.Clone(of.Env)}
		if cell.Env == nil {
			cell.Env = map[string]string{}
		}
		if slices.ContainsFunc(out.Cells, func(c Cell) bool { return c.Point == cell.Point && c.Arm == cell.Arm }) {
			continue // Another build of the arm.
		}
		for _, kind := range Kinds {
			line, err := lines.ForArm(kind, position[of.Arm], arms)
			if err != nil {
				return nil, err
			}
			if line == "" {
				continue
			}
			argv, err := resolve(line, position[of.Arm], point.Parameters)
			if err != nil {
				return nil, fmt.Errorf("--%s %q: %w", kind, line, err)
			}
			*cell.step(kind) = argv
		}
		out.Cells = append(out.Cells, cell)
	}
	return out, nil
}

// positions returns the position of each arm among those that a person wrote, and their number.
func positions(exp *experiment.Experiment) (position []int, arms int) {
	position = make([]int, len(exp.Arms))
	baseline := 0
	for i := range exp.Arms {
		if exp.Arms[i].Null {
			continue
		}
		if exp.Arms[i].Baseline {
			baseline = arms
		}
		position[i] = arms
		arms++
	}
	for i := range exp.Arms {
		if exp.Arms[i].Null {
			position[i] = baseline
		}
	}
	return position, arms
}
