package experiment

import (
	"fmt"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// noArgument marks a parameter that the process receives only through its environment.
const noArgument = "None"

// arguments formats the value of a parameter that no command names: as one argument, as two, or as none.
func arguments(parameter assayv1alpha1.Parameter, value string) []string {
	switch argument := parameter.Argument; {
	case argument == noArgument:
		return nil
	case argument == "":
		return []string{"--" + kebab(parameter.Name) + "=" + value}
	case strings.HasSuffix(argument, "="):
		return []string{argument + value}
	default:
		return []string{argument, value}
	}
}

// checkArguments reports parameters that cannot be passed to the process as the template specifies.
func checkArguments(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	var variables []string
	for i, parameter := range template.Parameters {
		field := fmt.Sprintf("template.parameters[%d]", i)
		if parameter.Argument != "" && named(template, parameter.Name) {
			problems.add(field+".argument", "a command names $(%s) already, so %s would never be used: remove one of them", parameter.Name,
				parameter.Argument)
		}
		if parameter.Env == "" {
			continue
		}
		if strings.HasPrefix(parameter.Env, "ASSAY_") {
			problems.add(field+".env", "invalid variable %s: names that begin with ASSAY_ are reserved for Assay; use another name", parameter.Env)
		}
		if slices.Contains(variables, parameter.Env) {
			problems.add(field+".env", "variable %s is already set by another parameter: use another name", parameter.Env)
		}
		variables = append(variables, parameter.Env)
	}
}
