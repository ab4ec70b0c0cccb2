package experiment

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with an experiment.
type Problem struct {
	// Field is the path of the field in the run or its template, e.g. spec.gates[1].at.
	Field string
	// Message is what was found and what to do.
	Message string
}

// Invalid is every problem found in an experiment, as far as anybody reads, so that an author repairs them in one go.
type Invalid struct {
	Problems []Problem
	// Further problems are counted only: an experiment can have as many as it has cells.
	Further int
}

// What is kept of problems.
const (
	maxProblems = 64
	maxProblem  = 768
)

// found is how many problems there are: as many as are kept and those that are not.
func (i *Invalid) found() int { return len(i.Problems) + i.Further }

func (i *Invalid) add(field, format string, args ...any) {
	if len(i.Problems) == maxProblems {
		i.Further++
		return
	}
	i.Problems = append(i.Problems, Problem{Field: shortened(field, maxProblem), Message: shortened(fmt.Sprintf(format, args...), maxProblem)})
}

// lazily is a text that is made where it is kept: comparing a name with all that there are takes its time, and an experiment has room for
// thousands of wrong ones.
type lazily func() string

func (l lazily) String() string { return l() }

// addOnce adds a problem unless one of that key was reported: one wrong value shows in many cells and is one problem to the author.
func (i *Invalid) addOnce(reported map[string]bool, key, field, format string, args ...any) {
	if !reported[key] {
		i.add(field, format, args...)
	}
	reported[key] = true
}

// shortened keeps the beginning and the end, which says what to do.
func shortened(text string, most int) string {
	if runes := []rune(text); len(text) > most && len(runes) > most {
		return string(runes[:most/2]) + " … " + string(runes[len(runes)-most/2:])
	}
	return text
}

// Error lists the problems, each with its field.
func (i *Invalid) Error() string {
	lines := make([]string, 0, len(i.Problems))
	for _, p := range i.Problems {
		lines = append(lines, p.Field+": "+p.Message)
	}
	if i.Further > 0 {
		lines = append(lines, fmt.Sprintf("and %d further problems", i.Further))
	}
	return strings.Join(lines, "; ")
}
