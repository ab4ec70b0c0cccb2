package e2e

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// digestOf is that of the only image in an archive.
func digestOf(t *testing.T, archive string) string {
	t.Helper()
	if !filepath.IsAbs(archive) {
		archive = filepath.Join(root, archive)
	}
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no index.json", archive)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct {
				Digest string `json:"digest"`
			} `json:"manifests"`
		}
		if err := json.NewDecoder(reader).Decode(&index); err != nil || len(index.Manifests) != 1 {
			t.Fatalf("%s: %+v, %v", archive, index, err)
		}
		return index.Manifests[0].Digest
	}
}

// CI records two revisions. The schedule measures each beside the anchor, and whoever may read the namespace reads its history by name.
func TestAScheduleFollowsWhatCIRecords(t *testing.T) {
	if mode := os.Getenv("CLUSTER"); mode != "" && mode != "embedded" {
		t.Skipf("CLUSTER=%s: images that are loaded there have no name by digest; push them to a registry", mode)
	}
	// What a store has of an earlier run of this test is another series.
	series := fmt.Sprintf("primes-%d", time.Now().Unix())
	schedule := &assayv1alpha1.BenchmarkSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: series},
		Spec: assayv1alpha1.BenchmarkScheduleSpec{
			Series: series, Schedule: "* * * * *", Source: assayv1alpha1.ScheduleSource{Type: assayv1alpha1.RevisionSource},
			OnChange: &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{Waves: 2, Runs: 2}},
			RunTemplate: assayv1alpha1.BenchmarkRunTemplate{Spec: assayv1alpha1.BenchmarkRunSpec{
				Template: &assayv1alpha1.BenchmarkTemplateSpec{
					Image: "assay.dev/primes:old", Command: []string{"/primes"},
					Parameters: []assayv1alpha1.Parameter{{Name: "below"}, {Name: "iterations"}},
					Metrics: []assayv1alpha1.Metric{
						{Name: "duration", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, SamplesFrom: "iterations"},
					},
				},
				Parameters:  values{"below": "300000", "iterations": "5"},
				Arms:        []assayv1alpha1.Arm{{Name: "head"}},
				Design:      assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 3, Max: 3}},
				Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
				Gates:       []assayv1alpha1.Gate{{Name: "no-slower", Metric: "duration", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}},
			}},
		},
	}
	if err := kube.Create(context.Background(), schedule); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = try("kubectl", "delete", "benchmarkschedule", series, "-n", namespace, "--ignore-not-found")
	})
	for i, build := range []struct{ revision, method string }{{"r1", "division"}, {"r2", "sieve"}} {
		digest := digestOf(t, primes(t, build.revision, build.method, "/primes"))
		recorded := []string{"record", "--series", series, "--revision", build.revision, "--image", "assay.dev/primes@" + digest, "-n", namespace}
		command(t, "bin/assay", recorded...)
		command(t, "bin/assay", recorded...) // A step of CI that is repeated records nothing more.
		eventually(t, 6*time.Minute, build.revision+" is in the history", func() (bool, string) {
			if err := kube.Get(context.Background(), client.ObjectKeyFromObject(schedule), schedule); err != nil {
				return false, err.Error()
			}
			status := &schedule.Status
			return status.Predecessor != nil && status.Predecessor.Revision == build.revision && len(status.Active) == 0,
				fmt.Sprintf("%+v", *status)
		})
		if got := schedule.Status.LastSequence; got != int64(i+1) {
			t.Errorf("after %s number %d was given", build.revision, got)
		}
	}
	type view struct {
		Anchor   string
		Segments []struct {
			Points []struct {
				Revision string
				Ratio    struct{ Ratio, Low, High float64 }
			}
		}
		Gaps []any
	}
	found := parse[[]view](t, command(t, "bin/assay", "history", series, "-n", namespace, "-o", "json"))
	if len(found) != 1 || found[0].Anchor != "r1" || len(found[0].Segments) != 1 || len(found[0].Segments[0].Points) != 2 ||
		len(found[0].Gaps) > 0 {
		t.Fatalf("the history is %+v", found)
	}
	if last := found[0].Segments[0].Points[1]; last.Revision != "r2" || !(last.Ratio.Low > 0 && last.Ratio.High < 1) {
		t.Errorf("a sieve is faster than division, and its point is %+v", last)
	}
	exits(t, 0, "CHANGE", "bin/assay", "changes", "-n", namespace)
}
