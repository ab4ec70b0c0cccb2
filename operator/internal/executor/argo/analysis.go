package argo

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
)

// analysisMemory is the limit of the analysis, and AnalysisHeap the limit given to Go's runtime: a large ledger is
// nearly all of the heap, and without the limit Go's runtime would let garbage double it.
const analysisMemory, AnalysisHeap = "512Mi", "335MiB"

// analysisTakes is the deadline of one try of the analysis, minutes of an unreachable store included. The analysis of 100,000 attempts
// takes seconds.
const analysisTakes = time.Hour

// storeRetryPeriod is how long one try of the analysis retries an unreachable store, so that a restart of the store does not use up a try.
const storeRetryPeriod = 10 * time.Minute

// analysis is the template that judges the ledger. It is the only container with credentials that Assay itself gives out.
func analysis(config Config, exp *experiment.Experiment, wave int) Template {
	store := config.Bucket.access(exp.Run.Namespace)
	return Template{
		Name:         analysisTemplate,
		Metadata:     &Metadata{Labels: map[string]string{executor.PartLabel: executor.AnalysisPart}},
		Tolerations:  tolerations(exp),
		PodSpecPatch: analysisPatch(config),
		// Without a deadline an analysis that hangs would hold the run and its nodes for ever.
		ActiveDeadlineSeconds: ptr.To(intstr.FromInt32(int32(analysisTakes.Seconds()))),
		RetryStrategy:         retries(3),
		Volumes:               append(store.volumes, noToken),
		Container: &corev1.Container{
			Image: config.OperatorImage, ImagePullPolicy: config.PullPolicy,
			Command: append([]string{
				"/assay", "analyze", "--ledger", config.Bucket.URL(ledger.RunPrefix(exp.Run)), "--wave", fmt.Sprint(wave), "--write",
				"--store-away", storeRetryPeriod.String(), "--last-words", corev1.TerminationMessagePathDefault,
			}, store.arguments...),
			Env: append(store.env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: AnalysisHeap}),
			Resources: stored(corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(analysisMemory)},
			}, executorRoom),
			VolumeMounts:    append(store.mounts, noTokenMount),
			SecurityContext: containerSecurity(true),
		},
	}
}
