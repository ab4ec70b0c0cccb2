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
	// ExecutorCPU and ExecutorMemory are what Argo's own containers in a pod get, requested and limit.
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
	// Secret in the run's namespace, and its keys.
	Secret, AccessKey, SecretKey string
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
		Endpoint: endpoint.Host, Insecure: endpoint.Scheme == "http", Region: region,
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
	return address.String()
}

func (b Bucket) artifact(key string) *S3 {
	return &S3{
		Endpoint: b.Endpoint, Insecure: &b.Insecure, Bucket: b.Name, Region: b.Region, Key: path.Join(b.Prefix, key),
		AccessKeySecret: b.secret(b.AccessKey), SecretKeySecret: b.secret(b.SecretKey),
	}
}

func (b Bucket) secret(key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: b.Secret}, Key: key}
}

// credentials are the environment of a trusted container.
func (b Bucket) credentials() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "AWS_ACCESS_KEY_ID", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: b.secret(b.AccessKey)}},
		{Name: "AWS_SECRET_ACCESS_KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: b.secret(b.SecretKey)}},
	}
}
