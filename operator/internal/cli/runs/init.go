package runs

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/suggest"
)

//go:embed starter.yaml.tmpl
var starter string

func NewInitCommand() *cobra.Command {
	var name, shipped, output string
	command := &cobra.Command{
		Use:   "init",
		Short: "Write a BenchmarkRun to start from, with a comment at every field",
		Long: "Write a BenchmarkRun to start from: two arms, a sweep, a design and gates, with a comment at every field, which assay plan " +
			"accepts as it is. " +
			"With --template it is a run of a workload that Assay ships, with all its parameters.",
		Example: "  assay init\n  assay init --name my-question --output question.yaml\n  assay init --template pir-scan --output -",
		RunE: func(cmd *cobra.Command, _ []string) error {
			problems := validation.IsDNS1123Subdomain(name)
			if len(name) > NameLength {
				problems = append(problems, fmt.Sprintf("a run's name has at most %d characters", NameLength))
			}
			if len(problems) > 0 {
				return cli.UsageError(fmt.Errorf("--name: invalid name %q: %s", name, strings.Join(problems, "; ")))
			}
			raw, err := starterRun(name, shipped)
			if err != nil {
				return err
			}
			if output == "-" {
				_, err = cmd.OutOrStdout().Write(raw)
				return err
			}
			return cli.CreateFile(output, raw, cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "my-run", "name of the run")
	flags.StringVar(&shipped, "template", "",
		"a BenchmarkTemplate that Assay ships, such as pir-scan (default: a program of one's own, described inline)")
	flags.StringVarP(&output, "output", "o", "run.yaml", "file to write, which must not exist yet; - prints it")
	_ = command.RegisterFlagCompletionFunc("template", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return ShippedNames(), cobra.ShellCompDirectiveNoFileComp
	})
	return command
}

func ShippedNames() []string {
	templates, _ := manifest.Shipped() // A test sees that they can be read.
	var out []string
	for _, is := range templates {
		out = append(out, is.Name)
	}
	return out
}

// starterRun is the file, of a program of one's own or of a template that is shipped.
func starterRun(name, shipped string) ([]byte, error) {
	data := struct {
		Name     string
		Template *assayv1alpha1.BenchmarkTemplate
		// Differs is the parameter in which the arms differ, and Values what it is in each of them.
		Differs string
		Values  []string
		Metric  assayv1alpha1.Metric
	}{Name: name}
	if shipped != "" {
		templates, err := manifest.Shipped()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(templates, func(is assayv1alpha1.BenchmarkTemplate) bool { return is.Name == shipped })
		if i < 0 {
			return nil, cli.UsageError(fmt.Errorf("--template: no BenchmarkTemplate %q is shipped: %s", shipped, suggest.Allowed(shipped,
				ShippedNames())))
		}
		data.Template, data.Metric = &templates[i], templates[i].Spec.Metrics[0]
		for _, parameter := range templates[i].Spec.Parameters {
			if len(parameter.Enum) > 1 && data.Differs == "" {
				data.Differs, data.Values = parameter.Name, parameter.Enum[:2]
			}
		}
		if data.Differs == "" {
			return nil, errors.New("template " + shipped + " has no parameter with several values to compare")
		}
	}
	parsed := template.Must(template.New("starter").Funcs(template.FuncMap{
		"oneLine": func(text string) string { return strings.Join(strings.Fields(text), " ") },
		"value":   func(text *string) string { return strconv.Quote(*text) },
		// Some names are numbers, or yes, without quotes.
		"text": func(text string) (string, error) {
			raw, err := yaml.Marshal(text)
			return strings.TrimSpace(string(raw)), err
		},
	}).Parse(starter))
	var out bytes.Buffer
	err := parsed.Execute(&out, data)
	return out.Bytes(), err
}
