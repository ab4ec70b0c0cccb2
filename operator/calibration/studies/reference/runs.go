package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

var runsPlace = regexp.MustCompile(`(?s)<!-- runs -->\n.*?<!-- /runs -->`)

// gate is a gate of a run, as far as a table shows it.
type gate struct {
	Name, Metric, Statistic, Op, Bound, Severity string
	At                                           map[string]string
}

// runsTable lists the runs of a study: the question, which is the comment that a run begins with, and the gates.
func (l *Library) runsTable(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(l.root, folder, "*.yaml"))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	var out strings.Builder
	out.WriteString("<!-- runs -->\n| run | question | gates |\n|---|---|---|\n")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if !strings.Contains(string(raw), "\nkind: BenchmarkRun\n") {
			continue
		}
		var run struct {
			Spec struct{ Gates []gate }
		}
		// A file may hold other objects before its run.
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			if strings.Contains("\n"+document, "\nkind: BenchmarkRun\n") {
				if err := yaml.Unmarshal([]byte(document), &run); err != nil {
					return "", fmt.Errorf("%s: %w", file, err)
				}
			}
		}
		var question, gates []string
		for line := range strings.Lines(string(raw)) {
			text, ok := strings.CutPrefix(line, "#")
			if !ok {
				break
			}
			question = append(question, strings.TrimSpace(text))
		}
		for _, g := range run.Spec.Gates {
			gates = append(gates, g.String())
		}
		name := filepath.Base(file)
		fmt.Fprintf(&out, "| [%s](%s) | %s | %s |\n", name, name, strings.ReplaceAll(strings.Join(question, " "), "|", `\|`),
			strings.Join(gates, "; "))
	}
	out.WriteString("<!-- /runs -->")
	return out.String(), nil
}

func (g gate) String() string {
	out := "`" + g.Name + "`: " + strings.TrimSpace(g.Statistic+" "+g.Metric) + " " + g.Op + " " + g.Bound
	out = strings.Join(strings.Fields(out), " ")
	var at []string
	for axis, value := range g.At {
		at = append(at, axis+"="+value)
	}
	if slices.Sort(at); len(at) > 0 {
		out += " at " + strings.Join(at, ", ")
	}
	if g.Severity == "Advisory" {
		out += " (advisory)"
	}
	return out
}

var parametersPlace = regexp.MustCompile(`(?s)<!-- parameters (\S+) -->\n.*?<!-- /parameters -->`)

// parametersTable lists the parameters of a template of the chart, as the flags that they are given as.
func (l *Library) parametersTable(name string) (string, error) {
	file := filepath.Join(l.root, "charts", "assay", "files", "benchmarktemplates", name+".yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var template struct {
		Spec struct {
			Parameters []struct {
				Name, Type, Default, Minimum, Maximum, Description string
				Enum                                               []string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &template); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "<!-- parameters %s -->\n| flag | default | allowed | |\n|---|---|---|---|\n", name)
	for _, p := range template.Spec.Parameters {
		allowed := strings.Join(p.Enum, ", ")
		switch {
		case p.Type == "Boolean":
			allowed = "true, false"
		case p.Maximum != "":
			allowed = p.Minimum + " … " + p.Maximum
		case p.Minimum != "":
			allowed = "from " + p.Minimum
		}
		fmt.Fprintf(&out, "| `--%s` | %s | %s | %s |\n", kebab(p.Name), p.Default, allowed, strings.ReplaceAll(p.Description, "|", `\|`))
	}
	return out.String() + "<!-- /parameters -->", nil
}

// kebab writes a name such as batchSize as a flag, batch-size.
func kebab(name string) string {
	return strings.ToLower(upper.ReplaceAllString(name, "-$0"))
}

var upper = regexp.MustCompile(`[A-Z]`)
