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
		Short: "Write a commented example of a BenchmarkRun",
		Long: "Write an example of a BenchmarkRun with two arms, a sweep, a design and gates, and a comment at every field. It is valid " +
			"unchanged. With --template it runs a workload that Assay ships, with all its parameters.",
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
			if output == "-" || !cmd.Flags().Changed("output") && cli.Piped(cmd.OutOrStdout()) {
				_, err = cmd.OutOrStdout().Write(raw)
				return err
			}
			return cli.CreateFile(output, raw, cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "my-run", "name of the run")
	flags.StringVar(&shipped, "template", "",
		"name of a shipped BenchmarkTemplate, such as pir-scan (default: an inline template for a custom program)")
	flags.StringVarP(&output, "output", "o", "run.yaml", "file to create; - prints to standard output, which is the default in a pipe")
	_ = command.RegisterFlagCompletionFunc("template", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return ShippedNames(), cobra.ShellCompDirectiveNoFileComp
	})
	return command
}

// ShippedNames returns the names of the shipped templates.
func ShippedNames() []string {
	templates, _ := manifest.Shipped() // A test checks that the shipped templates are readable.
	var out []string
	for _, is := range templates {
		out = append(out, is.Name)
	}
	return out
}

// starterRun renders the example with an inline template, or for the shipped template of that name.
func starterRun(name, shipped string) ([]byte, error) {
	data := struct {
		Name     string
		Template *assayv1alpha1.BenchmarkTemplate
		// Differs is the parameter that distinguishes the arms, with their Values.
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
			return nil, errors.New("template " + shipped + " has no parameter with at least two values to compare")
		}
	}
	parsed := template.Must(template.New("starter").Funcs(template.FuncMap{
		"oneLine": func(text string) string { return strings.Join(strings.Fields(text), " ") },
		"value":   func(text *string) string { return strconv.Quote(*text) },
		// YAML names such as yes and 1 need quotes.
		"text": func(text string) (string, error) {
			raw, err := yaml.Marshal(text)
			return strings.TrimSpace(string(raw)), err
		},
	}).Parse(starter))
	var out bytes.Buffer
	err := parsed.Execute(&out, data)
	return out.Bytes(), err
}
