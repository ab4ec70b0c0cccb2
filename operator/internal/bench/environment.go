package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Variable is a variable of the environment of all commands, as of --env.
type Variable struct{ Name, Value string }

// variableName is the form that the API wants of a variable's name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// longestValue is that of a parameter's default in the API, in characters.
const longestValue = 4096

// ParseVariables parses NAME=VALUE. Of two with one name the last one counts, as in env(1).
func ParseVariables(given []string) ([]Variable, error) {
	var out []Variable
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || !variableName.MatchString(name):
			return nil, fmt.Errorf("--env %q: write it as NAME=VALUE, such as OMP_NUM_THREADS=4", text)
		case strings.HasPrefix(name, "ASSAY_"):
			return nil, fmt.Errorf("--env %s: names that begin with ASSAY_ are reserved for Assay; use another name", name)
		case len([]rune(value)) > longestValue:
			return nil, fmt.Errorf("--env %s: the value has %d characters, and at most %d are allowed", name, len([]rune(value)), longestValue)
		}
		out = slices.DeleteFunc(out, func(v Variable) bool { return v.Name == name })
		out = append(out, Variable{name, value})
	}
	return out, nil
}

// variables returns the variables of the question as parameters with their values as defaults, which are recorded with the run.
func (q *Question) variables() []assayv1alpha1.Parameter {
	var out []assayv1alpha1.Parameter
	seen := map[string]bool{}
	for _, variable := range q.Variables {
		name := parameterName(variable.Name)
		for i := 2; seen[name]; i++ {
			name = parameterName(variable.Name) + strconv.Itoa(i)
		}
		seen[name] = true
		out = append(out, assayv1alpha1.Parameter{
			Name: name, Type: assayv1alpha1.StringParameter, Default: &variable.Value, Argument: "None", Env: variable.Name,
		})
	}
	return out
}

// parameterName turns the name of a variable into that of a parameter: OMP_NUM_THREADS becomes envOmpNumThreads.
func parameterName(variable string) string {
	const longest = 60
	out := "env"
	for word := range strings.SplitSeq(strings.ToLower(variable), "_") {
		if word != "" {
			out += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return out[:min(len(out), longest)]
}
