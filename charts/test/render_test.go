// Package chart tests charts/assay: it is rendered and installed by Helm's own packages.
package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	repository       = "../.."
	chartDir         = repository + "/charts/assay"
	releaseNamespace = "assay-system"
)

// kubeVersion is that of the embedded cluster.
var kubeVersion = &common.KubeVersion{Version: "v1.34.4", Major: "1", Minor: "34"}

// rendered holds the objects that an install would create.
type rendered struct {
	objects []unstructured.Unstructured
	notes   string
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func parseValues(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatalf("values of the test: %v", err)
	}
	return parsed
}

// once caches renderings by values, because many tests read the same ones.
var once sync.Map

// tryRender renders the chart, its hooks among the objects, as "helm template assay -n assay-system" does. Random values are
// the same each time; tryRenderFor renders anew.
func tryRender(t *testing.T, values string) (*rendered, error) {
	t.Helper()
	type outcome struct {
		chart *rendered
		err   error
	}
	if cached, ok := once.Load(values); ok {
		return cached.(outcome).chart, cached.(outcome).err
	}
	chart, err := tryRenderFor(t, values, withPrometheusOperator)
	once.Store(values, outcome{chart, err})
	return chart, err
}

// withPrometheusOperator are the API versions of a cluster that has one.
var withPrometheusOperator = common.VersionSet{"monitoring.coreos.com/v1"}

// tryRenderFor renders for a cluster that serves these API versions beside Kubernetes' own.
func tryRenderFor(t *testing.T, values string, versions common.VersionSet) (*rendered, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.KubeVersion = kubeVersion
	install.ReleaseName = "assay"
	install.Namespace = releaseNamespace
	install.APIVersions = versions
	releaser, err := install.Run(loadChart(t), parseValues(t, values))
	if err != nil {
		return nil, err
	}
	made := releaser.(*release.Release)
	manifests := []string{made.Manifest}
	for _, hook := range made.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	out := &rendered{notes: made.Info.Notes}
	for _, manifest := range manifests {
		out.objects = append(out.objects, decode(t, manifest)...)
	}
	return out, nil
}

// renderAnew renders with everything that is generated at random generated again.
func renderAnew(t *testing.T, values string) *rendered {
	t.Helper()
	out, err := tryRenderFor(t, values, withPrometheusOperator)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func render(t *testing.T, values string) *rendered {
	t.Helper()
	out, err := tryRender(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// documents caches decoded objects by their text, because most objects of a chart are the same in every rendering.
var documents sync.Map

// decode reads the objects of a manifest, which are only to be read.
func decode(t *testing.T, manifest string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("manifest: %v", err)
		}
		if known, ok := documents.Load(string(text)); ok {
			objects = append(objects, known.(unstructured.Unstructured))
			continue
		}
		var object unstructured.Unstructured
		if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&object.Object); err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("manifest: %v", err)
		}
		if len(object.Object) > 0 {
			documents.Store(string(text), object)
			objects = append(objects, object)
		}
	}
}

// of returns the objects of a kind, and of a namespace if one is given.
func (r *rendered) of(kind string, namespace ...string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, object := range r.objects {
		if object.GetKind() == kind && (len(namespace) == 0 || object.GetNamespace() == namespace[0]) {
			out = append(out, object)
		}
	}
	return out
}

// find returns the one object that is written kind/namespace/name, or kind/name if it has no namespace.
func (r *rendered) find(t *testing.T, id string) unstructured.Unstructured {
	t.Helper()
	var ids []string
	for _, object := range r.objects {
		if identity(object) == id {
			return object
		}
		ids = append(ids, identity(object))
	}
	t.Fatalf("no %s among\n%s", id, strings.Join(ids, "\n"))
	return unstructured.Unstructured{}
}

// identities returns kind/namespace/name of every object.
func (r *rendered) identities() []string {
	var out []string
	for _, object := range r.objects {
		out = append(out, identity(object))
	}
	return out
}

func identity(object unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + "/" + object.GetName()
	}
	return object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
}

// into converts an object, or the part of it at a path, to its type.
func into[T any](t *testing.T, object unstructured.Unstructured, path ...string) T {
	t.Helper()
	content := object.Object
	if len(path) > 0 {
		part, ok, err := unstructured.NestedMap(content, path...)
		if err != nil || !ok {
			t.Fatalf("%s has no %s: %v", identity(object), strings.Join(path, "."), err)
		}
		content = part
	}
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, &out, true); err != nil {
		t.Fatalf("%s: %v", identity(object), err)
	}
	return out
}

// pods returns the pod templates by the identity of their controllers.
func (r *rendered) pods(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for _, object := range r.objects {
		switch object.GetKind() {
		case "Deployment", "StatefulSet", "DaemonSet", "Job":
			out[identity(object)] = into[corev1.PodTemplateSpec](t, object, "spec", "template")
		case "CronJob":
			out[identity(object)] = into[corev1.PodTemplateSpec](t, object, "spec", "jobTemplate", "spec", "template")
		case "Pod", "ReplicaSet":
			t.Fatalf("%s: the tests do not look into this kind yet", identity(object))
		}
	}
	return out
}

func containers(pod corev1.PodTemplateSpec) []corev1.Container {
	return append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)
}
