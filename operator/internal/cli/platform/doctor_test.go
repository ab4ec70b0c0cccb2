package platform

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/certificates"
	"assay.dev/assay/operator/internal/dependencies"
)

func controllerOf(namespace, image string) client.Object {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workflow-controller"},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}},
	}
}

func TestDoctor(t *testing.T) {
	allKinds := map[string]bool{"assay.dev/v1alpha1/BenchmarkRun": true, "assay.dev/v1alpha1/BenchmarkTemplate": true,
		"argoproj.io/v1alpha1/Workflow": true}
	of := func(wanted, ready int32, args ...string) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: "assay-operator", Labels: operatorLabels},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To(wanted),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: args}}}},
			},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
		}
	}
	operator := func(ready int32, args ...string) client.Object { return of(2, ready, args...) }
	controller := func(image string) client.Object { return controllerOf("argo", image) }
	named := func(name string, data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
	}
	fine := dependencies.Report{Ledger: dependencies.Finding{OK: true}, Engine: dependencies.Finding{Name: "Argo", OK: true},
		Prometheus: dependencies.Finding{OK: true}}
	broken := func(edit func(*dependencies.Report)) *dependencies.Report {
		out := fine
		edit(&out)
		return &out
	}
	secret := func(data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "assay-ledger"}, Data: data}
	}
	set, _, err := (certificates.Policy{Hosts: []string{"minio"}, Lifetime: 365 * aDay, Lead: 120 * aDay}).Step(time.Now(), rand.Reader,
		certificates.Set{})
	if err != nil {
		t.Fatal(err)
	}
	trusted := set.Trusted
	keys := map[string][]byte{"accessKey": []byte("a"), "secretKey": []byte("b")}
	node := func(cordoned bool) client.Object {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
	}
	template := &assayv1alpha1.BenchmarkTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pir-scan"}}
	for name, test := range map[string]struct {
		kinds   map[string]bool
		objects []client.Object
		missing string // the first check that fails; empty when all is well
		remedy  string
		and     string               // the other check that fails, if there is one
		says    *dependencies.Report // answer of the operator; by default everything is ready
		mute    error
	}{
		"all is well":                       {kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false), template}},
		"templates are not needed":          {kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false)}},
		"Argo's kind is not served":         {kinds: map[string]bool{"assay.dev/v1alpha1/BenchmarkRun": true, "assay.dev/v1alpha1/BenchmarkTemplate": true}, objects: []client.Object{operator(2), secret(keys), node(false)}, missing: "argoproj.io/v1alpha1/Workflow", remedy: "install Argo"},
		"one of two operators is not ready": {kinds: allKinds, objects: []client.Object{operator(1), secret(keys), node(false)}, missing: "deployment assay-operator", remedy: "kubectl describe deployment -n assay-system assay-operator"},
		"nothing is installed there":        {kinds: allKinds, objects: []client.Object{secret(keys), node(false)}, missing: "deployments in assay-system", remedy: "--system-namespace"},
		"the namespace is not a run's":      {kinds: allKinds, objects: []client.Object{operator(2), node(false)}, missing: "Secret default/assay-ledger", remedy: "runNamespaces"},
		"the Secret lacks a key":            {kinds: allKinds, objects: []client.Object{operator(2), secret(map[string][]byte{"accessKey": []byte("a")}), node(false)}, missing: "Secret default/assay-ledger", remedy: "accessKey and secretKey"},
		"the store's certificate expired": {
			kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false)}, missing: "ledger", remedy: "renew",
			says: broken(func(r *dependencies.Report) {
				r.Ledger = dependencies.Finding{Reason: "LedgerCertificateRefused", Found: "x509", Remedy: "renew the store's certificate"}
			}),
		},
		"Argo's CRDs are older than needed": {
			kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false)}, missing: "Argo", remedy: "see the finding",
			says: broken(func(r *dependencies.Report) {
				r.Engine = dependencies.Finding{Name: "Argo", Reason: "EngineTooOld", Found: "spec.x"}
			}),
		},
		"Prometheus is missing, which runs do not need": {
			kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false)},
			says: broken(func(r *dependencies.Report) {
				r.Prometheus = dependencies.Finding{Found: "nobody", Remedy: "bundled"}
			}),
		},
		"the operator cannot be asked": {
			kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false)}, missing: "ledger and Argo", remedy: "port-forward", mute: errors.New("forbidden"),
		},
		"an operator that is not ready is not asked": {
			kinds: allKinds, objects: []client.Object{operator(0), secret(keys), node(false)}, missing: "deployment assay-operator", mute: errors.New("no pod"), remedy: "kubectl describe",
			and: "ledger and Argo",
		},
		"the operator is scaled to zero": {
			kinds: allKinds, objects: []client.Object{of(0, 0), secret(keys), node(false)}, missing: "deployment assay-operator",
			remedy: "kubectl scale deployment -n assay-system assay-operator --replicas=1", mute: errors.New("no pod"), and: "ledger and Argo",
		},
		"the policy cannot be read": {
			kinds: allKinds, objects: []client.Object{operator(2, "--policy={maxNode: 1}"), secret(keys), node(false)},
			missing: "policy of namespace default", remedy: "policy of charts/assay",
		},
		"another Argo controller is too old": {
			kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false), controller("quay.io/argoproj/workflow-controller:v3.6.19")},
			missing: "Argo controller argo/workflow-controller", remedy: "v3.7",
		},
		"another Argo controller is new enough": {
			kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false), controller("mirror:5000/argoproj/workflow-controller:v3.10.0@sha256:1"), controllerOf("b", "workflow-controller:v4.0.2"), controllerOf("c", "quay.io/argoproj/workflow-controller@sha256:1")},
		},
		"the operator watches other namespaces": {
			kinds: allKinds, objects: []client.Object{operator(2, "--namespaces=team-a,team-b"), secret(keys), node(false)}, missing: "namespace default", remedy: "runNamespaces",
		},
		"Secrets of other names are those that the operator names": {
			kinds: allKinds, objects: []client.Object{
				operator(2, "--ledger-secret=s3", "--ledger-secret-access-key=id", "--ledger-secret-secret-key=key", "--ledger-ca-secret=ca",
					"--namespaces=default"),
				named("s3", map[string][]byte{"id": []byte("a"), "key": []byte("b")}), named("ca", map[string][]byte{"ca.crt": trusted}),
				node(false),
			},
		},
		"the authority's Secret is missing": {
			kinds: allKinds, objects: []client.Object{operator(2, "--ledger-ca-secret=ca"), secret(keys), node(false)}, missing: "Secret default/ca", remedy: "create the Secret",
		},
		"pods with a workload identity need no Secret": {
			kinds: allKinds, objects: []client.Object{operator(2, "--ledger-secret="), node(false)},
		},
		"every node is cordoned": {kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(true)}, missing: "nodes", remedy: "kubectl get nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := assayv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).Build()
			ask := func(context.Context) (*dependencies.Report, error) {
				if test.says == nil {
					return &fine, test.mute
				}
				return test.says, nil
			}
			var bad []finding
			for _, f := range examine(context.Background(), reader, test.kinds, "default", "assay-system", ask) {
				if !f.OK {
					bad = append(bad, f)
				}
			}
			switch {
			case test.missing == "" && len(bad) > 0:
				t.Errorf("doctor complains of %+v", bad)
			case test.and != "" && len(bad) == 2 && bad[1].Check == test.and && bad[0].Check == test.missing &&
				strings.Contains(bad[0].Remedy, test.remedy):
			case test.missing != "" && (len(bad) != 1 || bad[0].Check != test.missing || !strings.Contains(bad[0].Remedy, test.remedy)):
				t.Errorf("doctor says %+v; want %s with remedy %q", bad, test.missing, test.remedy)
			}
		})
	}
}
