package scan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
)

// env splits a command line without a shell, and replaces variables of its environment: its -S.
const env = "/usr/bin/env"

// mostWords is the largest number of words of a command in the API, and mostTrials that of trials.
const mostWords, mostTrials = 64, 100_000

// Commands returns commands of which a run can have one template with the parameters. Commands of the same length whose words have the same
// parameters stay as they are. Others are started by env, which has the values of the parameters as variables.
func Commands(commands [][]string) ([][]string, error) {
	if alike(commands) {
		return commands, nil
	}
	out := make([][]string, 0, len(commands))
	for _, command := range commands {
		if strings.Contains(command[0], "=") {
			return nil, fmt.Errorf("program %q: commands with different parameters are started by env, which takes a name with = for a variable: "+
				"rename the program", command[0])
		}
		var words []string
		for _, word := range command {
			words = append(words, quoted(word))
		}
		out = append(out, []string{env, "-S", strings.Join(words, " ")})
	}
	return out, nil
}

// alike reports whether the commands have the same length, and each of their words the same parameters.
func alike(commands [][]string) bool {
	for _, command := range commands {
		if len(command) != len(commands[0]) || len(command) > mostWords {
			return false
		}
		for i, word := range command {
			_, names := split(word)
			if _, first := split(commands[0][i]); !slices.Equal(names, first) {
				return false
			}
		}
	}
	return true
}

// quoted is a word as env -S reads it. Inside single quotes only \' and \\ have a meaning, and a value is not split again.
// https://www.gnu.org/software/coreutils/manual/html_node/env-invocation.html
func quoted(word string) string {
	escape := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	texts, names := split(word)
	out := "'" + escape.Replace(texts[0]) + "'"
	for i, name := range names {
		out += `"${` + variable(name) + `}"'` + escape.Replace(texts[i+1]) + "'"
	}
	// A name in the text is one of the word's own, which a second pass must not read.
	return strings.NewReplacer("{", "{{", "}", "}}", "${", "${").Replace(out)
}

// variable is the name of the variable in which a trial has the value of a parameter.
func variable(name string) string {
	var out strings.Builder
	out.WriteString("ASSAY_PARAM_")
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
		}
		out.WriteString(strings.ToUpper(string(r)))
	}
	return out.String()
}

// split splits a word at its names: there is one text more than names.
func split(word string) (texts, names []string) {
	texts = []string{""}
	for _, part := range Parts(word) {
		if part.Name != "" {
			texts, names = append(texts, ""), append(names, part.Name)
		} else {
			texts[len(texts)-1] += part.Text
		}
	}
	return texts, names
}

var onlyReference = regexp.MustCompile(`^\$\(([a-z][A-Za-z0-9]*)\)$`)

// Apply makes the parameters axes of a run: names in braces in its command, and in those values of its arms that are words of the command,
// become references. The run is that of a comparison of command lines.
func Apply(run *assayv1alpha1.BenchmarkRun, axes []Axis) error {
	template := run.Spec.Template
	for _, axis := range axes {
		if slices.ContainsFunc(template.Parameters, func(p assayv1alpha1.Parameter) bool { return p.Name == axis.Name }) {
			return fmt.Errorf("invalid %s: the run has a parameter %s of its own; choose another name", axis.Flag, axis.Name)
		}
	}
	for i, element := range template.Command {
		if own := onlyReference.FindStringSubmatch(element); own != nil {
			template.Command[i] = segments(&run.Spec, own[1])
			continue
		}
		texts, names := split(element)
		template.Command[i] = texts[0]
		for k, name := range names {
			template.Command[i] += "$(" + name + ")" + texts[k+1]
		}
	}
	command := strings.Join(template.Command, " ")
	run.Spec.Sweep = &assayv1alpha1.Sweep{}
	for _, axis := range axes {
		parameter := assayv1alpha1.Parameter{Name: axis.Name, Type: assayv1alpha1.StringParameter}
		if !strings.Contains(command, "$("+axis.Name+")") {
			parameter.Argument = "None"
		}
		template.Parameters = append(template.Parameters, parameter)
		run.Spec.Sweep.Axes = append(run.Spec.Sweep.Axes, assayv1alpha1.SweepAxis{Name: axis.Name, Values: axis.Values})
	}
	design := &run.Spec.Design
	perBlock := len(run.Spec.Arms) * len(Points(axes)) * (experiment.VisitTrials + int(design.WarmupTrials))
	design.Blocks.Max = max(design.Blocks.Min, min(design.Blocks.Max, int32(mostTrials/perBlock)))
	run.Spec.Budget.Trials = min(mostTrials, max(run.Spec.Budget.Trials, int32(perBlock)*design.Blocks.Max))
	return nil
}

// segments replaces a parameter, whose values are words of the arms, by one for each text between names, and returns the element of the
// command.
func segments(spec *assayv1alpha1.BenchmarkRunSpec, name string) string {
	_, names := split(spec.Arms[0].Parameters[name])
	words := make([][]string, len(spec.Arms))
	for i := range spec.Arms {
		words[i], _ = split(spec.Arms[i].Parameters[name])
		delete(spec.Arms[i].Parameters, name)
	}
	at := slices.IndexFunc(spec.Template.Parameters, func(p assayv1alpha1.Parameter) bool { return p.Name == name })
	own := spec.Template.Parameters[at]
	spec.Template.Parameters = slices.Delete(spec.Template.Parameters, at, at+1)
	out := ""
	for k := range len(names) + 1 {
		same := !strings.Contains(words[0][k], "$(")
		for _, texts := range words {
			same = same && texts[k] == words[0][k]
		}
		if same && len(names) > 0 {
			out += words[0][k]
		} else {
			part := own
			if k > 0 {
				part.Name += "Part" + strconv.Itoa(k)
			}
			spec.Template.Parameters = append(spec.Template.Parameters, part)
			for i := range spec.Arms {
				spec.Arms[i].Parameters[part.Name] = words[i][k]
			}
			out += "$(" + part.Name + ")"
		}
		if k < len(names) {
			out += "$(" + names[k] + ")"
		}
	}
	return out
}
