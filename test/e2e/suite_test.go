// Package e2e tests Assay on a real cluster: install, run, kill things, uninstall, nothing left. `make e2e` brings the
// cluster up, installs the chart and runs it.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

const (
	system    = "assay-system"
	namespace = "default"
)

var (
	root = filepath.Join("..", "..")
	kube client.Client
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.UseDevMode(true)))
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(assayv1alpha1.AddToScheme(scheme))
	config, err := ctrl.GetConfig()
	must(err)
	kube, err = client.New(config, client.Options{Scheme: scheme})
	must(err)
	os.Exit(m.Run())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// long marks a test that CI leaves to make nightly: it takes minutes, and a shorter test covers its path through the cluster.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: make nightly runs this test")
	}
}

// command runs a program from the root of the tree and returns its output; a failure ends the test and prints it.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// eventually waits for a condition. At the deadline it prints the last observation and the state of the cluster.
func eventually(t *testing.T, limit time.Duration, what string, check func() (done bool, saw string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	saw := ""
	for {
		var done bool
		if done, saw = check(); done {
			return
		}
		if time.Now().After(deadline) {
			dump(t)
			t.Fatalf("after %s still not: %s; last seen: %s", limit, what, saw)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// dump prints the objects and logs that explain most failures.
func dump(t *testing.T) {
	for _, args := range [][]string{
		{"get", "benchmarkruns,workflows,pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", system, "logs", "deploy/assay-operator", "--tail=60"},
		{"-n", system, "logs", "deploy/assay-argo-controller", "--tail=40"},
		{"get", "benchmarkruns", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{\"\\n\"}{end}{end}"},
		{"describe", "pods", "-n", namespace},
	} {
		out, _ := try("kubectl", args...)
		if len(out) > 12000 {
			out = out[len(out)-12000:]
		}
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
}

func getRun(t *testing.T, name string) *assayv1alpha1.BenchmarkRun {
	t.Helper()
	var run assayv1alpha1.BenchmarkRun
	if err := kube.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, &run); err != nil {
		t.Fatalf("BenchmarkRun %s: %v", name, err)
	}
	return &run
}

// apply replaces a run of the same name and removes it when the test ends.
func apply(t *testing.T, run *assayv1alpha1.BenchmarkRun) {
	t.Helper()
	run.Namespace = namespace
	remove(t, run.Name)
	if err := kube.Create(context.Background(), run); err != nil {
		t.Fatalf("create BenchmarkRun %s: %v", run.Name, err)
	}
	t.Cleanup(func() { remove(t, run.Name) })
}

// podsEnd is how long the pods of a block may take to end. A process does not hear the signal that it gets while it starts, and its pod
// then takes its whole grace period of two minutes: with a tenth of a CPU, Argo's program starts for up to two seconds.
const podsEnd = 3 * time.Minute

// remove deletes a run and waits until it is gone, finalizer and all.
func remove(t *testing.T, name string) {
	t.Helper()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	_ = kube.Delete(context.Background(), &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	eventually(t, podsEnd, "run "+name+" is gone", func() (bool, string) {
		var run assayv1alpha1.BenchmarkRun
		err := kube.Get(context.Background(), key, &run)
		return apierrors.IsNotFound(err), fmt.Sprint(err, run.Finalizers)
	})
}

func condition(run *assayv1alpha1.BenchmarkRun, kind string) string {
	found := meta.FindStatusCondition(run.Status.Conditions, kind)
	if found == nil {
		return kind + " absent"
	}
	return fmt.Sprintf("%s=%s %s: %s", kind, found.Status, found.Reason, found.Message)
}

func conditions(run *assayv1alpha1.BenchmarkRun) string {
	var lines []string
	for _, c := range run.Status.Conditions {
		lines = append(lines, condition(run, c.Type))
	}
	return strings.Join(lines, "; ") + "; " + run.Status.Progress
}

// untilCondition waits until a condition has the status and a reason or message with the text.
func untilCondition(t *testing.T, name, kind string, status metav1.ConditionStatus, text string,
	limit time.Duration) *assayv1alpha1.BenchmarkRun {
	t.Helper()
	var run *assayv1alpha1.BenchmarkRun
	eventually(t, limit, fmt.Sprintf("%s of %s is %s and says %q", kind, name, status, text), func() (bool, string) {
		run = getRun(t, name)
		found := meta.FindStatusCondition(run.Status.Conditions, kind)
		return found != nil && found.Status == status && strings.Contains(found.Reason+": "+found.Message, text), conditions(run)
	})
	return run
}

// untilComplete waits for the end of a run and fails when it ends as Failed.
func untilComplete(t *testing.T, name string, limit time.Duration) *assayv1alpha1.BenchmarkRun {
	t.Helper()
	var run *assayv1alpha1.BenchmarkRun
	eventually(t, limit, "run "+name+" is complete", func() (bool, string) {
		run = getRun(t, name)
		if meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionFailed) {
			dump(t)
			t.Fatalf("run %s failed: %s", name, conditions(run))
		}
		return meta.IsStatusConditionTrue(run.Status.Conditions, assayv1alpha1.ConditionComplete), conditions(run)
	})
	return run
}

// untilEnded waits until the run has ended in any way.
func untilEnded(t *testing.T, name string, limit time.Duration) *assayv1alpha1.BenchmarkRun {
	t.Helper()
	var run *assayv1alpha1.BenchmarkRun
	eventually(t, limit, "run "+name+" has ended", func() (bool, string) {
		run = getRun(t, name)
		return run.Status.CompletionTime != nil, conditions(run)
	})
	return run
}

// results is the run's analysis, read from the ledger by the command a user would type.
func results(t *testing.T, name string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(command(t, "bin/assay", "results", name, "-n", namespace, "-o", "json")), &out); err != nil {
		t.Fatalf("analysis of %s: %v", name, err)
	}
	return out
}

// attempts are all attempts of the run in its ledger.
func attempts(t *testing.T, name string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(command(t, "bin/assay", "results", name, "-n", namespace, "-o", "attempts")) {
		var attempt map[string]any
		if err := json.Unmarshal([]byte(line), &attempt); err != nil {
			t.Fatalf("attempt of %s: %v\n%s", name, err, line)
		}
		out = append(out, attempt)
	}
	return out
}

func number(t *testing.T, object map[string]any, path ...string) int {
	t.Helper()
	var value any = object
	for _, key := range path {
		value, _ = value.(map[string]any)[key]
	}
	found, ok := value.(float64)
	if !ok {
		t.Fatalf("%v is %v, want a number", path, value)
	}
	return int(found)
}

func podsOf(t *testing.T, run string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(context.Background(), &pods, client.InNamespace(namespace), client.MatchingLabels{"assay.dev/run": run}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}
