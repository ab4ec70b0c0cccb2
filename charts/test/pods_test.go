package chart

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// combined are values over others, key by key.
func combined(t *testing.T, values ...string) string {
	t.Helper()
	out := map[string]any{}
	var over func(into, from map[string]any)
	over = func(into, from map[string]any) {
		for key, value := range from {
			part, isMap := value.(map[string]any)
			there, wasMap := into[key].(map[string]any)
			if isMap && wasMap {
				over(there, part)
			} else {
				into[key] = value
			}
		}
	}
	for _, each := range values {
		over(out, parseValues(t, each))
	}
	raw, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// ofPods are the values for every pod of the release: a setting, and the expected field of a pod.
var ofPods = map[string]struct {
	values string
	check  func(t *testing.T, id string, pod corev1.PodTemplateSpec)
}{
	"scheduling.nodeSelector": {`{scheduling: {nodeSelector: {pool: infra}}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		want(t, id, pod.Spec.NodeSelector, map[string]string{"kubernetes.io/os": "linux", "pool": "infra"})
	}},
	"scheduling.tolerations": {`{scheduling: {tolerations: [{key: infra, operator: Exists}]}}`,
		func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
			if !slices.Contains(pod.Spec.Tolerations, corev1.Toleration{Key: "infra", Operator: corev1.TolerationOpExists}) {
				t.Errorf("%s tolerates %v", id, pod.Spec.Tolerations)
			}
		}},
	"scheduling.priorityClassName": {`{scheduling: {priorityClassName: high}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		want(t, id, pod.Spec.PriorityClassName, "high")
	}},
	"scheduling.affinity": {`{scheduling: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}]}}}}`,
		func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
			want(t, id, pod.Spec.Affinity, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}})
		}},
	"scheduling.topologySpreadConstraints": {`{scheduling: {topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]}}`,
		func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
			spread := pod.Spec.TopologySpreadConstraints
			if len(spread) != 2 || spread[0].TopologyKey != "zone" || spread[0].MaxSkew != 2 || spread[0].LabelSelector == nil ||
				spread[1].LabelSelector.MatchLabels["app"] != "web" || len(spread[1].LabelSelector.MatchLabels) != 1 {
				t.Errorf("%s is spread by %+v", id, spread)
				return
			}
			own := spread[0].LabelSelector.MatchLabels
			if !labels.SelectorFromSet(own).Matches(labels.Set(pod.Labels)) || own["app.kubernetes.io/component"] == "" {
				t.Errorf("%s is spread among the pods of %v, and has the labels %v", id, own, pod.Labels)
			}
		}},
	"podLabels": {`{podLabels: {cost-center: perf}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		want(t, id, pod.Labels["cost-center"], "perf")
	}},
	"commonLabels": {`{commonLabels: {team: perf}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		want(t, id, pod.Labels["team"], "perf")
	}},
	"commonLabels, podLabels": {`{commonLabels: {both: a}, podLabels: {both: b}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		want(t, id, pod.Labels["both"], "b")
	}},
	"podAnnotations": {`{podAnnotations: {sidecar.istio.io/inject: "false"}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		want(t, id, pod.Annotations["sidecar.istio.io/inject"], "false")
	}},
	"extraEnv": {`{extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}`,
		func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
			for _, container := range containers(pod) {
				n := len(container.Env)
				if n < 2 || container.Env[n-2].Value != "http://proxy:3128" || container.Env[n-1].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
					t.Errorf("%s: container %s has the variables %v", id, container.Name, container.Env)
				}
			}
		}},
	"global.imagePullSecrets, images.pullSecrets": {`{global: {imagePullSecrets: [{name: a}, {name: b}]}, images: {pullSecrets: [{name: b}, {name: c}]}}`,
		func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
			want(t, id, pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}, {Name: "c"}})
		}},
	"global.imageRegistry": {`{global: {imageRegistry: registry.lan/assay}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		for _, container := range containers(pod) {
			if !strings.HasPrefix(container.Image, "registry.lan/assay/") {
				t.Errorf("%s: container %s has the image %s", id, container.Name, container.Image)
			}
		}
	}},
	"images.pullPolicy": {`{images: {pullPolicy: Always}}`, func(t *testing.T, id string, pod corev1.PodTemplateSpec) {
		for _, container := range containers(pod) {
			want(t, id, container.ImagePullPolicy, corev1.PullAlways)
		}
	}},
}

func want[T any](t *testing.T, id string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s has %+v, want %+v", id, got, want)
	}
}

// replacedBy are the values that do not reach a MinIO whose emptyDir would go with the pod that they replace.
var replacedBy = []string{"podLabels", "commonLabels", "commonLabels, podLabels", "podAnnotations"}

func TestPods_ValuesReachEveryPod(t *testing.T) {
	t.Parallel()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(ofPods)) {
		all = append(all, ofPods[name].values)
	}
	for name, values := range variations {
		t.Run(name, func(t *testing.T) {
			pods := render(t, combined(t, append([]string{values}, all...)...)).pods(t)
			lost := dataIsLost(pods)
			for value, tc := range ofPods {
				for id, pod := range pods {
					if lost && strings.HasPrefix(id, "StatefulSet/") && slices.Contains(replacedBy, value) {
						continue
					}
					tc.check(t, value+": "+id, pod)
				}
			}
		})
	}
}

// dataIsLost reports whether MinIO's objects go with its pod.
func dataIsLost(pods map[string]corev1.PodTemplateSpec) bool {
	for id, pod := range pods {
		if strings.HasPrefix(id, "StatefulSet/") {
			return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "data" && v.EmptyDir != nil })
		}
	}
	return false
}

// A value of scheduling that is added later is looked at here.
func TestPods_SchedulingValuesAreCovered(t *testing.T) {
	raw, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Scheduling map[string]any }
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	for name := range values.Scheduling {
		if _, checked := ofPods["scheduling."+name]; !checked {
			t.Errorf("nothing checks that scheduling.%s reaches each pod", name)
		}
	}
}

const (
	fromController = `{networkPolicies: {interfacesFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}}`
	everyIngress   = `{argo: {server: {ingress: {enabled: true, host: argo.example.com, className: nginx, tlsSecret: argo-tls, annotations: {a: b}}}},
		grafana: {ingress: {enabled: true, host: grafana.example.com, tlsSecret: grafana-tls}},
		prometheus: {ingress: {enabled: true, host: prometheus.example.com}},
		objectStore: {ingress: {enabled: true, host: minio.example.com}}}`
)

// Every web interface can have an Ingress, which leads to an existing port that its controller reaches.
func TestIngress_ExistsForEveryWebInterface(t *testing.T) {
	chart := render(t, combined(t, fromController, everyIngress))
	served := map[string]string{}
	for _, object := range chart.of("Ingress") {
		ingress := into[networkingv1.Ingress](t, object)
		if len(ingress.Spec.Rules) != 1 || len(ingress.Spec.Rules[0].HTTP.Paths) != 1 {
			t.Fatalf("%s has the rules %+v", ingress.Name, ingress.Spec.Rules)
		}
		path := ingress.Spec.Rules[0].HTTP.Paths[0]
		want(t, ingress.Name, *path.PathType, networkingv1.PathTypePrefix)
		want(t, ingress.Name, path.Path, "/")
		served[path.Backend.Service.Name+" "+path.Backend.Service.Port.Name] = ingress.Spec.Rules[0].Host
	}
	judge, at := policies(t, chart), places(t, chart)
	interfaces := map[string]string{}
	for _, object := range chart.of("Service") {
		service := into[corev1.Service](t, object)
		component := service.Labels["app.kubernetes.io/component"]
		for _, port := range service.Spec.Ports {
			if port.Name == "metrics" || port.Name == "s3" {
				continue // Nothing to look at.
			}
			interfaces[service.Name+" "+port.Name] = strings.TrimSuffix(component, "-server") + ".example.com"
			if !judge.allows(t, at["monitoring"], at[component], at[component].ports[port.Name]) {
				t.Errorf("the policies keep the ingress controller from %s", component)
			}
		}
	}
	if !maps.Equal(served, interfaces) || len(served) != 4 {
		t.Errorf("ingresses lead to %v, and the interfaces are %v", served, interfaces)
	}
	argo := into[networkingv1.Ingress](t, chart.find(t, "Ingress/assay-system/assay-argo-server"))
	want(t, "argo", *argo.Spec.IngressClassName, "nginx")
	want(t, "argo", argo.Annotations, map[string]string{"a": "b"})
	want(t, "argo", argo.Spec.TLS, []networkingv1.IngressTLS{{Hosts: []string{"argo.example.com"}, SecretName: "argo-tls"}})
	wantArgs(t, chart, "Deployment/assay-system/assay-operator", "--grafana-url=https://grafana.example.com")
	want(t, "Grafana", environment(t, chart)["GF_SERVER_ROOT_URL"], "https://grafana.example.com")

	for name, values := range map[string]string{
		"by default": ``, "of an external part": combined(t, everyIngress, variations["everything external"]),
		"of a server that is off": `{argo: {server: {enabled: false, ingress: {enabled: true, host: argo.example.com}}}}`,
	} {
		if got := render(t, values).of("Ingress"); len(got) > 0 {
			t.Errorf("%s there is %s", name, identity(got[0]))
		}
	}
}

func TestIngress_WithoutBackendIsRejected(t *testing.T) {
	t.Parallel()
	for section, prefix := range map[string]string{"argo.server": "{argo: {server: ", "grafana": "{grafana: ", "prometheus": "{prometheus: ",
		"objectStore": "{objectStore: "} {
		end := strings.Repeat("}", strings.Count(prefix, "{"))
		for name, tc := range map[string]struct{ ingress, want string }{
			"without a host":        {`{ingress: {enabled: true}}`, "/" + strings.ReplaceAll(section, ".", "/") + "/ingress/host"},
			"with a scheme":         {`{ingress: {enabled: true, host: "https://a.example.com"}}`, "/ingress/host"},
			"with an unknown key":   {`{ingress: {path: /a}}`, "/ingress"},
			"without allowed peers": {`{ingress: {enabled: true, host: a.example.com}}`, section + ".ingress.enabled is true and networkPolicies.interfacesFrom is empty"},
		} {
			if _, err := tryRender(t, prefix+tc.ingress+end); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s %s: error %v, want %q", section, name, err, tc.want)
			}
		}
		if _, err := tryRender(t, combined(t, prefix+`{ingress: {enabled: true, host: a.example.com}}`+end, variations["no policies"])); err != nil {
			t.Errorf("%s without policies: %v", section, err)
		}
	}
}
