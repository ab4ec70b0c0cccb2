package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

const (
	system    = "assay-system"
	namespace = "default"
	// runPrefix begins the names of the suite's runs, and suiteLabel says of which suite each is.
	runPrefix, suiteLabel = "chaos-", "chaos/suite"
)

// errNoVictim means that there is nothing to hurt at the moment.
var errNoVictim = errors.New("nothing there to hurt")

// world is the cluster under test.
type world struct {
	kube client.Client
	node node
	// suite is the name prefix of this suite's runs, since runs of an earlier suite may still exist.
	suite string
}

// wait polls until a condition holds.
func wait(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(300 * time.Millisecond)
	defer ticker.Stop()
	for {
		attempt, done := context.WithTimeout(ctx, 5*time.Second)
		err := check(attempt)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s still not: %s: %w", limit, what, err)
		case <-ticker.C:
		}
	}
}

// pod is a running pod of a component of the release.
func (w *world) pod(ctx context.Context, namespace, component string, draw uint64) (*corev1.Pod, error) {
	return w.pick(ctx, draw, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": component})
}

// block is the pod of a block that runs its trials. It is waited for, as runs come and go.
func (w *world) block(ctx context.Context, draw uint64) (pod *corev1.Pod, err error) {
	err = wait(ctx, time.Minute, "a block runs", func(ctx context.Context) error {
		pod, err = w.pick(ctx, draw, client.InNamespace(namespace), client.MatchingLabels{"assay.dev/part": "block"})
		return err
	})
	return pod, err
}

func (w *world) pick(ctx context.Context, draw uint64, options ...client.ListOption) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := w.kube.List(ctx, &pods, options...); err != nil {
		return nil, err
	}
	var running []*corev1.Pod
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		return nil, errNoVictim
	}
	return running[draw%uint64(len(running))], nil
}

// container is the id of a pod's container, sidecars included; an empty name is the first one.
func container(pod *corev1.Pod, name string) string {
	for _, status := range append(append([]corev1.ContainerStatus{}, pod.Status.ContainerStatuses...), pod.Status.InitContainerStatuses...) {
		if (name == "" || status.Name == name) && status.State.Running != nil {
			return status.ContainerID
		}
	}
	return ""
}

// repair restarts dead components of the cluster.
func (w *world) repair(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, w.node.tool, "up").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s up: %w\n%s", w.node.tool, err, out)
	}
	return nil
}

// ready waits until the platform's own pods serve.
func (w *world) ready(ctx context.Context) error {
	return wait(ctx, 3*time.Minute, "operator, Argo and the store are ready", func(ctx context.Context) error {
		for _, component := range []string{"operator", "argo-controller", "minio"} {
			var pods corev1.PodList
			if err := w.kube.List(ctx, &pods, client.InNamespace(system),
				client.MatchingLabels{"app.kubernetes.io/component": component}); err != nil {
				return err
			}
			serves := false
			for _, pod := range pods.Items {
				for _, condition := range pod.Status.Conditions {
					serves = serves || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
				}
			}
			if !serves {
				return fmt.Errorf("%s is not ready", component)
			}
		}
		return nil
	})
}

// ownStore refuses a store whose volume cannot be filled without filling the machine's disk.
func (w *world) ownStore(ctx context.Context) error {
	pod, err := w.pod(ctx, system, "minio", 0)
	if err != nil {
		return err
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == "data" && volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory {
			return nil
		}
	}
	return fmt.Errorf("pod %s does not keep its data in memory, and a fault fills the store: install the chart with "+
		"objectStore.persistence.enabled=false, .medium=Memory and .size=256Mi, or leave that fault out by FAULTS", pod.Name)
}

// smallRun takes seconds a block and wants its node for itself, so that any two blocks at once are a mistake.
func smallRun(suite string, number int) *assayv1alpha1.BenchmarkRun {
	return &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%04d", suite, number), Labels: map[string]string{suiteLabel: suite},
		},
		Spec: assayv1alpha1.BenchmarkRunSpec{
			TemplateRef: &assayv1alpha1.TemplateReference{Name: "pir-scan"},
			Parameters:  assayv1alpha1.ParameterValues{"rows": "16384", "iterations": "20", "warmupIterations": "1", "batchSize": "8"},
			Arms: []assayv1alpha1.Arm{
				{Name: "loop", Baseline: true, Parameters: assayv1alpha1.ParameterValues{"strategy": "loop"}},
				{Name: "fused-m4r", Parameters: assayv1alpha1.ParameterValues{"strategy": "fused-m4r"}},
			},
			Design:      assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 3, Max: 3}},
			Retry:       assayv1alpha1.Retry{Limit: ptr.To[int32](10)},
			Placement:   assayv1alpha1.Placement{Exclusive: assayv1alpha1.ExclusiveNode},
			Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
			Gates:       []assayv1alpha1.Gate{{Name: "gain", Metric: "throughput", Op: assayv1alpha1.RatioAtLeast, Bound: "1.5"}},
		},
	}
}

// ended returns the final condition of a run, or "".
func ended(run *assayv1alpha1.BenchmarkRun) string {
	for _, condition := range run.Status.Conditions {
		if (condition.Type == assayv1alpha1.ConditionFailed || condition.Type == assayv1alpha1.ConditionComplete) &&
			condition.Status == metav1.ConditionTrue {
			return fmt.Sprintf("%s: %s: %s", condition.Type, condition.Reason, condition.Message)
		}
	}
	return ""
}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, values...)...)
}
