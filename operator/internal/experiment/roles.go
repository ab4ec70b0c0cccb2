package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// portReference is $(port.role) inside an element of a command. The runner replaces it, in the elements named by the wave.
var portReference = regexp.MustCompile(`\$\(port\.([^)]*)\)`)

const portPrefix = "$(port."

// commandOf is a command of the template and the path of its field.
type commandOf struct {
	field    string
	elements []string
}

// commands returns all commands of the template; the last one belongs to the process whose output is the result.
func commands(template *assayv1alpha1.BenchmarkTemplateSpec) []commandOf {
	if len(template.Roles) == 0 {
		return []commandOf{{"template.command", template.Command}}
	}
	out := make([]commandOf, 0, len(template.Roles))
	for i, role := range template.Roles {
		out = append(out, commandOf{fmt.Sprintf("template.roles[%d].command", i), role.Command})
	}
	return out
}

// resultCommand returns the command of the process whose output is the result.
func resultCommand(template *assayv1alpha1.BenchmarkTemplateSpec) []string {
	all := commands(template)
	return all[len(all)-1].elements
}

// checkCommands rejects commands that are invalid for all parameter values.
func checkCommands(template *assayv1alpha1.BenchmarkTemplateSpec, problems *Invalid) {
	roles := NamesOf(template.Roles, func(r assayv1alpha1.Role) string { return r.Name })
	for _, command := range commands(template) {
		if len(command.elements) == 0 || command.elements[0] == "" {
			problems.add(command.field, "the command is empty: name a program")
		}
		for i, element := range command.elements {
			field := fmt.Sprintf("%s[%d]", command.field, i)
			for _, match := range reference.FindAllStringSubmatch(element, -1) {
				if findParameter(template, match[1]) == nil {
					problems.add(field, "$(%s): %s", match[1], noParameter(template, match[1]))
				}
			}
			for _, match := range portReference.FindAllStringSubmatch(element, -1) {
				if !slices.Contains(roles, match[1]) {
					problems.add(field, "$(port.%s): the template has no role %q: %s", match[1], match[1],
						lazily(func() string { return suggest.Allowed(match[1], roles) }))
				}
			}
		}
	}
}

// ports returns the indices of a command's elements that name a port.
func ports(command []string) []int {
	var out []int
	for i, element := range command {
		if portReference.MatchString(element) {
			out = append(out, i)
		}
	}
	return out
}

// roleCommands returns the final arguments of the roles other than the one with the result.
func roleCommands(template *assayv1alpha1.BenchmarkTemplateSpec, values map[string]string) []record.RoleCommand {
	var out []record.RoleCommand
	for _, role := range template.Roles[:max(0, len(template.Roles)-1)] {
		out = append(out, record.RoleCommand{Argv: substitute(role.Command, values), Ports: ports(role.Command)})
	}
	return out
}

// named reports whether some command of the template names the parameter.
func named(template *assayv1alpha1.BenchmarkTemplateSpec, parameter string) bool {
	return slices.ContainsFunc(commands(template), func(c commandOf) bool {
		return slices.ContainsFunc(c.elements, func(e string) bool { return strings.Contains(e, "$("+parameter+")") })
	})
}

// substitute replaces $(name) inside the elements. A value stays inside its element, even if it contains blanks, and is never expanded
// again.
func substitute(command []string, values map[string]string) []string {
	out := make([]string, 0, len(command))
	for _, element := range command {
		out = append(out, reference.ReplaceAllStringFunc(element, func(match string) string {
			if value, ok := values[match[2:len(match)-1]]; ok {
				return value
			}
			return match
		}))
	}
	return out
}

// checkPortValues rejects a value that contains a port reference in an element where ports are replaced.
func checkPortValues(template *assayv1alpha1.BenchmarkTemplateSpec, values, origin map[string]string, reported map[string]bool,
	problems *Invalid) {
	for _, command := range commands(template) {
		for _, element := range command.elements {
			if !portReference.MatchString(element) {
				continue
			}
			for _, match := range reference.FindAllStringSubmatch(element, -1) {
				field := origin[match[1]]
				if strings.Contains(values[match[1]], portPrefix) {
					problems.addOnce(reported, field, field, "the value has %q and becomes a part of %q, where ports are filled in: use another "+
						"value, or put the parameter into a separate element", portPrefix, element)
				}
			}
		}
	}
}
