package experiment

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with an experiment.
type Problem struct {
	// Field is the path of the field in the run or its template, e.g. spec.gates[1].at.
	Field string
	// Message says what was found and what to do.
	Message string
}

// Invalid is every problem found in an experiment, so that an author repairs them in one go.
type Invalid struct{ Problems []Problem }

func (i *Invalid) add(field, format string, args ...any) {
	i.Problems = append(i.Problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (i *Invalid) orNil() error {
	if len(i.Problems) == 0 {
		return nil
	}
	return i
}

// Error lists the problems, each with its field.
func (i *Invalid) Error() string {
	lines := make([]string, 0, len(i.Problems))
	for _, p := range i.Problems {
		lines = append(lines, p.Field+": "+p.Message)
	}
	return strings.Join(lines, "; ")
}
