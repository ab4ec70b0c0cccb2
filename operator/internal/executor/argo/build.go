package argo

import (
	"fmt"
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

// Names of templates, as they show in Argo's UI.
const (
	waveTemplate     = "wave"
	blockTemplate    = "block"
	analysisTemplate = "analyze"
)

// longestDeadline is what the API server takes as the deadline of a pod.
const longestDeadline = math.MaxInt32 * time.Second

// Build writes a wave: one chain of blocks per lane, each of which takes as long as longest at most, then the analysis, which also runs
// when blocks failed or the workflow was stopped. It fails when something that people wrote would be replaced by Argo.
func Build(config Config, exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane, longest time.Duration) (
	*Workflow, error) {
	out := base(config, exp.Run, wave.Wave, executor.Name(exp.Run.Name, wave.Wave))
	blocks := withKeeper(withImages(block(config, exp, wave.Wave), design.Images(exp)), config, exp)
	// The operator stops a run at the end of its budget. A block ends by itself where that cannot be: its kubelet ends it.
	blocks.ActiveDeadlineSeconds = ptr.To(intstr.FromInt32(int32(min(longest, longestDeadline).Seconds())))
	out.Spec.Entrypoint = waveTemplate
	out.Spec.OnExit = analysisTemplate
	out.Spec.Templates = []Template{
		{Name: waveTemplate, DAG: DAG{FailFast: ptr.To(false), Tasks: tasks(exp, wave, lanes)}},
		blocks,
		analysis(config, exp, wave.Wave),
	}
	annotate(out, config, exp, wave.Wave, fmt.Sprintf("%s, wave %d: %s", exp.Run.Name, wave.Wave, wave.Why()),
		waveDescription(exp, wave, lanes))
	return out, checkReferences(out)
}

// nodeInput is the parameter of a block that says on which node it runs.
const nodeInput = "node"

// Nodes are those on which a workflow may start blocks, each once for each block.
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

// BuildAnalysis writes a workflow that only analyses what a wave left in the ledger.
func BuildAnalysis(config Config, exp *experiment.Experiment, wave, try int) (*Workflow, error) {
	out := base(config, exp.Run, wave, executor.AnalysisName(exp.Run.Name, wave, try))
	out.Spec.Entrypoint = analysisTemplate
	out.Spec.Templates = []Template{analysis(config, exp, wave)}
	annotate(out, config, exp, wave, fmt.Sprintf("%s, wave %d: analysis only", exp.Run.Name, wave),
		"Judges again what the wave left in the ledger.")
	return out, checkReferences(out)
}

// keptSeconds is how long a workflow that has ended stays, for people: a week. All that was measured is in the ledger.
const keptSeconds = 7 * 24 * 60 * 60

func base(config Config, run record.Run, wave int, name string) *Workflow {
	labels := executor.Labels(run, wave)
	pods := executor.Labels(run, wave)
	if config.InstanceID != "" {
		labels[instanceIDLabel] = config.InstanceID
	}
	return &Workflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Workflow"},
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: name, Labels: labels},
		Spec: Spec{
			ServiceAccountName: config.ServiceAccount,
			// The pods of blocks that failed stay, with their logs, for as long as the workflow does. Both are said here, so that no default
			// of Argo's takes a workflow away before somebody has looked at it, or keeps all of them.
			PodGC:       &PodGC{Strategy: "OnPodSuccess"},
			TTLStrategy: &TTLStrategy{SecondsAfterCompletion: ptr.To[int32](keptSeconds)},
			PodMetadata: &Metadata{Labels: pods, Annotations: map[string]string{
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
				"karpenter.sh/do-not-disrupt":                    "true",
				killAnnotation + argosContainer:                  killCommand("argoexec"),
			}},
			PodSpecPatch:    podSpecPatch(config),
			SecurityContext: podSecurity(),
		},
	}
}

// tasks are the blocks of every lane, each waiting for the one before it on the same node, however that ended.
func tasks(exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane) []Task {
	last := map[design.Lane]string{}
	out := make([]Task, 0, len(wave.Blocks))
	for i, b := range wave.Blocks {
		lane := design.LaneOf(i, lanes)
		task := Task{
			Name: taskName(displayName(b, lane, len(lanes))), Template: blockTemplate,
			Arguments: Parameters{Parameters: blockArguments(exp, wave, b, lane, len(lanes))},
		}
		if before, ok := last[lane]; ok {
			task.Depends = anyEnding(before)
		}
		last[lane] = task.Name
		out = append(out, task)
	}
	return out
}

func anyEnding(task string) string {
	return fmt.Sprintf("%[1]s.Succeeded || %[1]s.Failed || %[1]s.Errored || %[1]s.Skipped || %[1]s.Omitted", task)
}

// taskName is the name of a block in the graph, and the beginning of what each of its tries is called there: block-3(0).
func taskName(display string) string { return strings.ReplaceAll(display, ".", "-") }

func value(name, text string) Parameter { return Parameter{Name: name, Value: &text} }
