package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"assay.dev/assay/charts/test/generate"
)

// kustomized returns the objects that kustomize builds from a folder of operator/config.
func kustomized(t *testing.T, folder string) *rendered {
	t.Helper()
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	built, err := kustomizer.Run(filesys.MakeFsOnDisk(), filepath.Join(repository, generate.Config, folder))
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return &rendered{objects: decode(t, string(text))}
}

// charted returns the chart's objects with the same values.
func charted(t *testing.T) *rendered {
	t.Helper()
	values, err := os.ReadFile(filepath.Join(repository, generate.Values))
	if err != nil {
		t.Fatal(err)
	}
	return render(t, string(values))
}

// Developers and users install the same operator, with the same arguments and rights.
func TestKustomize_InstallsTheOperatorOfTheChart(t *testing.T) {
	built, chart := kustomized(t, "default"), charted(t)

	want := into[appsv1.DeploymentSpec](t, chart.find(t, "Deployment/assay-system/assay-operator"), "spec").Template.Spec
	got := into[appsv1.DeploymentSpec](t, built.find(t, "Deployment/assay-system/assay-operator"), "spec").Template.Spec
	if !slices.Equal(got.Containers[0].Args, want.Containers[0].Args) {
		t.Errorf("its arguments are\n%v\nand the chart's\n%v", got.Containers[0].Args, want.Containers[0].Args)
	}
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("its pod is\n%+v\nand the chart's\n%+v", got, want)
	}
	for _, kind := range []string{"ClusterRole", "Role"} {
		for _, object := range chart.of(kind) {
			component := object.GetLabels()["app.kubernetes.io/component"]
			if component != "operator" && component != "runs" || isForPeople(object) {
				continue
			}
			want, got := rulesOf(t, object), rulesOf(t, built.find(t, identity(object)))
			if !apiequality.Semantic.DeepEqual(got, want) {
				t.Errorf("%s allows\n%+v\nand the chart's\n%+v", identity(object), got, want)
			}
		}
	}
}

// isForPeople reports whether Kubernetes' own roles take the object's rules in: people of a cluster have them through the chart alone.
func isForPeople(object unstructured.Unstructured) bool {
	for label := range object.GetLabels() {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	return false
}

// Every right of kustomize is written in operator/config/rbac.
func TestKustomize_GrantsTheRightsOfTheMarkers(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, generate.Config, "rbac/role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	built := kustomized(t, "rbac")
	for _, object := range decode(t, string(raw)) {
		id := "ClusterRole/assay-operator"
		if object.GetKind() == "Role" {
			id = "Role/default/assay-operator-runs"
		}
		want, got := rulesOf(t, object), rulesOf(t, built.find(t, id))
		if !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s allows\n%+v\nand the markers say\n%+v", id, got, want)
		}
	}
}

// make install, deploy, undeploy and uninstall work on any cluster that KUBECONFIG names.
func TestKustomize_MakeInstallsAndDeploys(t *testing.T) {
	c := startCluster(t)
	run := func(target string, settings ...string) {
		t.Helper()
		kubectl := "KUBECTL=" + filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
		command := exec.Command("make", append([]string{"-C", repository, target, kubectl}, settings...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	// is reports whether the object is there to stay.
	is := func(object unstructured.Unstructured) bool {
		t.Helper()
		got := object.DeepCopy()
		err := c.Get(t.Context(), client.ObjectKeyFromObject(&object), got)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil && got.GetDeletionTimestamp() == nil
	}
	definitions, all := kustomized(t, "crd"), kustomized(t, "default")

	run("install")
	for _, object := range definitions.objects {
		if !is(object) {
			t.Errorf("make install leaves %s out", identity(object))
		}
	}
	run("deploy", "IMG=registry.example/operator:7", "LEDGER=s3://mine?endpoint=http://store:9000&region=r")
	for _, object := range all.objects {
		if !is(object) {
			t.Errorf("make deploy leaves %s out", identity(object))
		}
	}
	var deployed appsv1.Deployment
	operator := all.find(t, "Deployment/assay-system/assay-operator")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&operator), &operator); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(operator.Object, &deployed); err != nil {
		t.Fatal(err)
	}
	manager := deployed.Spec.Template.Spec.Containers[0]
	// The last of several counts.
	for _, want := range []string{"--operator-image=registry.example/operator:7", "--ledger=s3://mine?endpoint=http://store:9000&region=r"} {
		name, _, _ := strings.Cut(want, "=")
		last := ""
		for _, arg := range manager.Args {
			if strings.HasPrefix(arg, name+"=") {
				last = arg
			}
		}
		if last != want {
			t.Errorf("the operator is told %q, want %q", last, want)
		}
	}
	if manager.Image != "registry.example/operator:7" {
		t.Errorf("the operator's image is %q", manager.Image)
	}
	run("undeploy", "WAIT=false") // Nothing here ends a namespace.
	for _, object := range all.objects {
		if is(object) {
			t.Errorf("make undeploy leaves %s", identity(object))
		}
	}
	run("uninstall")
}
