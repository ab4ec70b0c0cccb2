package argo

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Names of templates, which Argo's UI shows.
const (
	waveTemplate     = "wave"
	blockTemplate    = "block"
	analysisTemplate = "analyze"
)

// longestDeadline is the maximum of activeDeadlineSeconds of a pod.
const longestDeadline = math.MaxInt32 * time.Second

// Build returns the Workflow of a wave, which has one chain of blocks per lane, each block with the deadline longest, and then the
// analysis, which also runs if blocks failed or the Workflow was stopped. Lanes on one of the machines are one chain. It returns an error
// if Argo would replace a part of the user's text.
func Build(config Config, exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane, machines Machines, longest time.Duration) (
	*Workflow, error) {
	out := base(config, exp.Run, wave.Wave, executor.Name(exp.Run.Name, wave.Wave))
	blocks := withKeeper(withImages(block(config, exp, wave.Wave), design.Images(exp)), config, exp)
	// The operator stops a run at the end of its budget. The deadline makes the kubelet end a block if the operator cannot.
	blocks.ActiveDeadlineSeconds = ptr.To(intstr.FromInt32(int32(min(longest, longestDeadline).Seconds())))
	out.Spec.Entrypoint = waveTemplate
	out.Spec.OnExit = analysisTemplate
	out.Spec.Templates = []Template{
		{Name: waveTemplate, DAG: DAG{FailFast: ptr.To(false), Tasks: tasks(exp, wave, lanes, machines)}},
		blocks,
		analysis(config, exp, wave.Wave),
	}
	annotate(out, config, exp, wave.Wave, fmt.Sprintf("%s, wave %d: %s", exp.Run.Name, wave.Wave, wave.Purpose),
		waveDescription(exp, wave, lanes)+machines.describe(lanes))
	return out, checkReferences(out)
}

// nodeInput is the parameter of a block that has the name of its node.
const nodeInput = "node"

// Nodes returns the nodes on which a Workflow may start blocks, once per block.
func (s *Spec) Nodes() []string {
	var out []string
	for i := range s.Templates {
		for _, task := range s.Templates[i].DAG.Tasks {
			for _, parameter := range task.Arguments.Parameters {
				if parameter.Name == nodeInput && parameter.Value != nil {
					out = append(out, *parameter.Value)
				}
			}
		}
	}
	return out
}

// BuildAnalysis returns a Workflow that only repeats the analysis of a wave from the ledger. The first try is 1.
func BuildAnalysis(config Config, exp *experiment.Experiment, wave, try int) (*Workflow, error) {
	out := base(config, exp.Run, wave, executor.AnalysisName(exp.Run.Name, wave, try))
	out.Spec.Entrypoint = analysisTemplate
	out.Spec.Templates = []Template{analysis(config, exp, wave)}
	annotate(out, config, exp, wave, fmt.Sprintf("%s, wave %d: analysis only", exp.Run.Name, wave),
		"Repeats the analysis of the wave from the attempts in the ledger.")
	return out, checkReferences(out)
}

// allButAnalyses selects the pods that are deleted once they succeeded.
var allButAnalyses = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
	{Key: executor.PartLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{executor.AnalysisPart}},
}}

// keptSeconds is the time to live of a finished Workflow, a week, during which users can inspect it. All results are in the ledger.
const keptSeconds = 7 * 24 * 60 * 60

func base(config Config, run record.Run, wave int, name string) *Workflow {
	labels := executor.Labels(run, wave)
	pods := executor.Labels(run, wave)
	maps.Copy(pods, notInjected.Labels)
	if config.InstanceID != "" {
		labels[instanceIDLabel] = config.InstanceID
	}
	return &Workflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Workflow"},
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: name, Labels: labels},
		Spec: Spec{
			ServiceAccountName: config.ServiceAccount,
			// Pods of failed blocks and their logs are retained as long as the Workflow. Both are set here, so that defaults of the
			// installation neither delete a Workflow before a user has inspected it nor retain all of them. Pods of analyses are
			// retained, because the operator reads the digests of the analysis from them.
			PodGC:           &PodGC{Strategy: "OnPodSuccess", LabelSelector: allButAnalyses},
			TTLStrategy:     &TTLStrategy{SecondsAfterCompletion: ptr.To[int32](keptSeconds)},
			PodMetadata:     &Metadata{Labels: pods, Annotations: podAnnotations()},
			PodSpecPatch:    podSpecPatch(config),
			SecurityContext: podSecurity(),
		},
	}
}

// podAnnotations returns the annotations of every pod: it is not moved while it measures, and receives no other containers.
func podAnnotations() map[string]string {
	out := map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
		killAnnotation + argosContainer:                  killCommand("argoexec"),
	}
	maps.Copy(out, notInjected.Annotations)
	return out
}

// notInjected excludes pods from the webhooks of service meshes. A proxy shares the CPUs of a trial, takes the Guaranteed class from its
// pod and, as a plain container, keeps the pod after the block has ended.
var notInjected = Metadata{
	Labels: map[string]string{
		"sidecar.istio.io/inject":   "false",
		"kuma.io/sidecar-injection": "disabled",
	},
	Annotations: map[string]string{
		"linkerd.io/inject":                   "disabled",
		"consul.hashicorp.com/connect-inject": "false",
	},
}

// tasks returns a task per block. It depends on the previous block on the same node or machine, whether that succeeded or failed.
func tasks(exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane, machines Machines) []Task {
	last := map[string]string{}
	out := make([]Task, 0, len(wave.Blocks))
	for i, b := range wave.Blocks {
		lane := design.LaneOf(i, lanes)
		task := Task{
			Name: taskName(displayName(b, lane, len(lanes))), Template: blockTemplate,
			Arguments: Parameters{Parameters: blockArguments(exp, wave, b, lane, len(lanes))},
		}
		chain := machines.of(lane)
		if before, ok := last[chain]; ok {
			task.Depends = anyEnding(before)
		}
		last[chain] = task.Name
		out = append(out, task)
	}
	return out
}

func anyEnding(task string) string {
	return fmt.Sprintf("%[1]s.Succeeded || %[1]s.Failed || %[1]s.Errored || %[1]s.Skipped || %[1]s.Omitted", task)
}

// taskName returns the name of a block in the graph. Argo appends the number of the try, as in block-3(0).
func taskName(display string) string { return strings.ReplaceAll(display, ".", "-") }

func value(name, text string) Parameter { return Parameter{Name: name, Value: &text} }
