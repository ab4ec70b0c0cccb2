package argo

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
)

const (
	// argosContainer is Argo's own container in a pod. The container of a template is executor.MainContainer.
	argosContainer = executor.EngineContainer
	// keeperFolder contains the socket between runner and keeper. A block's container cannot write there. Neither it nor the plan is below
	// /assay, because that is the program in the keeper's image.
	keeperFolder = "/assay-keeper"
	keeperPlan   = "/assay-plan"
	keeperSocket = keeperFolder + "/socket"
	// keeperUser is used by no other container of the pod, so that trials can neither signal nor trace the keeper.
	keeperUser = user + 1
	// graceSeconds is the termination grace period. It lets the keeper write the attempts that it received if a block ends while the store is
	// unreachable, and the runner finish the trial that runs, which takes at most half of it (--finish-seconds).
	graceSeconds = 120
)

// podUID is the variable with the UID of the keeper's pod. Kubernetes sets it and expands it in the arguments.
const podUID = "ASSAY_POD_UID"

// executorReference identifies an execution of a block. It includes the pod's UID, because a restarted Workflow reuses the names of its
// pods and would overwrite earlier attempts.
const executorReference = podReference + "_$(" + podUID + ")"

// withKeeper adds the keeper to a block's pod, as a sidecar, which Kubernetes ends after the block's container. Only the keeper has the
// credentials of the store, and its container runs as keeperUser.
func withKeeper(block Template, config Config, exp *experiment.Experiment) Template {
	store := config.Bucket.access(exp.Run.Namespace)
	block.Volumes = append(append(block.Volumes, emptyDir("assay-keeper", emptyRoom)), store.volumes...)
	security := containerSecurity(true)
	security.RunAsUser = ptr.To[int64](keeperUser)
	block.InitContainers = append(block.InitContainers, corev1.Container{
		Name: executor.KeeperContainer, Image: config.OperatorImage, ImagePullPolicy: config.PullPolicy,
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Command: append([]string{
			"/assay", "keep", "--ledger", config.Bucket.URL(ledger.RunPrefix(exp.Run)), "--listen", keeperSocket,
			"--wave", path.Join(keeperPlan, executor.WaveFile), "--block", blockReference, "--executor", executorReference,
			"--last-words", corev1.TerminationMessagePathDefault,
		}, store.arguments...),
		Env: append(store.env, corev1.EnvVar{Name: podUID, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"},
		}}),
		Resources: config.executorResources(),
		VolumeMounts: append(store.mounts,
			corev1.VolumeMount{Name: "assay-keeper", MountPath: keeperFolder},
			corev1.VolumeMount{Name: "assay-plan", MountPath: keeperPlan, ReadOnly: true},
			noTokenMount),
		SecurityContext: security,
	})
	block.Container.VolumeMounts = append(block.Container.VolumeMounts,
		corev1.VolumeMount{Name: "assay-keeper", MountPath: keeperFolder, ReadOnly: true})
	return block
}
