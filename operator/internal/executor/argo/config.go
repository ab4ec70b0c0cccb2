package argo

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/executor"
)

// Config is the configuration of an installation that applies to every Workflow.
type Config struct {
	// Bucket stores attempts and analyses.
	Bucket Bucket
	// OperatorImage contains /assay, which analyses, and RunnerImage contains /assay-runner.
	OperatorImage, RunnerImage string
	PullPolicy                 corev1.PullPolicy
	// ServiceAccount of the pods. Argo's executor reports results with its token, which is not mounted into the workload's container.
	ServiceAccount string
	// ExecutorCPU and ExecutorMemory are the requests and limits of Argo's own containers in a pod and of the keeper.
	ExecutorCPU, ExecutorMemory resource.Quantity
	// InstanceID of the Argo controller that runs the Workflows; empty for a controller without one.
	InstanceID string
}

// Bucket is the address and the credentials of the object store for keepers and analyses.
type Bucket struct {
	Name string
	// Prefix before every key, without slashes at its ends.
	Prefix string
	// Query is the query of the URL, with endpoint and region, defaults included, and pathStyle.
	Query string
	// Secret is in the run's namespace, and has the credentials under these keys. Without it pods use the identity that the cloud gives them.
	Secret, AccessKey, SecretKey string
	// CASecret is in the run's namespace, and has under CAKey the certificates of the authority that signed the store's certificate.
	// Without it the authorities in the images are trusted.
	CASecret, CAKey string
}

const defaultRegion = "us-east-1"

// ParseBucket parses a ledger's URL, s3://bucket/prefix?endpoint=http://host:port&region=….
func ParseBucket(ledgerURL string) (Bucket, error) {
	parsed, err := url.Parse(ledgerURL)
	if err != nil || parsed.Scheme != "s3" || parsed.Host == "" {
		return Bucket{}, fmt.Errorf("invalid ledger %q: blocks in a cluster need an object store: s3://bucket?endpoint=http://host:port",
			ledgerURL)
	}
	values := parsed.Query()
	region := cmp.Or(values.Get("region"), defaultRegion)
	endpoint, err := url.Parse(cmp.Or(values.Get("endpoint"), "https://s3."+region+".amazonaws.com"))
	if err != nil || endpoint.Host == "" {
		return Bucket{}, fmt.Errorf("invalid ledger %q: endpoint must be http://host:port or https://host:port", ledgerURL)
	}
	query := "endpoint=" + endpoint.Scheme + "://" + endpoint.Host + "&region=" + region
	if style := values.Get("pathStyle"); style != "" {
		query += "&pathStyle=" + style
	}
	return Bucket{Name: parsed.Host, Prefix: strings.Trim(parsed.Path, "/"), Query: query}, nil
}

// URL returns the URL of the ledger under a prefix, in the form of --ledger of assay analyze.
func (b Bucket) URL(prefix string) string {
	address := url.URL{Scheme: "s3", Host: b.Name, Path: "/" + path.Join(b.Prefix, prefix), RawQuery: b.Query}
	return address.String()
}

// Folder and file with the certificates of the store's authority in a trusted container.
const (
	caFolder = "/etc/assay/ca"
	caFile   = "ca.crt"
)

// keysFolder is the folder with the credentials of the store in a trusted container.
const keysFolder = "/etc/assay/keys"

// access has the arguments, variables, volumes and mounts by which a trusted container reaches the store.
type access struct {
	arguments []string
	env       []corev1.EnvVar
	volumes   []corev1.Volume
	mounts    []corev1.VolumeMount
}

func (a *access) mount(name, folder string, secret *corev1.SecretVolumeSource) {
	a.volumes = append(a.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: secret}})
	a.mounts = append(a.mounts, corev1.VolumeMount{Name: name, MountPath: folder, ReadOnly: true})
}

// access returns the access to the store from a namespace. Credentials are mounted as files, not set as variables, so that a running block
// uses a key that was replaced.
func (b Bucket) access(namespace string) access {
	var out access
	if b.Secret != "" {
		out.arguments = []string{"--credentials-dir", keysFolder, "--secret", namespace + "/" + b.Secret}
		out.mount("assay-keys", keysFolder, &corev1.SecretVolumeSource{
			// Readable by the pod's group, which all its containers have. Only containers that mount the volume can use it.
			SecretName: b.Secret, DefaultMode: ptr.To[int32](0o440),
			Items: []corev1.KeyToPath{{Key: b.AccessKey, Path: store.AccessKeyFile}, {Key: b.SecretKey, Path: store.SecretKeyFile}},
		})
	}
	if b.CASecret != "" {
		out.env = append(out.env, corev1.EnvVar{Name: "AWS_CA_BUNDLE", Value: caFolder + "/" + caFile})
		out.mount("assay-ca", caFolder, &corev1.SecretVolumeSource{
			SecretName: b.CASecret, Items: []corev1.KeyToPath{{Key: b.CAKey, Path: caFile}},
		})
	}
	return out
}

// blockAnnotations returns annotations that prevent Argo from executing a file that trials may have written, and the cloud from giving the
// pod's identity to containers other than the keeper, which stores the attempts.
func blockAnnotations(b Bucket) map[string]string {
	out := map[string]string{killAnnotation + executor.MainContainer: killCommand(binFolder + "/assay-runner")}
	if b.Secret == "" {
		out[skipContainers] = "install,main"
	}
	return out
}

// killAnnotation, with the name of a container, selects the program by which Argo sends signals there. By default Argo executes a program
// in a folder that all containers can write to. A trial could replace it, and Argo would execute the replacement in its own container,
// which has the pod's token and reports to Argo's controller.
const killAnnotation = "workflows.argoproj.io/kill-cmd-"

func killCommand(program string) string { return fmt.Sprintf(`["%s","kill","%%d","1"]`, program) }
