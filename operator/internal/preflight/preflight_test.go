package preflight

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// bare is a machine set up for measuring.
func bare() *Survey {
	return &Survey{
		Schema: SurveySchema,
		Environment: record.Environment{
			Hard: map[string]any{
				"architecture": "x86_64", "cgroupVersion": 2.0, "governor": "performance", "turbo": false, "smt": false,
				"transparentHugepages": "madvise", "onlineCpus": 8.0,
			},
			Soft: map[string]any{"hostname": "bare-1", "swapTotalBytes": 0.0, "pressureOf": "cgroup", "memoryAvailableBytes": float64(8 << 30)},
		},
		Isolation: record.Isolation{Level: "ExclusiveCPUs", Reason: "the kernel command line isolates CPU 3"},
		Noise:     record.Noise{StealRatio: ptr.To(0.0), OtherWorkRatio: ptr.To(0.01), PressureCPUSeconds: ptr.To(0.0)},
	}
}

func TestFromSurvey_Findings(t *testing.T) {
	cases := map[string]struct {
		edit  func(*Survey)
		claim Claim
		want  Support
		seen  string
		how   string
	}{
		"exclusive CPUs":              {nil, ExclusiveCPUs, Yes, "isolates CPU 3", ""},
		"CPUs that others may use":    {func(s *Survey) { s.Isolation = record.Isolation{Level: "Shared", Reason: "so may others"} }, ExclusiveCPUs, No, "Shared: so may others", "isolcpus"},
		"unknown CPU sharing":         {func(s *Survey) { s.Isolation.Level = "Unknown" }, ExclusiveCPUs, Unknown, "Unknown", "isolcpus"},
		"a single CPU":                {func(s *Survey) { s.Environment.Hard["onlineCpus"] = 1.0 }, WholeCPUs, No, "1 CPUs", "two CPUs"},
		"the old cgroups":             {func(s *Survey) { s.Environment.Hard["cgroupVersion"] = 1.0 }, CgroupV2, No, "cgroupVersion is 1", "unified"},
		"a governor that saves":       {func(s *Survey) { s.Environment.Hard["governor"] = "powersave" }, FixedGovernor, No, "powersave", "cpupower"},
		"a guest knows no governor":   {func(s *Survey) { delete(s.Environment.Hard, "governor") }, FixedGovernor, Unknown, "does not report governor", "host decides"},
		"turbo is on":                 {func(s *Survey) { s.Environment.Hard["turbo"] = true }, NoTurbo, No, "turbo is true", "no_turbo"},
		"siblings":                    {func(s *Survey) { s.Environment.Hard["smt"] = true }, NoSMT, No, "smt is true", "sibling"},
		"huge pages always":           {func(s *Survey) { s.Environment.Hard["transparentHugepages"] = "always" }, HugepagesOnRequest, No, "always", "madvise"},
		"huge pages never":            {func(s *Survey) { s.Environment.Hard["transparentHugepages"] = "never" }, HugepagesOnRequest, Yes, "never", ""},
		"no pressure readings":        {func(s *Survey) { s.Noise.PressureCPUSeconds = nil }, Pressure, No, "absent", "psi=1"},
		"swap":                        {func(s *Survey) { s.Environment.Soft["swapTotalBytes"] = float64(2 << 30) }, NoSwap, No, "2147483648", "swapoff"},
		"steal time":                  {func(s *Survey) { s.Noise.StealRatio = ptr.To(0.05) }, NoSteal, No, "5.0 %", "dedicated"},
		"other work":                  {func(s *Survey) { s.Noise.OtherWorkRatio = ptr.To(0.4) }, Quiet, No, "40.0 %", "top"},
		"a window that is too short":  {func(s *Survey) { s.Noise.OtherWorkRatio = nil }, Quiet, Unknown, "does not report", "top"},
		"a quiet machine":             {nil, Quiet, Yes, "1.0 %", ""},
		"a claim that does not exist": {nil, Claim("fast"), Unknown, "not checked", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			survey := bare()
			if tc.edit != nil {
				tc.edit(survey)
			}
			machine := FromSurvey(survey)
			assertFinding(t, machine.Finding(tc.claim), tc.want, tc.seen, tc.how)
		})
	}
}

func node(edit func(*corev1.Node)) *corev1.Node {
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a", Labels: map[string]string{"zone": "one"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3800m"), corev1.ResourceMemory: resource.MustParse("8Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:    corev1.NodeSystemInfo{KernelVersion: "6.18.44"},
		},
	}
	if edit != nil {
		edit(out)
	}
	return out
}

func TestFromNode_Findings(t *testing.T) {
	static := &KubeletConfig{CPUManagerPolicy: "static", FailSwapOn: ptr.To(true)}
	label := func(key, value string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels["feature.node.kubernetes.io/"+key] = value }
	}
	cases := map[string]struct {
		edit   func(*corev1.Node)
		config *KubeletConfig
		why    error
		claim  Claim
		want   Support
		seen   string
		how    string
	}{
		"a static CPU manager":               {config: static, claim: ExclusiveCPUs, want: Yes, seen: "static"},
		"the default CPU manager":            {config: &KubeletConfig{CPUManagerPolicy: "none"}, claim: ExclusiveCPUs, want: No, seen: `"none"`, how: "cpu_manager_state"},
		"a kubelet that denies access":       {why: errors.New("nodes/proxy is forbidden"), claim: ExclusiveCPUs, want: Unknown, seen: "forbidden", how: "nodes/proxy"},
		"whole CPUs are rounded down":        {config: static, claim: WholeCPUs, want: Yes, seen: "3 whole of 3800m"},
		"a static manager without CPUs":      {edit: func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("800m") }, config: static, claim: ExclusiveCPUs, want: No, seen: "static", how: "no whole CPU"},
		"part of a CPU is not a whole one":   {edit: func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("800m") }, config: static, claim: WholeCPUs, want: No, seen: "0 whole", how: "larger node"},
		"a node that is ready":               {config: static, claim: Available, want: Yes, seen: "ready"},
		"a node that is not":                 {edit: func(n *corev1.Node) { n.Status.Conditions = nil }, claim: Available, want: No, seen: "not ready", how: "kubectl describe node node-a"},
		"a cordoned node":                    {edit: func(n *corev1.Node) { n.Spec.Unschedulable = true }, claim: Available, want: No, seen: "cordoned", how: "uncordon node-a"},
		"a tainted node":                     {edit: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}} }, claim: Available, want: Unknown, seen: "gpu=yes:NoSchedule", how: "tolerations"},
		"a taint that only prefers":          {edit: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: "PreferNoSchedule"}} }, claim: Available, want: Yes, seen: "ready"},
		"a claim without API data":           {config: static, claim: FixedGovernor, want: Unknown, seen: "node-feature-discovery", how: "environment.require"},
		"a label with the governor":          {edit: label("cpu-pstate.scaling_governor", "performance"), claim: FixedGovernor, want: Yes, seen: "performance"},
		"a label for SMT":                    {edit: label("cpu-hardware_multithreading", "true"), claim: NoSMT, want: No, seen: "true", how: "firmware"},
		"a kubelet that refuses swap":        {config: static, claim: NoSwap, want: Yes, seen: "refuses"},
		"a kubelet that allows swap":         {config: &KubeletConfig{FailSwapOn: ptr.To(false)}, claim: NoSwap, want: Unknown, seen: "with swap", how: "swapTotalBytes"},
		"the noise of a node is not checked": {config: static, claim: Quiet, want: Unknown, seen: "not checked"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			machine := FromNode(node(tc.edit), tc.config, tc.why)
			assertFinding(t, machine.Finding(tc.claim), tc.want, tc.seen, tc.how)
		})
	}
}

func assertFinding(t *testing.T, got Finding, want Support, seen, how string) {
	t.Helper()
	if got.Supported != want || !strings.Contains(got.Found, seen) || !strings.Contains(got.How, how) {
		t.Errorf("got %+v, want %s, found %q, how %q", got, want, seen, how)
	}
	if got.Supported == Yes && got.How != "" {
		t.Errorf("a supported claim has a remedy: %s", got.How)
	}
}

func TestAsk_RequirementsOfRun(t *testing.T) {
	static := func(name string) Machine {
		m := FromNode(node(func(n *corev1.Node) { n.Name = name }), &KubeletConfig{CPUManagerPolicy: "static"}, nil)
		return m
	}
	shared := func(name string) Machine {
		return FromNode(node(func(n *corev1.Node) { n.Name = name }), &KubeletConfig{CPUManagerPolicy: "none"}, nil)
	}
	unknown := FromNode(node(nil), nil, errors.New("forbidden"))
	exclusive := func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Exclusive = assayv1alpha1.ExclusiveCPUs }
	demanded := func(s *assayv1alpha1.BenchmarkRunSpec) { exclusive(s); s.Placement.RequireStaticCPUManager = true }
	require := func(pairs map[string]string) func(*assayv1alpha1.BenchmarkRunSpec) {
		return func(s *assayv1alpha1.BenchmarkRunSpec) {
			s.Environment = &assayv1alpha1.Environment{Require: maps.Clone(pairs)}
		}
	}
	cases := map[string]struct {
		machines []Machine
		edit     func(*assayv1alpha1.BenchmarkRunSpec)
		unmet    string
		note     string
	}{
		"nothing":                                   {machines: []Machine{shared("a")}},
		"own CPUs, where one node has them":         {machines: []Machine{shared("a"), static("b")}, edit: demanded},
		"own CPUs, where no node has them":          {machines: []Machine{shared("a"), shared("b")}, edit: demanded, unmet: `placement.requireStaticCPUManager: a: cpuManagerPolicy is "none"; b:`},
		"own CPUs, where the kubelet denies access": {machines: []Machine{unknown}, edit: demanded, note: "only a running block can verify it"},
		"own CPUs as a wish, where none has them":   {machines: []Machine{shared("a")}, edit: exclusive, note: "placement.exclusive: CPUs: the run starts without it"},
		"a kernel that a node has":                  {machines: []Machine{static("a")}, edit: require(map[string]string{"kernelRelease": "6.18.44"})},
		"a kernel that no node has":                 {machines: []Machine{static("a")}, edit: require(map[string]string{"kernelRelease": "5.4"}), unmet: `environment.require.kernelRelease: a: is "6.18.44", must be "5.4"`},
		"a governor that the API does not report":   {machines: []Machine{static("a")}, edit: require(map[string]string{"governor": "performance"}), note: "environment.require.governor: only a running block can verify it"},
		"a governor that this machine has":          {machines: []Machine{FromSurvey(bare())}, edit: require(map[string]string{"governor": "performance", "onlineCpus": "8", "smt": "false"})},
		"a governor that this machine has not":      {machines: []Machine{FromSurvey(bare())}, edit: require(map[string]string{"governor": "powersave"}), unmet: `bare-1: is "performance", must be "powersave"`},
		"the only node is cordoned": {
			machines: []Machine{FromNode(node(func(n *corev1.Node) { n.Spec.Unschedulable = true }), nil, nil)},
			unmet:    "placement: no machine can take a block (node-a: the node is cordoned)",
		},
		"more CPUs than any node has": {
			machines: []Machine{static("a")}, edit: func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.CPUs = 4 },
			unmet: "a: 3 whole CPUs, placement.cpus is 4",
		},
		"more memory than any node has": {
			machines: []Machine{static("a")}, edit: func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.Memory = resource.MustParse("16Gi") },
			unmet: "a: 8192 MiB of memory, placement.memory is 16Gi",
		},
		"a label that no node has": {
			machines: []Machine{static("a")}, edit: func(s *assayv1alpha1.BenchmarkRunSpec) { s.Placement.NodeSelector = map[string]string{"zone": "two"} },
			unmet: `a: label zone is "one", nodeSelector wants "two"`,
		},
		"the node with the label lacks the CPUs": {
			machines: []Machine{static("a"), FromNode(node(func(n *corev1.Node) { n.Name, n.Labels = "b", map[string]string{"zone": "two"} }), &KubeletConfig{CPUManagerPolicy: "none"}, nil)},
			edit: func(s *assayv1alpha1.BenchmarkRunSpec) {
				demanded(s)
				s.Placement.NodeSelector = map[string]string{"zone": "two"}
			},
			unmet: `requireStaticCPUManager: b: cpuManagerPolicy is "none"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &assayv1alpha1.BenchmarkRunSpec{Placement: assayv1alpha1.Placement{CPUs: 1, Memory: resource.MustParse("1Gi"),
				Exclusive: assayv1alpha1.ExclusiveNone}}
			if tc.edit != nil {
				tc.edit(spec)
			}
			got := Ask(spec, tc.machines)
			for what, pair := range map[string][2]string{"unmet": {strings.Join(got.Unmet, "\n"), tc.unmet},
				"notes": {strings.Join(got.Notes, "\n"), tc.note}} {
				if (pair[0] == "") != (pair[1] == "") || !strings.Contains(pair[0], pair[1]) {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
		})
	}
}

func TestPrint_FindingsAndAnswer(t *testing.T) {
	var out bytes.Buffer
	answer := &Answer{Unmet: []string{"placement: none"}, Notes: []string{"a note"}}
	if err := Print(&out, []Machine{FromSurvey(bare())}, answer); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bare-1", "CLAIM", "exclusiveCPUs", "the kernel command line isolates CPU 3",
		"cannot be met  placement: none", "note           a note"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "known to be missing") {
		t.Errorf("the output contradicts the unmet requirement:\n%s", out.String())
	}
}

func TestParseSurvey_OtherReleaseIsRejected(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "hello", "another schema": `{"schema": "assay.dev/survey/v9"}`} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseSurvey([]byte(text)); err == nil || !strings.Contains(err.Error(), "assay-runner probe") {
				t.Errorf("got %v, want an error that names the runner", err)
			}
		})
	}
}
