package chart

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// everyLimit are values of a namespace with quotas and default requests, as docs/tasks/share-a-cluster.md shows them.
const everyLimit = `{runNamespaces: [team-a], runs: {
  quota: {count/benchmarkruns.assay.dev: 5000, requests.cpu: "16", requests.memory: 64Gi, limits.cpu: "32", limits.memory: 64Gi},
  limitRange: [{type: Container, default: {cpu: "1", memory: 512Mi}, defaultRequest: {cpu: 100m, memory: 128Mi}, max: {cpu: "8", memory: 32Gi}}]}}`

func TestProtections_DisabledLimitsAreInTheNotes(t *testing.T) {
	for name, tc := range map[string]struct {
		values string
		says   []string
	}{
		"the defaults":           {`{}`, nil},
		"a higher limit":         {`{policy: {default: {maxRuns: 200, maxWallClock: 100h}}}`, nil},
		"no limit of two":        {`{policy: {default: {maxRuns: null, maxStored: null}}}`, []string{"policy.default.maxRuns", "policy.default.maxStored"}},
		"no limits":              {`{policy: {default: null}}`, []string{"maxWallClock", "maxRuns", "maxWaiting", "maxTrials", "maxMemory", "maxStored"}},
		"a limit of zero is one": {`{policy: {default: {maxRuns: 0}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			notes := render(t, tc.values).notes
			if strings.Contains(notes, "protections are off") != (tc.says != nil) {
				t.Errorf("the notes are\n%s", notes)
			}
			for _, field := range []string{"maxWallClock", "maxRuns", "maxWaiting", "maxTrials", "maxMemory", "maxStored"} {
				wanted := false
				for _, text := range tc.says {
					wanted = wanted || strings.Contains(text, field)
				}
				if strings.Contains(notes, "policy.default."+field) != wanted {
					t.Errorf("%s is named: %v, want %v", field, !wanted, wanted)
				}
			}
		})
	}
}

func TestProtections_QuotasAreInEveryRunNamespace(t *testing.T) {
	chart := render(t, strings.Replace(everyLimit, "[team-a]", "[team-a, team-b]", 1))
	for _, namespace := range []string{"team-a", "team-b"} {
		quota := into[corev1.ResourceQuota](t, chart.find(t, "ResourceQuota/"+namespace+"/assay-runs"))
		if limit := quota.Spec.Hard["count/benchmarkruns.assay.dev"]; limit.Value() != 5000 {
			t.Errorf("%s: limits are %v", namespace, quota.Spec.Hard)
		}
		limits := into[corev1.LimitRange](t, chart.find(t, "LimitRange/"+namespace+"/assay-runs"))
		if len(limits.Spec.Limits) != 1 || limits.Spec.Limits[0].Type != corev1.LimitTypeContainer {
			t.Errorf("%s: limits are %v", namespace, limits.Spec.Limits)
		}
	}
}

// Exclusive CPUs need a pod of the class Guaranteed whose container requests whole CPUs. Default requests of a namespace must not change
// that, and every container of a run must be admitted.
func TestProtections_BlockStaysGuaranteedUnderQuotas(t *testing.T) {
	c := startCluster(t)
	c.createNamespace(t, "team-a")
	c.install(t, everyLimit)
	var account corev1.ServiceAccount
	account.Namespace, account.Name = "team-a", "default"
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), &account)); err != nil {
		t.Fatal(err)
	}
	// No controller of quotas runs here, without which the API server admits no pod.
	var quota corev1.ResourceQuota
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "assay-runs"}, &quota); err != nil {
		t.Fatal(err)
	}
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{}
	for name := range quota.Spec.Hard {
		quota.Status.Used[name] = resource.MustParse("0")
	}
	if err := c.Status().Update(t.Context(), &quota); err != nil {
		t.Fatal(err)
	}
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	same := func(name, cpu, memory string) corev1.Container {
		return corev1.Container{Name: name, Image: name,
			Resources: corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(cpu, memory)}}
	}
	// As operator/internal/executor/argo makes them.
	block := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "block"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{same("init", "2", "1Gi")},
		Containers:     []corev1.Container{same("main", "2", "1Gi"), same("wait", "50m", "128Mi"), same("keeper", "50m", "128Mi")},
	}}
	analysis := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "analysis"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: list("100m", "128Mi"),
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}}}},
	}}
	for pod, class := range map[*corev1.Pod]corev1.PodQOSClass{block: corev1.PodQOSGuaranteed, analysis: corev1.PodQOSBurstable} {
		if err := c.Create(t.Context(), pod); err != nil {
			t.Errorf("pod %s: %v", pod.Name, err)
			continue
		}
		if pod.Status.QOSClass != class {
			t.Errorf("pod %s is %s, want %s: %+v", pod.Name, pod.Status.QOSClass, class, pod.Spec.Containers)
		}
	}
	if cpu := block.Spec.Containers[0].Resources.Requests.Cpu(); cpu.String() != "2" {
		t.Errorf("the block has %s CPUs", cpu)
	}
	large := block.DeepCopy()
	large.ObjectMeta, large.Spec.Containers[0] = metav1.ObjectMeta{Namespace: "team-a", Name: "large"}, same("main", "9", "1Gi")
	if err := c.Create(t.Context(), large); err == nil || !strings.Contains(err.Error(), "maximum cpu usage per Container is 8") {
		t.Errorf("a block above the maximum: %v", err)
	}
}
