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
	argosContainer = "wait"
	// keeperFolder holds the socket by which the runner reaches the keeper. A block's container cannot write there. It is not below
	// /assay, which is the program in the keeper's image, and neither is the plan there.
	keeperFolder = "/assay-keeper"
	keeperPlan   = "/assay-plan"
	keeperSocket = keeperFolder + "/socket"
	// keeperUser is nobody else's in the pod: what one user may do to its processes, trials may not do to the keeper.
	keeperUser = user + 1
	// graceSeconds is how long the keeper may take to write what it received when a block ends while the store is unreachable. Nothing
	// else takes long to end.
	graceSeconds = 120
)

// podUID is the variable that has the uid of the keeper's pod. Kubernetes fills it in, and its reference in the arguments.
const podUID = "ASSAY_POD_UID"

// executorReference names an execution of a block. A workflow that is restarted uses the names of its pods again, their uids
// never, so that nothing is ever overwritten.
const executorReference = podReference + "_$(" + podUID + ")"

// withKeeper adds the keeper to a block's pod: a sidecar, which Kubernetes ends after the block's container has ended. It alone
// has the credentials of the store, in a container and under a user of its own.
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
