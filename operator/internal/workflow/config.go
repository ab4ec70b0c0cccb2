package workflow

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// Bucket is the object store as Argo and the analysis reach it.
type Bucket struct {
	Name string
	// Prefix before every key, without slashes at its ends.
	Prefix   string
	Endpoint string
	Insecure bool
	Region   string
	// PathStyle is the URL's parameter of that name. Argo finds out by itself.
	PathStyle string
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
	region := cmp.Or(parsed.Query().Get("region"), defaultRegion)
	endpoint, err := url.Parse(cmp.Or(parsed.Query().Get("endpoint"), "https://s3."+region+".amazonaws.com"))
	if err != nil || endpoint.Host == "" {
		return Bucket{}, fmt.Errorf("ledger %q: endpoint is not http(s)://host:port", ledgerURL)
	}
	return Bucket{
		Name: parsed.Host, Prefix: strings.Trim(parsed.Path, "/"),
		Endpoint: endpoint.Host, Insecure: endpoint.Scheme == "http", Region: region, PathStyle: parsed.Query().Get("pathStyle"),
	}, nil
}

// URL is the ledger's address under a prefix, as assay analyze takes it.
func (b Bucket) URL(prefix string) string {
	scheme := "https"
	if b.Insecure {
		scheme = "http"
	}
	address := url.URL{Scheme: "s3", Host: b.Name, Path: "/" + path.Join(b.Prefix, prefix)}
	address.RawQuery = "endpoint=" + scheme + "://" + b.Endpoint + "&region=" + b.Region
	if b.PathStyle != "" {
		address.RawQuery += "&pathStyle=" + b.PathStyle
	}
	return address.String()
}

func secretKey(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

// Where a trusted container finds the certificates of the store's authority.
const (
	caFolder = "/etc/assay/ca"
	caFile   = "ca.crt"
)

// environment gives a trusted container what it needs to reach the store.
func (b Bucket) environment() []corev1.EnvVar {
	var out []corev1.EnvVar
	if b.Secret != "" {
		out = append(out,
			corev1.EnvVar{Name: "AWS_ACCESS_KEY_ID", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secretKey(b.Secret, b.AccessKey)}},
			corev1.EnvVar{Name: "AWS_SECRET_ACCESS_KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secretKey(b.Secret, b.SecretKey)}})
	}
	if b.CASecret != "" {
		out = append(out, corev1.EnvVar{Name: "AWS_CA_BUNDLE", Value: caFolder + "/" + caFile})
	}
	return out
}

// trust is the volume with those certificates and its mount; none without.
func (b Bucket) trust() ([]corev1.Volume, []corev1.VolumeMount) {
	if b.CASecret == "" {
		return nil, nil
	}
	const name = "assay-ca"
	return []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: b.CASecret, Items: []corev1.KeyToPath{{Key: b.CAKey, Path: caFile}},
	}}}}, []corev1.VolumeMount{{Name: name, MountPath: caFolder, ReadOnly: true}}
}

// blockAnnotations keep a cloud from giving the pod's identity to the containers of a block: only the keeper, which stores the
// attempts, is to have it.
func (b Bucket) blockAnnotations() map[string]string {
	if b.Secret != "" {
		return nil
	}
	return map[string]string{"eks.amazonaws.com/skip-containers": "install,main"}
}
