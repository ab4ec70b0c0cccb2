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

// Config is what an installation decides about every workflow.
type Config struct {
	// Bucket is where artifacts and analyses go.
	Bucket Bucket
	// OperatorImage holds /assay, which analyses; RunnerImage holds /assay-runner.
	OperatorImage, RunnerImage string
	PullPolicy                 corev1.PullPolicy
	// ServiceAccount of the pods. Argo's executor needs it to report results; a workload's container does not get it.
	ServiceAccount string
	// ExecutorCPU and ExecutorMemory are what Argo's own containers in a pod get, and the keeper, requested and limit.
	ExecutorCPU, ExecutorMemory resource.Quantity
	// InstanceID of the Argo controller that shall run the workflows; empty for one without.
	InstanceID string
}

// Bucket is the object store as keepers and analyses reach it.
type Bucket struct {
	Name string
	// Prefix before every key, without slashes at its ends.
	Prefix string
	// Query is the part of the URL that says where the bucket is: endpoint and region, whether or not they were given, and pathStyle.
	Query string
	// Secret in the run's namespace, and its keys. Without one the pods' own identity is used, which the cloud gives them.
	Secret, AccessKey, SecretKey string
	// CASecret in the run's namespace, with the certificates of the authority that signed the store's, and its key. Without
	// one the images' own authorities are believed.
	CASecret, CAKey string
}

const defaultRegion = "us-east-1"

// ParseBucket reads a ledger's URL, s3://bucket/prefix?endpoint=http://host:port&region=….
func ParseBucket(ledgerURL string) (Bucket, error) {
	parsed, err := url.Parse(ledgerURL)
	if err != nil || parsed.Scheme != "s3" || parsed.Host == "" {
		return Bucket{}, fmt.Errorf("ledger %q: blocks in a cluster need an object store: write s3://bucket?endpoint=http://host:port", ledgerURL)
	}
	values := parsed.Query()
	region := cmp.Or(values.Get("region"), defaultRegion)
	endpoint, err := url.Parse(cmp.Or(values.Get("endpoint"), "https://s3."+region+".amazonaws.com"))
	if err != nil || endpoint.Host == "" {
		return Bucket{}, fmt.Errorf("ledger %q: endpoint is not http(s)://host:port", ledgerURL)
	}
	query := "endpoint=" + endpoint.Scheme + "://" + endpoint.Host + "&region=" + region
	if style := values.Get("pathStyle"); style != "" {
		query += "&pathStyle=" + style
	}
	return Bucket{Name: parsed.Host, Prefix: strings.Trim(parsed.Path, "/"), Query: query}, nil
}

// URL is the ledger's address under a prefix, as assay analyze takes it.
func (b Bucket) URL(prefix string) string {
	address := url.URL{Scheme: "s3", Host: b.Name, Path: "/" + path.Join(b.Prefix, prefix), RawQuery: b.Query}
	return address.String()
}

// Where a trusted container finds the certificates of the store's authority.
const (
	caFolder = "/etc/assay/ca"
	caFile   = "ca.crt"
)

// keysFolder is where a trusted container finds the credentials of the store.
const keysFolder = "/etc/assay/keys"

// access is what a trusted container needs to reach the store: arguments of the program in it, variables, volumes of its pod and mounts.
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

// access reaches the store from a namespace. Credentials are files and no variables: a key that is replaced while a block runs is used by
// the block.
func (b Bucket) access(namespace string) access {
	var out access
	if b.Secret != "" {
		out.arguments = []string{"--credentials-dir", keysFolder, "--secret", namespace + "/" + b.Secret}
		out.mount("assay-keys", keysFolder, &corev1.SecretVolumeSource{
			// Whoever is in the group of the pod may read them, which needs a container that mounts them.
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

// blockAnnotations keep what trials may have written from being executed to end a block, and a cloud from giving the pod's identity to the
// containers of a block: only the keeper, which stores the attempts, is to have it.
func blockAnnotations(b Bucket) map[string]string {
	out := map[string]string{killAnnotation + executor.MainContainer: killCommand(binFolder + "/assay-runner")}
	if b.Secret == "" {
		out[skipContainers] = "install,main"
	}
	return out
}

// killAnnotation, with the name of a container, says by which program Argo sends signals there. Argo executes it in the container, and
// without this takes the one in a folder that all of them can write to: a trial could put another in its place, which Argo would execute
// where the pod's token is, and to what it says Argo's controller listens.
const killAnnotation = "workflows.argoproj.io/kill-cmd-"

func killCommand(program string) string { return fmt.Sprintf(`["%s","kill","%%d","1"]`, program) }
