package upgrade

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/figures"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

var figureFile = flag.String("figures", "", "file for the figure upgrade.lost, one JSON line")

//go:embed previous
var previous string

// objects is the least number of objects of the long form.
const objects = 1000

// repository is the root of the tree.
var repository = filepath.Join("..", "..", "..")

// git returns the output of git in the repository.
func git(args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = repository
	out, err := command.Output()
	return string(out), err
}

// TestUpgrade_ObjectsOfThePreviousReleaseAreKept creates the runs, templates and schedules that the previous release shipped, finished,
// running and new ones, changes the definitions to this release and back, and compares every field after each change. Objects that are
// missing, that have other fields, that this release cannot decode, or that cannot be written any more, are lost.
func TestUpgrade_ObjectsOfThePreviousReleaseAreKept(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are: run make test")
	}
	commit := strings.TrimSpace(previous)
	listed, err := git("ls-tree", "-r", "--name-only", commit, "--", "charts/assay/crds", "charts/assay/files/benchmarktemplates",
		"workflows")
	if err != nil {
		t.Skipf("commit %s of the previous release is not in this clone: git fetch --unshallow", commit)
	}
	before, shipped := t.TempDir(), []*unstructured.Unstructured{}
	for _, path := range strings.Fields(listed) {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		text, err := git("show", commit+":"+path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, "charts/assay/crds/") {
			if err := os.WriteFile(filepath.Join(before, filepath.Base(path)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			object := &unstructured.Unstructured{}
			if yaml.Unmarshal([]byte(document), &object.Object) == nil && object.GetAPIVersion() == "assay.dev/v1alpha1" {
				shipped = append(shipped, object)
			}
		}
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{before}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	config.QPS = -1
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	published := func() []byte {
		paths, err := discovery.NewDiscoveryClientForConfigOrDie(config).OpenAPIV3().Paths()
		if err != nil || paths["apis/assay.dev/v1alpha1"] == nil {
			return nil
		}
		schema, err := paths["apis/assay.dev/v1alpha1"].Schema("application/json")
		if err != nil {
			return nil
		}
		return schema
	}
	// define replaces the definitions, and waits until the API server serves them.
	define := func(folder string) {
		t.Helper()
		old := published()
		if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{folder}}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); bytes.Equal(published(), old); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the definitions of %s are not served", folder)
			}
		}
	}

	want := objects
	if testing.Short() {
		want = 100
	}
	stored := create(t, cluster, shipped, want)
	lost := map[string]string{}
	check := func(when string) {
		t.Helper()
		for id, old := range stored {
			if why := loss(t, cluster, old); why != "" {
				lost[id] = when + ": " + why
			}
		}
	}
	define(filepath.Join(repository, "charts", "assay", "crds"))
	check("after the upgrade")
	define(before)
	check("after the rollback")
	for id, why := range lost {
		t.Errorf("%s %s", id, why)
	}
	t.Logf("%d objects of %d files of the previous release, %d lost", len(stored), len(shipped), len(lost))
	if *figureFile != "" && !testing.Short() {
		file, err := os.Create(*figureFile)
		if err != nil {
			t.Fatal(err)
		}
		value := float64(len(lost))
		err = figures.Figure{Figure: "upgrade.lost", Value: value, Unit: "1", Low: value, High: value, Samples: len(stored)}.Write(file)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// create stores copies of the objects under different names until there are enough: the runs among them new, running and finished.
func create(t *testing.T, cluster client.Client, shipped []*unstructured.Unstructured, want int) map[string]*unstructured.Unstructured {
	t.Helper()
	stored := map[string]*unstructured.Unstructured{}
	var refused []string
	for n := 0; len(stored) < want; n++ {
		if n >= 3*want+len(shipped) {
			t.Fatalf("the previous release accepts %d objects, want %d: %s", len(stored), want, strings.Join(refused, "; "))
		}
		object := shipped[n%len(shipped)].DeepCopy()
		object.SetNamespace("default")
		object.SetName(fmt.Sprintf("%.40s-%d", object.GetName(), n))
		object.SetFinalizers([]string{"assay.dev/test"})
		if err := cluster.Create(t.Context(), object); err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", object.GetName(), err))
			continue
		}
		if state := states[n%len(states)]; object.GetKind() == "BenchmarkRun" && state != nil {
			object.Object["status"] = runtime.DeepCopyJSON(state)
			if err := cluster.Status().Update(t.Context(), object); err != nil {
				t.Fatalf("%s: %v", object.GetName(), err)
			}
		}
		stored[object.GetKind()+"/"+object.GetName()] = object
	}
	return stored
}

// states are the statuses of a new, a running and a finished run.
var states = []map[string]any{
	nil,
	{"phase": "Running", "experiment": "0123456789abcdef", "wave": int64(0),
		"ledger":    "s3://assay/runs/default/a/1?endpoint=http://minio:9000",
		"execution": "a-w0", "startTime": "2026-11-30T12:00:00Z", "trials": map[string]any{"planned": int64(16), "done": int64(4)}},
	{"phase": "Succeeded", "verdict": "Go", "best": "b", "experiment": "0123456789abcdef", "wave": int64(1),
		"ledger":    "s3://assay/runs/default/b/2?endpoint=http://minio:9000",
		"startTime": "2026-11-30T12:00:00Z", "completionTime": "2026-11-30T13:00:00Z",
		"candidates": []any{map[string]any{"name": "b", "verdict": "Go", "gain": "b is 2 times as fast"}},
		"conditions": []any{map[string]any{"type": "Complete", "status": "True", "reason": "Analysed", "message": "done",
			"lastTransitionTime": "2026-11-30T13:00:00Z"}}},
}

// loss explains the loss of a stored object; empty for one that is there with every field, can be decoded and can be written.
func loss(t *testing.T, cluster client.Client, old *unstructured.Unstructured) string {
	t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(old.GroupVersionKind())
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(old), now); err != nil {
		return err.Error()
	}
	for _, part := range []string{"spec", "status"} {
		if path := missing(old.Object[part], now.Object[part], part); path != "" {
			return path + " is missing or different"
		}
	}
	typed := map[string]any{"BenchmarkRun": &assayv1alpha1.BenchmarkRun{}, "BenchmarkTemplate": &assayv1alpha1.BenchmarkTemplate{},
		"BenchmarkSchedule": &assayv1alpha1.BenchmarkSchedule{}, "BenchmarkRevision": &assayv1alpha1.BenchmarkRevision{}}[old.GetKind()]
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(now.Object, typed, true); err != nil {
		return "this release cannot decode it: " + err.Error()
	}
	written := now.DeepCopy()
	written.SetAnnotations(map[string]string{"written-at": time.Now().Format(time.RFC3339Nano)})
	if err := cluster.Update(t.Context(), written); err != nil {
		return "it cannot be written: " + err.Error()
	}
	return ""
}

// missing returns the path of the first value of a tree that another tree does not have. New values of the other, as of defaults, are no
// loss.
func missing(old, now any, path string) string {
	switch old := old.(type) {
	case map[string]any:
		other, _ := now.(map[string]any)
		for key, value := range old {
			if at := missing(value, other[key], path+"."+key); at != "" {
				return at
			}
		}
		return ""
	case []any:
		other, _ := now.([]any)
		if len(other) != len(old) {
			return path
		}
		for i := range old {
			if at := missing(old[i], other[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	default:
		if !reflect.DeepEqual(old, now) {
			return path
		}
		return ""
	}
}

// TestUpgrade_LedgersOfThePreviousReleaseAreRead reads the archives of the previous release: each experiment, and every attempt that it
// lists.
func TestUpgrade_LedgersOfThePreviousReleaseAreRead(t *testing.T) {
	commit := strings.TrimSpace(previous)
	listed, err := git("ls-tree", "-r", "--name-only", commit, "--", "workflows")
	if err != nil {
		t.Skipf("commit %s of the previous release is not in this clone: git fetch --unshallow", commit)
	}
	archives, attempts := 0, 0
	for _, path := range strings.Fields(listed) {
		if !strings.HasSuffix(path, store.ArchiveExtension) || testing.Short() && archives == 4 {
			continue
		}
		archives++
		raw, err := git("show", commit+":"+path)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "ledger"+store.ArchiveExtension)
		if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := store.OpenFolder(t.Context(), file)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if _, err := ledger.ReadExperiment(t.Context(), opened); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		last, err := ledger.LastWave(t.Context(), opened)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		evidence, err := ledger.ReadEvidence(t.Context(), opened, last)
		if err != nil || len(evidence.Problems) > 0 {
			t.Errorf("%s: %v %v", path, err, evidence.Problems)
		}
		keys := 0
		err = store.EachPage(t.Context(), opened, ledger.AttemptsPrefix, "", func(page []string) error {
			keys += len(page)
			return nil
		})
		if read := len(evidence.Attempts); err != nil || read == 0 || read != keys {
			t.Errorf("%s: %d of %d attempts are read (%v)", path, read, keys, err)
		}
		attempts += len(evidence.Attempts)
	}
	if archives == 0 {
		t.Errorf("commit %s has no archive of a ledger", commit)
	}
	t.Logf("%d attempts of %d archives of the previous release are read", attempts, archives)
}

func TestMissing_PathOfTheFirstLoss(t *testing.T) {
	old := map[string]any{"a": []any{map[string]any{"b": int64(1)}}, "c": "x"}
	for now, want := range map[string]string{
		`{"a": [{"b": 1}], "c": "x"}`:         "",
		`{"a": [{"b": 1, "n": 2}], "c": "x"}`: "",
		`{"a": [{"b": 2}], "c": "x"}`:         "spec.a[0].b",
		`{"a": [{}], "c": "x"}`:               "spec.a[0].b",
		`{"a": [], "c": "x"}`:                 "spec.a",
		`{"a": [{"b": 1}]}`:                   "spec.c",
	} {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(`{"apiVersion": "a/v1", "kind": "K", "spec": ` + now + `}`)); err != nil {
			t.Fatal(err)
		}
		if got := missing(old, object.Object["spec"], "spec"); got != want {
			t.Errorf("%s: %q, want %q", now, got, want)
		}
	}
}
