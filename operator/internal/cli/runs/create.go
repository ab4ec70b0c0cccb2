package runs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

// NameLength is the maximum length of a run's name; generatedSuffix is the length of the suffix that the API server adds to generateName.
const (
	NameLength      = 52
	generatedSuffix = 5
)

// Creation holds the options for creating a run from a file.
type Creation struct {
	File     string
	Name     string
	Generate bool
}

func (c *Creation) AddFlags(command *cobra.Command) {
	command.Flags().StringVarP(&c.File, "filename", "f", "",
		"file with one BenchmarkRun, and BenchmarkTemplates if it needs any; - is standard input")
	command.Flags().StringVar(&c.Name, "name", "", "name of the run (default: metadata.name of the file)")
	command.Flags().BoolVar(&c.Generate, "generate-name", false,
		"add a random suffix to the name, so that the file can be reused")
	_ = command.RegisterFlagCompletionFunc("filename", cli.CompleteManifests)
}

// read reads the file with its single run and applies the name options.
func (c *Creation) read() (*manifest.Set, error) {
	set, err := cli.ReadManifest(c.File)
	if err != nil {
		return nil, err
	}
	run := &set.Runs[0]
	if c.Name != "" {
		run.Name, run.GenerateName = c.Name, ""
	}
	if c.Generate {
		run.GenerateName = cmp.Or(run.GenerateName, run.Name+"-")
		run.Name = ""
		// The suffix is preceded by a hyphen, and no part of a DNS name may begin with one.
		if prefix := strings.TrimRight(run.GenerateName[:min(len(run.GenerateName), NameLength-generatedSuffix-1)], "-."); prefix != "" {
			run.GenerateName = prefix + "-"
		}
	}
	if run.Name == "" && run.GenerateName == "" {
		return nil, cli.UsageError(fmt.Errorf("%s: metadata.name is missing; set it or use --name", c.File))
	}
	return set, nil
}

// Create creates the run, and the templates of its file that do not exist yet.
func (c *Creation) Create(ctx context.Context, cluster *cli.Cluster, explicitNamespace string) (*assayv1alpha1.BenchmarkRun, error) {
	set, err := c.read()
	if err != nil {
		return nil, err
	}
	run, templates := &set.Runs[0], set.Templates
	switch {
	case run.Namespace == "":
		run.Namespace = cluster.Namespace
	case explicitNamespace != "" && explicitNamespace != run.Namespace:
		return nil, cli.UsageError(fmt.Errorf("%s: metadata.namespace %q contradicts --namespace %q; remove one of them", c.File, run.Namespace,
			explicitNamespace))
	default:
		cluster.Namespace = run.Namespace
	}
	if err := checkFrozen(ctx, cluster, set); err != nil {
		return nil, cli.UsageError(set.Explain(run, err))
	}
	for i := range templates {
		templates[i].Namespace = run.Namespace
		if err := ensureTemplate(ctx, cluster, &templates[i]); err != nil {
			return nil, err
		}
	}
	switch err := cluster.Create(ctx, run); {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("BenchmarkRun %s/%s exists, and a run cannot be restarted; delete it (its ledger remains), or use "+
			"--generate-name", run.Namespace, run.Name)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil, cli.UsageError(fmt.Errorf("%s: %w", c.File, err))
	case err != nil:
		return nil, fmt.Errorf("create BenchmarkRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	run.SetGroupVersionKind(cli.RunKind)
	return run, nil
}

// checkFrozen runs the checks of the operator before anything is created, if the template is readable.
func checkFrozen(ctx context.Context, reader client.Reader, set *manifest.Set) error {
	run := &set.Runs[0]
	template, err := set.Template(run)
	if err != nil {
		if run.Spec.TemplateRef == nil || run.Spec.Template != nil {
			return err
		}
		var existing assayv1alpha1.BenchmarkTemplate
		if err := reader.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: run.Spec.TemplateRef.Name}, &existing); err != nil {
			return missingTemplate(err, run)
		}
		template = &existing.Spec
	}
	identity := record.Run{Namespace: run.Namespace, Name: run.Name + run.GenerateName, UID: uuid.NewString()}
	_, err = experiment.Freeze(identity, run.Spec, *template)
	return err
}

// missingTemplate returns the error for an unreadable template. It is nil if reading templates is forbidden, because the operator reports
// the problem then.
func missingTemplate(err error, run *assayv1alpha1.BenchmarkRun) error {
	if apierrors.IsNotFound(err) {
		return &experiment.Invalid{Problems: []experiment.Problem{{Field: "spec.templateRef.name",
			Message: fmt.Sprintf("no BenchmarkTemplate %q in "+
				"namespace %q; list them with kubectl get benchmarktemplates -n %s", run.Spec.TemplateRef.Name, run.Namespace, run.Namespace)}}}
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("read BenchmarkTemplate %s/%s: %w", run.Namespace, run.Spec.TemplateRef.Name, err)
}

// ensureTemplate creates a template. It never updates an existing one, because other runs may use it.
func ensureTemplate(ctx context.Context, cluster *cli.Cluster, template *assayv1alpha1.BenchmarkTemplate) error {
	wanted := template.Spec.DeepCopy()
	switch err := cluster.Create(ctx, template); {
	case err == nil:
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create BenchmarkTemplate %s/%s: %w", template.Namespace, template.Name, err)
	}
	var existing assayv1alpha1.BenchmarkTemplate
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(template), &existing); err != nil {
		return fmt.Errorf("read BenchmarkTemplate %s/%s: %w", template.Namespace, template.Name, err)
	}
	// The API server has set the defaults of the stored object.
	experiment.DefaultTemplate(wanted)
	experiment.DefaultTemplate(&existing.Spec)
	if !equality.Semantic.DeepEqual(*wanted, existing.Spec) {
		return cli.UsageError(fmt.Errorf("BenchmarkTemplate %s/%s exists and differs from the file; update it with kubectl apply, or "+
			"rename the one in the file", template.Namespace, template.Name))
	}
	return nil
}

// templateTime is the timeout for reading a template from a cluster.
const templateTime = 10 * time.Second

// templateOnCluster reads the template of a run from the cluster, for commands that also work without one.
func templateOnCluster(ctx context.Context, flags *genericclioptions.ConfigFlags,
	run *assayv1alpha1.BenchmarkRun) (*assayv1alpha1.BenchmarkTemplateSpec, error) {
	cluster, err := cli.Connect(flags)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, templateTime)
	defer cancel()
	namespace := run.Namespace
	if namespace == "" || *flags.Namespace != "" {
		namespace = cluster.Namespace
	}
	var existing assayv1alpha1.BenchmarkTemplate
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: namespace, Name: run.Spec.TemplateRef.Name}, &existing); err != nil {
		return nil, err
	}
	return &existing.Spec, nil
}
