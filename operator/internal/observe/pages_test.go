package observe

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/lease"
	"assay.dev/assay/operator/internal/pages"
	"assay.dev/assay/operator/internal/record"
)

// pagedReader lists objects of one kind in pages, like an API server, and records the size of the largest page.
type pagedReader struct {
	client.Reader
	of      client.ObjectList
	objects []runtime.Object
	largest int
}

func (r *pagedReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if reflect.TypeOf(list) != reflect.TypeOf(r.of) {
		return r.Reader.List(ctx, list, options...)
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	from, to := 0, len(r.objects)
	if _, err := fmt.Sscan(asked.Continue, &from); asked.Continue != "" && err != nil {
		return err
	}
	if asked.Limit > 0 && from+int(asked.Limit) < to {
		to = from + int(asked.Limit)
		list.SetContinue(fmt.Sprint(to))
	}
	r.largest = max(r.largest, to-from)
	return meta.SetList(list, r.objects[from:to])
}

// A namespace can have any number of Workflows of up to a megabyte and of failed pods, which are retained for a week. The operator lists
// all of them for a node without a Lease.
func TestOrphans_AreListedInPages(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, argo.AddToScheme, assayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan"}}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).Build()
	labels := executor.Labels(record.Run{Namespace: "lab", Name: "scan", UID: "u"}, 0)
	var flows, pods []runtime.Object
	for i := range 500 {
		at := metav1.ObjectMeta{Namespace: "lab", Name: fmt.Sprint("scan-", i), Labels: labels}
		flows = append(flows, &argo.Workflow{ObjectMeta: at, Status: argo.Status{Phase: "Succeeded"}})
		pods = append(pods, &corev1.Pod{ObjectMeta: at, Spec: corev1.PodSpec{NodeName: "node-a"},
			Status: corev1.PodStatus{Phase: corev1.PodFailed}})
	}
	last := pods[len(pods)-1].(*corev1.Pod)
	last.Status.Phase = corev1.PodRunning
	for kind, reader := range map[string]*pagedReader{
		"workflows": {Reader: inner, of: &argo.WorkflowList{}, objects: flows},
		"pods":      {Reader: inner, of: &corev1.PodList{}, objects: pods},
	} {
		want := map[string]string{"workflows": "", "pods": "pod lab/" + last.Name}[kind]
		engine := &argo.Executor{Live: reader}
		if got, err := OthersOn(t.Context(), engine, inner, reader, lease.Holder{UID: "v"}, "node-a"); err != nil || got != want {
			t.Errorf("%s: %q is on the node, %v, want %q", kind, got, err, want)
		}
		want = strings.Replace(want, "lab/", "", 1)
		if got, err := Busy(t.Context(), engine, reader, lease.Holder{Namespace: "lab", UID: "u"}, "node-a", ""); err != nil || got != want {
			t.Errorf("%s: the holder is busy with %q, %v, want %q", kind, got, err, want)
		}
		if reader.largest != pages.Size {
			t.Errorf("%s: a page of %d, want %d", kind, reader.largest, pages.Size)
		}
	}
}

// All lists that bypass the caches use Each, which limits memory.
func TestPages_OnlyEachListsPastTheCaches(t *testing.T) {
	lists := regexp.MustCompile(`(?i)\b(\w*live|\w*APIReader\(\))\.List\(.*`)
	looked := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, found := range lists.FindAllString(string(raw), -1) {
			if !strings.Contains(found, "client.Limit(1)") { // Asks whether the list may be read.
				t.Errorf("%s lists with %s: use pages.Each, which reads one page at a time", path, found)
			}
		}
		looked++
		return err
	})
	if err != nil || looked < 100 {
		t.Errorf("%d files checked: %v", looked, err)
	}
}
