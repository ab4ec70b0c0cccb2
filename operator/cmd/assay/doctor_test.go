package main

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestDoctor(t *testing.T) {
	allKinds := map[string]bool{"assay.dev/v1alpha1/BenchmarkRun": true, "assay.dev/v1alpha1/BenchmarkTemplate": true, "argoproj.io/v1alpha1/Workflow": true}
	operator := func(ready int32) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: "assay-operator", Labels: map[string]string{"app.kubernetes.io/part-of": "assay"}},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
		}
	}
	secret := func(data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "assay-ledger"}, Data: data}
	}
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
		missing string // part of the one check that fails; empty when all is well
		remedy  string
	}{
		"all is well":                       {kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false), template}},
		"templates are not needed":          {kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(false)}},
		"Argo's kind is not served":         {kinds: map[string]bool{"assay.dev/v1alpha1/BenchmarkRun": true, "assay.dev/v1alpha1/BenchmarkTemplate": true}, objects: []client.Object{operator(2), secret(keys), node(false)}, missing: "argoproj.io/v1alpha1/Workflow", remedy: "install Argo"},
		"one of two operators is not ready": {kinds: allKinds, objects: []client.Object{operator(1), secret(keys), node(false)}, missing: "deployment assay-operator", remedy: "kubectl describe deployment -n assay-system assay-operator"},
		"nothing is installed there":        {kinds: allKinds, objects: []client.Object{secret(keys), node(false)}, missing: "deployments in assay-system", remedy: "--system-namespace"},
		"the namespace is not a run's":      {kinds: allKinds, objects: []client.Object{operator(2), node(false)}, missing: "Secret default/assay-ledger", remedy: "runNamespaces"},
		"the Secret lacks a key":            {kinds: allKinds, objects: []client.Object{operator(2), secret(map[string][]byte{"accessKey": []byte("a")}), node(false)}, missing: "Secret default/assay-ledger", remedy: "both keys"},
		"every node is cordoned":            {kinds: allKinds, objects: []client.Object{operator(2), secret(keys), node(true)}, missing: "nodes", remedy: "kubectl get nodes"},
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
			var bad []finding
			for _, f := range examine(context.Background(), reader, test.kinds, "default", "assay-system") {
				if !f.OK {
					bad = append(bad, f)
				}
			}
			switch {
			case test.missing == "" && len(bad) > 0:
				t.Errorf("doctor complains of %+v", bad)
			case test.missing != "" && (len(bad) != 1 || bad[0].Check != test.missing || !strings.Contains(bad[0].Remedy, test.remedy)):
				t.Errorf("doctor says %+v; want %s with remedy %q", bad, test.missing, test.remedy)
			}
		})
	}
}
