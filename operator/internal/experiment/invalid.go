package experiment

import (
	"fmt"
	"strings"
)

// Problem is one fault of an experiment.
type Problem struct {
	// Field is the path of the field in the run or its template, e.g. spec.gates[1].at.
	Field string
	// Message describes the invalid value and the remedy.
	Message string
}

// Invalid is an error that lists all problems of an experiment, up to a limit, so that an author can fix them in one pass.
type Invalid struct {
	Problems []Problem
	// Further counts the problems that are not listed: an experiment may have one for each of its cells.
	Further int
}

// Limits of the listed problems.
const (
	maxProblems = 64
	maxProblem  = 768
)

// found counts all problems, listed or not.
func (i *Invalid) found() int { return len(i.Problems) + i.Further }

func (i *Invalid) add(field, format string, args ...any) {
	if len(i.Problems) == maxProblems {
		i.Further++
		return
	}
	i.Problems = append(i.Problems, Problem{Field: shortened(field, maxProblem), Message: shortened(fmt.Sprintf(format, args...), maxProblem)})
}

// lazily is a text that is computed only if its problem is listed. Suggesting similar names is slow, and an experiment may have thousands
// of wrong names.
type lazily func() string

func (l lazily) String() string { return l() }

// addOnce adds a problem unless one with this key was reported, because one wrong value affects many cells.
func (i *Invalid) addOnce(reported map[string]bool, key, field, format string, args ...any) {
	if !reported[key] {
		i.add(field, format, args...)
	}
	reported[key] = true
}

// shortened removes the middle of a long message and retains its end, which has the remedy.
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
