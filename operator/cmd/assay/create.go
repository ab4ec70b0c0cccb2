package main

import (
	"cmp"
	"context"
	"errors"
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
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

// nameLength is how long a run's name may be; generatedSuffix is what the API server adds to a prefix.
const (
	nameLength      = 52
	generatedSuffix = 5
)

// creation is a run that shall be created from a file.
type creation struct {
	file     string
	name     string
	generate bool
}

func (c *creation) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&c.file, "filename", "f", "",
		"file with one BenchmarkRun, and BenchmarkTemplates if it needs any; - is standard input")
	command.Flags().StringVar(&c.name, "name", "", "name of the run, in place of the one in the file")
	command.Flags().BoolVar(&c.generate, "generate-name", false,
		"add a random suffix to the name, so that the file can be run any number of times")
	_ = command.RegisterFlagCompletionFunc("filename", completeManifests)
}

// read reads the file and names its run, which is the only one.
func (c *creation) read() (*manifest.Set, error) {
	set, err := readOne(c.file)
	if err != nil {
		return nil, err
	}
	run := &set.Runs[0]
	if c.name != "" {
		run.Name, run.GenerateName = c.name, ""
	}
	if c.generate {
		run.GenerateName = cmp.Or(run.GenerateName, run.Name+"-")
		run.Name = ""
		// What is added to a dot would begin with a hyphen, which no part of a name does.
		if prefix := strings.TrimRight(run.GenerateName[:min(len(run.GenerateName), nameLength-generatedSuffix-1)], "-."); prefix != "" {
			run.GenerateName = prefix + "-"
		}
	}
	if run.Name == "" && run.GenerateName == "" {
		return nil, usageError(fmt.Errorf("%s: metadata.name is missing: write one, or give one with --name", c.file))
	}
	return set, nil
}

// create creates the run, and the templates in its file that are not there yet.
func (c *creation) create(ctx context.Context, cluster *cluster, explicitNamespace string) (*assayv1alpha1.BenchmarkRun, error) {
	set, err := c.read()
	if err != nil {
		return nil, err
	}
	run, templates := &set.Runs[0], set.Templates
	switch {
	case run.Namespace == "":
		run.Namespace = cluster.namespace
	case explicitNamespace != "" && explicitNamespace != run.Namespace:
		return nil, usageError(fmt.Errorf("%s: metadata.namespace is %q and --namespace is %q: leave one out", c.file, run.Namespace, explicitNamespace))
	default:
		cluster.namespace = run.Namespace
	}
	if err := checkFrozen(ctx, cluster, set); err != nil {
		return nil, usageError(set.Explain(run, err))
	}
	for i := range templates {
		templates[i].Namespace = run.Namespace
		if err := ensureTemplate(ctx, cluster, &templates[i]); err != nil {
			return nil, err
		}
	}
	switch err := cluster.Create(ctx, run); {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("BenchmarkRun %s/%s exists already, and what a run measured never changes: delete it (its ledger stays), or add "+
			"--generate-name", run.Namespace, run.Name)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil, usageError(fmt.Errorf("%s: %w", c.file, err))
	case err != nil:
		return nil, fmt.Errorf("create BenchmarkRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	run.SetGroupVersionKind(runKind)
	return run, nil
}

// checkFrozen finds before anything is created what the operator would refuse, if the template can be read.
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

// missingTemplate is nil for somebody who may create runs and not read templates: the operator will report it.
func missingTemplate(err error, run *assayv1alpha1.BenchmarkRun) error {
	if apierrors.IsNotFound(err) {
		return &experiment.Invalid{Problems: []experiment.Problem{{Field: "spec.templateRef.name",
			Message: fmt.Sprintf("no BenchmarkTemplate %q in "+
				"namespace %q: kubectl get benchmarktemplates -n %s lists those there are", run.Spec.TemplateRef.Name, run.Namespace, run.Namespace)}}}
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("read BenchmarkTemplate %s/%s: %w", run.Namespace, run.Spec.TemplateRef.Name, err)
}

// ensureTemplate creates a template. One that is there and differs is left alone: other runs use it.
func ensureTemplate(ctx context.Context, cluster *cluster, template *assayv1alpha1.BenchmarkTemplate) error {
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
	// The API server fills in what the file leaves out.
	experiment.DefaultTemplate(wanted)
	experiment.DefaultTemplate(&existing.Spec)
	if !equality.Semantic.DeepEqual(*wanted, existing.Spec) {
		return usageError(fmt.Errorf("BenchmarkTemplate %s/%s exists and differs from the one in the file: kubectl apply the file to "+
			"change it, or give it another name", template.Namespace, template.Name))
	}
	return nil
}

// readOne reads a file with one run, and the templates of other files.
func readOne(file string, templates ...string) (*manifest.Set, error) {
	set, err := manifest.Read(append([]string{file}, templates...)...)
	if err == nil && len(set.Runs) != 1 {
		err = fmt.Errorf("%s holds %d BenchmarkRuns: it must hold one", file, len(set.Runs))
	}
	if err != nil {
		return nil, usageError(err)
	}
	return set, nil
}

// manifestOf is the file that a command was given, as its argument or with --filename.
func manifestOf(args []string, filename string) (string, error) {
	switch {
	case len(args) == 1 && filename != "":
		return "", usageError(fmt.Errorf("the file is named twice, %s and --filename %s: leave one out", args[0], filename))
	case len(args) == 1:
		return args[0], nil
	case filename == "":
		return "", usageError(errors.New("no file is named: write it after the command, or with -f; - is standard input"))
	}
	return filename, nil
}

// templateTime bounds looking for a template on a cluster that may not answer.
const templateTime = 10 * time.Second

// templateOnCluster reads the template that a run refers to, for commands that work without a cluster too.
func templateOnCluster(ctx context.Context, flags *genericclioptions.ConfigFlags,
	run *assayv1alpha1.BenchmarkRun) (*assayv1alpha1.BenchmarkTemplateSpec, error) {
	cluster, err := connect(flags)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, templateTime)
	defer cancel()
	namespace := run.Namespace
	if namespace == "" || *flags.Namespace != "" {
		namespace = cluster.namespace
	}
	var existing assayv1alpha1.BenchmarkTemplate
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: namespace, Name: run.Spec.TemplateRef.Name}, &existing); err != nil {
		return nil, err
	}
	return &existing.Spec, nil
}
