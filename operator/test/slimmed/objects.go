package slimmed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/randfill"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/lease"
)

// Namespace is the namespace of the objects, and LeaseNamespace that of the leases.
const Namespace, LeaseNamespace = "lab", "assay-system"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Cluster returns a client of a few objects of every kind that the operator reads from its caches, with random values in every field.
func Cluster(seed uint64) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, assayv1alpha1.AddToScheme, argo.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	objects, err := objects(seed)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), err
}

func objects(seed uint64) ([]client.Object, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	filler := fillerOf(random)
	var out []client.Object
	var runs []*assayv1alpha1.BenchmarkRun
	for i := range 4 {
		run := &assayv1alpha1.BenchmarkRun{}
		filler.Fill(&run.Spec)
		filler.Fill(&run.Status)
		if run.Spec.TemplateRef == nil {
			run.Spec.TemplateRef = &assayv1alpha1.TemplateReference{}
		}
		run.Spec.Template, run.Spec.TemplateRef.Name = nil, fmt.Sprintf("template-%d", i%2)
		experiment.DefaultRun(&run.Spec) // As the API server does.
		run.Status.Phase = pick(random, "", assayv1alpha1.PhasePending, assayv1alpha1.PhaseRunning, assayv1alpha1.PhaseSucceeded)
		run.Status.Conditions = []metav1.Condition{{
			Type:   pick(random, assayv1alpha1.ConditionProgressing, assayv1alpha1.ConditionComplete, assayv1alpha1.ConditionFailed),
			Status: pick(random, metav1.ConditionTrue, metav1.ConditionFalse), Reason: "Because", Message: "so",
		}}
		if random.IntN(2) == 0 {
			run.Status.CompletionTime, run.Status.Experiment = nil, ""
		}
		run.ObjectMeta = metaOf(random, fmt.Sprintf("run-%d", i))
		runs, out = append(runs, run), append(out, run)
	}
	for i := range 3 {
		node := &corev1.Node{}
		filler.Fill(&node.Spec)
		filler.Fill(&node.Status)
		node.ObjectMeta = metaOf(random, fmt.Sprintf("node-%d", i))
		node.Namespace = ""
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: pick(random, corev1.ConditionTrue, corev1.ConditionFalse), LastTransitionTime: someTime(random),
		})
		claim := &coordinationv1.Lease{ObjectMeta: metaOf(random, lease.Name(node.Name))}
		claim.Namespace, claim.Labels[executor.ManagedByLabel] = LeaseNamespace, executor.ManagedBy
		whose := pick(random, runs...)
		holder := lease.Holder{Namespace: Namespace, Name: whose.Name, UID: string(whose.UID)}
		if err := (lease.Lease{Node: node.Name, Token: 3}).TakenBy(holder, true, time.Minute, noon).Write(claim); err != nil {
			return nil, err
		}
		out = append(out, node, claim)
	}
	for i := range 2 {
		template := &assayv1alpha1.BenchmarkTemplate{}
		filler.Fill(&template.Spec)
		scheduled := &assayv1alpha1.BenchmarkSchedule{}
		filler.Fill(&scheduled.Spec)
		filler.Fill(&scheduled.Status)
		scheduled.Spec.Series, scheduled.Spec.TimeZone = fmt.Sprintf("series-%d", i), pick(random, "", "Europe/Berlin")
		scheduled.Spec.Schedule = pick(random, "0 3 * * *", "30 4 * * 1-5")
		revision := &assayv1alpha1.BenchmarkRevision{}
		filler.Fill(&revision.Spec)
		revision.Spec.Series = scheduled.Spec.Series
		template.ObjectMeta, scheduled.ObjectMeta, revision.ObjectMeta = metaOf(random, fmt.Sprintf("template-%d", i)),
			metaOf(random, fmt.Sprintf("schedule-%d", i)), metaOf(random, fmt.Sprintf("revision-%d", i))
		out = append(out, template, scheduled, revision)
	}
	for i := range 6 {
		of := pick(random, runs...)
		pod, flow := &corev1.Pod{}, &argo.Workflow{}
		filler.Fill(&pod.Spec)
		filler.Fill(&pod.Status)
		filler.Fill(&flow.Spec)
		filler.Fill(&flow.Status)
		pod.Spec.NodeName = fmt.Sprintf("node-%d", random.IntN(3))
		pod.Status.Phase = pick(random, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: pick(random, corev1.ConditionTrue, corev1.ConditionFalse),
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: someTime(random),
		})
		pod.ObjectMeta, flow.ObjectMeta = metaOf(random, fmt.Sprintf("pod-%d", i)), metaOf(random, fmt.Sprintf("%s-w%03d", of.Name, i))
		for _, object := range []client.Object{pod, flow} {
			named := object.GetLabels()
			named[executor.ManagedByLabel], named[executor.RunLabel], named[executor.RunUIDLabel] = executor.ManagedBy, of.Name, string(of.UID)
			named[executor.WaveLabel] = fmt.Sprint(i)
		}
		pod.Labels[executor.PartLabel] = pick(random, "block", executor.AnalysisPart)
		flow.Annotations[argo.ReplanAnnotation] = fmt.Sprint(i)
		out = append(out, pod, flow)
	}
	return out, nil
}

// metaOf returns metadata with arbitrary fields written by others.
func metaOf(random *rand.Rand, name string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: someTime(random),
		Labels: map[string]string{"example.com/of": word(random)}, Annotations: map[string]string{"example.com/of": word(random)},
		Finalizers: []string{"example.com/wait"},
		OwnerReferences: []metav1.OwnerReference{
			{Kind: "X", Name: word(random)}, {Kind: "Workflow", Name: word(random), Controller: ptr.To(true)},
		},
	}
	if random.IntN(4) == 0 {
		out.DeletionTimestamp = ptr.To(someTime(random))
	}
	return out
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

func word(random *rand.Rand) string {
	return strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(3))
}

func someTime(random *rand.Rand) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(random.IntN(100_000)) * time.Second))
}

// fillerOf returns a filler whose values are unchanged by the API server's encoding.
func fillerOf(random *rand.Rand) *randfill.Filler {
	return randfill.NewWithSeed(random.Int64()).NilChance(0.2).NumElements(1, 2).MaxDepth(12).Funcs(
		func(text *string, _ randfill.Continue) { *text = word(random) },
		func(number *int32, _ randfill.Continue) { *number = random.Int32N(9) },
		func(number *int64, _ randfill.Continue) { *number = random.Int64N(9) },
		func(at *metav1.Time, _ randfill.Continue) { *at = someTime(random) },
		func(at *metav1.MicroTime, _ randfill.Continue) { *at = metav1.NewMicroTime(someTime(random).Time) },
		func(long *metav1.Duration, _ randfill.Continue) {
			long.Duration = time.Duration(random.IntN(900)) * time.Second
		},
		func(much *resource.Quantity, _ randfill.Continue) {
			*much = *resource.NewMilliQuantity(random.Int64N(9000), resource.DecimalSI)
		},
		func(*runtime.RawExtension, randfill.Continue) {},
	)
}
