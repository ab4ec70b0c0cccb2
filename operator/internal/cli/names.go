package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/suggest"
)

// RunKind is set on printed runs because a typed client leaves apiVersion and kind empty.
var RunKind = assayv1alpha1.GroupVersion.WithKind("BenchmarkRun")

// GetRun reads a run of the namespace. The error for a missing run suggests existing ones.
func GetRun(ctx context.Context, cluster *Cluster, name string) (*assayv1alpha1.BenchmarkRun, error) {
	var run assayv1alpha1.BenchmarkRun
	err := cluster.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, &run)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no BenchmarkRun %q in namespace %q%s", name, cluster.Namespace, similarRuns(ctx, cluster, name))
	}
	if err != nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s: %w", cluster.Namespace, name, err)
	}
	run.SetGroupVersionKind(RunKind)
	return &run, nil
}

// similarRuns returns a suggestion for a missing run: a similar name, or another namespace with a run of this name. It ignores errors,
// because the caller already reports one.
func similarRuns(ctx context.Context, cluster *Cluster, name string) string {
	var here assayv1alpha1.BenchmarkRunList
	if err := cluster.List(ctx, &here, client.InNamespace(cluster.Namespace)); err != nil {
		return ""
	}
	var names []string
	for _, run := range here.Items {
		names = append(names, run.Name)
	}
	if meant := suggest.Meant(name, names); meant != "" {
		return meant
	}
	var everywhere assayv1alpha1.BenchmarkRunList
	if err := cluster.List(ctx, &everywhere); err == nil {
		var namespaces []string
		for _, run := range everywhere.Items {
			if run.Name == name {
				namespaces = append(namespaces, "-n "+run.Namespace)
			}
		}
		if len(namespaces) > 0 {
			return "; it exists with " + joinWords(namespaces)
		}
	}
	return "; list all runs with " + Program + " get -A"
}

// completionTime is the timeout of requests for shell completion.
const completionTime = 3 * time.Second

// CompleteRuns completes names of runs, at most limit arguments; 0 means no limit.
func CompleteRuns(flags *genericclioptions.ConfigFlags, limit int) cobra.CompletionFunc {
	return CompleteFromCluster(flags, limit, runCompletions)
}

// CompleteFromCluster completes arguments with values that known reads from the cluster. named holds the arguments so far.
func CompleteFromCluster(flags *genericclioptions.ConfigFlags, limit int,
	known func(ctx context.Context, cluster *Cluster, named []string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cluster, err := Connect(flags)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		return known(ctx, cluster, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// runCompletions returns the runs of the namespace that are not in named, described by phase and verdict.
func runCompletions(ctx context.Context, cluster *Cluster, named []string) []cobra.Completion {
	var runs assayv1alpha1.BenchmarkRunList
	if err := cluster.List(ctx, &runs, client.InNamespace(cluster.Namespace)); err != nil {
		return nil
	}
	var out []cobra.Completion
	for _, run := range runs.Items {
		if slices.Contains(named, run.Name) {
			continue
		}
		out = append(out, cobra.CompletionWithDesc(run.Name, strings.TrimSpace(string(run.Status.Phase)+" "+string(run.Status.Verdict))))
	}
	return out
}

// CompleteRunsOrFolders completes names of runs, or folders if the word looks like a path.
func CompleteRunsOrFolders(flags *genericclioptions.ConfigFlags, limit int) cobra.CompletionFunc {
	runs := CompleteRuns(flags, limit)
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.ContainsAny(word, "./") {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return runs(cmd, args, word)
	}
}

// NamespaceCompletions returns all namespaces of the cluster.
func NamespaceCompletions(ctx context.Context, cluster *Cluster, _ []string) []cobra.Completion {
	var namespaces corev1.NamespaceList
	if err := cluster.List(ctx, &namespaces); err != nil {
		return nil
	}
	var out []cobra.Completion
	for _, namespace := range namespaces.Items {
		out = append(out, namespace.Name)
	}
	return out
}

// CompleteManifests completes YAML and JSON files.
func CompleteManifests(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}
