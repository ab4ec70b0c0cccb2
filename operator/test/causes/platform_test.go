package causes

import (
	"crypto/x509"
	"errors"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/store"
)

// platformWay keeps a run from measuring by something beside its program. Edit changes the run before it is created, before the operator
// before it sees the run, and while what happens once the first wave runs.
type platformWay struct {
	kind, name string
	edit       func(*assayv1alpha1.BenchmarkRunSpec)
	before     func(*operated)
	while      func(*operated)
	says       string
}

func platformWays() []platformWay {
	limits := func(l policy.Limits) func(*operated) {
		return func(o *operated) { o.settings.Policy = &policy.Policy{Default: l} }
	}
	away := func(err error) func(*operated) { return func(o *operated) { o.away = err } }
	answers := func(code string, status int) func(*operated) {
		return away(minio.ErrorResponse{Code: code, StatusCode: status, Message: "refused"})
	}
	refused := func(err error) func(*operated) { return func(o *operated) { o.refused = err } }
	forbidden := func(why string) func(*operated) {
		return refused(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "scan", errors.New(why)))
	}
	waits := func(reason, message string) func(*operated) {
		return func(o *operated) {
			o.pod(func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "assay.dev/simulated:0.1.0",
					State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
			})
		}
	}
	ended := func(reason, message string) func(*operated) {
		return func(o *operated) {
			o.pod(func(pod *corev1.Pod) {
				pod.Status.Phase = corev1.PodRunning
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
					State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: reason, Message: message}}}}
			})
		}
	}
	fails := func(reason, message string) func(*operated) {
		return func(o *operated) {
			o.pod(func(pod *corev1.Pod) {
				pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
			})
		}
	}
	nodes := func(change func(*corev1.Node)) func(*operated) {
		return func(o *operated) {
			found := node("node-a", nil)
			change(found)
			found.ResourceVersion = ""
			status := found.Status
			if err := o.api.Update(o.t.Context(), found); err != nil {
				o.t.Fatal(err)
			}
			found.Status = status
			if err := o.api.Status().Update(o.t.Context(), found); err != nil {
				o.t.Fatal(err)
			}
		}
	}
	return []platformWay{
		{kind: "store", name: "connection refused", while: away(syscall.ECONNREFUSED), says: "start the store, or correct the port"},
		{kind: "store", name: "wrong secret key", while: answers("SignatureDoesNotMatch", 403), says: "correct the secret key"},
		{kind: "store", name: "bucket missing", before: answers("NoSuchBucket", 404), says: "create the bucket"},
		{kind: "store", name: "access denied", before: answers("AccessDenied", 403), says: "allow these credentials"},
		{kind: "store", name: "unknown authority", before: away(x509.UnknownAuthorityError{}), says: "certificate of the authority"},
		{kind: "store", name: "limit of the namespace", before: func(o *operated) {
			limits(policy.Limits{MaxStored: ptr.To(resource.MustParse("1Gi"))})(o)
			o.observer.Stored = func(string) (store.Sizes, bool) { return store.Sizes{Bytes: 2 << 30}, true }
		}, says: "2Gi of 1Gi"},
		{kind: "policy", name: "too many CPUs", before: limits(policy.Limits{MaxCPUs: ptr.To[int32](0)}), says: "spec.placement.cpus is 1"},
		{kind: "policy", name: "budget", before: limits(policy.Limits{MaxTrials: ptr.To[int32](3)}), says: "may have at most 3"},
		{kind: "policy", name: "runs at a time", before: limits(policy.Limits{MaxRuns: ptr.To[int32](2)}), says: "the administrator allows 2 at a time"},
		{kind: "policy", name: "waiting runs", before: limits(policy.Limits{MaxWaiting: ptr.To[int32](0)}), says: "the administrator allows 0"},
		{kind: "policy", name: "nodes", before: func(o *operated) { o.settings.Policy = &policy.Policy{NodeLabel: "bench"} }, says: "has no label bench"},
		{kind: "admission", name: "template missing", edit: func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.TemplateRef.Name = "simulatd" },
			says: "did you mean simulated?"},
		{kind: "admission", name: "experiment without meaning", edit: func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Gates[0].Metric = "tim"
		}, says: "did you mean time?"},
		{kind: "admission", name: "quota", before: forbidden("exceeded quota: compute, requested: cpu=1, used: cpu=8, limited: cpu=8"),
			says: "exceeded quota: compute"},
		{kind: "admission", name: "pod security", before: forbidden(`violates PodSecurity "restricted:latest": seccompProfile`),
			says: `violates PodSecurity`},
		{kind: "admission", name: "policy of the cluster", before: forbidden("ValidatingAdmissionPolicy 'images' denied request: registry not allowed"),
			says: "registry not allowed"},
		{kind: "admission", name: "kubelet", while: fails("UnexpectedAdmissionError", "Allocate failed due to not enough cpus available"),
			says: "not enough cpus available"},
		{kind: "admission", name: "engine missing", before: func(o *operated) {
			o.engine.SetState(plan.EngineState{Problem: assayv1alpha1.ReasonEngineMissing, Message: "the cluster has no Argo Workflows"})
		}, says: "no Argo Workflows"},
		{kind: "image", name: "not pulled", while: waits("ImagePullBackOff", "back-off"), says: "cannot be pulled"},
		{kind: "image", name: "name", while: waits("InvalidImageName", "bad"), says: "the name is not valid"},
		{kind: "image", name: "user", while: waits("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
			says: "image will run as root"},
		{kind: "rights", name: "secret missing", while: waits("CreateContainerConfigError", `secret "keys" not found`), says: "not found"},
		{kind: "memory", name: "limit of the container", while: ended("OOMKilled", ""), says: "lack of memory (OOMKilled)"},
		{kind: "disk", name: "evicted", while: fails("Evicted", "The node was low on resource: ephemeral-storage."),
			says: "low on resource: ephemeral-storage"},
		{kind: "program", name: "runtime cannot start", while: ended("StartError", "exec: /runner: no such file or directory"),
			says: "/runner: no such file"},
		{kind: "time", name: "deadline of the pod", while: fails("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
			says: "longer than the specified deadline"},
		{kind: "node", name: "selector", edit: func(spec *assayv1alpha1.BenchmarkRunSpec) {
			spec.Placement.NodeSelector = map[string]string{"disk": "nvme"}
		}, says: "matches none of 1 nodes"},
		{kind: "node", name: "too small", edit: func(spec *assayv1alpha1.BenchmarkRunSpec) { spec.Placement.CPUs = 8 }, says: "node-a has 4 of cpu"},
		{kind: "node", name: "cordoned", before: nodes(func(n *corev1.Node) { n.Spec.Unschedulable = true }), says: "is cordoned"},
		{kind: "node", name: "lost", while: func(o *operated) {
			o.pod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
			nodes(func(n *corev1.Node) {
				n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(o.clock.Now())
			})(o)
		}, says: "is not ready since"},
	}
}

func TestPlatform_CauseIsToldWithinAMinute(t *testing.T) {
	for _, of := range platformWays() {
		t.Run(of.kind+", "+of.name, func(t *testing.T) {
			t.Parallel()
			o := operate(t, of.edit, nil)
			if of.before != nil {
				of.before(o)
			}
			if of.while != nil {
				o.starts()
				of.while(o)
			}
			after, missing := o.told(of.says)
			counted.add(t, of.kind, after, missing)
			if len(missing) > 0 {
				t.Errorf("after %s %v lack %q: reason %q, conditions %+v", after, missing, of.says, o.run.Status.Reason, o.run.Status.Conditions)
			}
		})
	}
}

// A name that differs by a letter is answered with the right one in every view, also in the narrow ones.
func TestPlatform_MisspeltNameIsAnsweredWithTheNearest(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRunSpec)
		says string
	}{
		"the template":            {func(s *assayv1alpha1.BenchmarkRunSpec) { s.TemplateRef.Name = "simulate" }, "simulated"},
		"the metric of a gate":    {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Gates[0].Metric = "process.wallTme" }, "process.wallTime"},
		"the candidate of a gate": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Gates[0].Candidate = "nw" }, "new"},
		"the parameter of an arm": {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Arms[1].Parameters["versio"] = "x" }, "version"},
		"a parameter of the run":  {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Parameters = assayv1alpha1.ParameterValues{"sizes": "1"} }, "size"},
		"an axis":                 {func(s *assayv1alpha1.BenchmarkRunSpec) { s.Sweep = axis("sise") }, "size"},
		"an axis of excluded points": {func(s *assayv1alpha1.BenchmarkRunSpec) {
			s.Sweep = axis("size")
			s.Sweep.Exclude = []assayv1alpha1.ParameterValues{{"siz": "1"}}
		}, "size"},
	} {
		t.Run(name, func(t *testing.T) {
			o := operate(t, c.edit, nil)
			if _, missing := o.told("did you mean " + c.says + "?"); len(missing) > 0 {
				t.Errorf("%v lack %q: %s", missing, c.says, o.run.Status.Reason)
			}
		})
	}
}

func axis(name string) *assayv1alpha1.Sweep {
	return &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: name, Values: []string{"1", "2"}}}}
}
