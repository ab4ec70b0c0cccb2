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
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
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

// nightly creates a schedule that measures the recorded revisions of a series every minute. At the end of the test everything is removed
// but its history.
func nightly(t *testing.T, series string) *assayv1alpha1.BenchmarkSchedule {
	t.Helper()
	schedule := &assayv1alpha1.BenchmarkSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: series},
		Spec: assayv1alpha1.BenchmarkScheduleSpec{
			Series: series, Schedule: "* * * * *", Source: assayv1alpha1.ScheduleSource{Type: assayv1alpha1.RevisionSource},
			OnChange: &assayv1alpha1.OnChange{Locate: &assayv1alpha1.LocateChange{Waves: 2, Runs: 2}},
			RunTemplate: assayv1alpha1.BenchmarkRunTemplate{Spec: assayv1alpha1.BenchmarkRunSpec{
				Template: &assayv1alpha1.BenchmarkTemplateSpec{
					// The runner executes in it; the measured programs come from the recorded images.
					Image: "assay.dev/primes:old", Command: []string{"/primes"},
					Parameters: []assayv1alpha1.Parameter{{Name: "below"}, {Name: "iterations", Type: assayv1alpha1.IntegerParameter}},
					Metrics: []assayv1alpha1.Metric{
						{Name: "duration", Unit: "s", Direction: assayv1alpha1.LowerIsBetter, SamplesFrom: "iterations"},
					},
				},
				Parameters:  values{"below": "300000", "iterations": "5"},
				Arms:        []assayv1alpha1.Arm{{Name: "head"}},
				Design:      assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 5, Max: 5}},
				Placement:   assayv1alpha1.Placement{CPUs: 1, Memory: resource.MustParse("256Mi")},
				Environment: &assayv1alpha1.Environment{OnViolation: assayv1alpha1.ViolationWarn},
				Gates:       []assayv1alpha1.Gate{{Name: "no-slower", Metric: "duration", Op: assayv1alpha1.RatioAtMost, Bound: "1.05"}},
			}},
		},
	}
	if err := kube.Create(context.Background(), schedule); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := try("kubectl", "get", "benchmarkschedules,benchmarkrevisions", "-n", namespace, "-o", "yaml")
			t.Logf("schedules and revisions:\n%s", out)
		}
		runs := scheduleNow(t, series).Status.LastSequence
		command(t, "kubectl", "delete", "benchmarkschedule", series, "-n", namespace)
		for i := range runs {
			remove(t, fmt.Sprintf("%s-%d", series, i+1))
		}
		var recorded assayv1alpha1.BenchmarkRevisionList
		if err := kube.List(context.Background(), &recorded, client.InNamespace(namespace)); err != nil {
			t.Error(err)
		}
		for i := range recorded.Items {
			if r := &recorded.Items[i]; r.Spec.Series == series {
				if err := kube.Delete(context.Background(), r); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			}
		}
	})
	return schedule
}

// scheduleNow reads a schedule from the API server into a new object, because fields that an answer omits would keep old values.
func scheduleNow(t *testing.T, name string) *assayv1alpha1.BenchmarkSchedule {
	t.Helper()
	var s assayv1alpha1.BenchmarkSchedule
	if err := kube.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		t.Fatalf("BenchmarkSchedule %s: %v", name, err)
	}
	return &s
}

// untilMeasured waits until the run with a number of a schedule has added the point of a revision, and fails when it ends without one.
func untilMeasured(t *testing.T, series, revision string, number int64) {
	t.Helper()
	run := fmt.Sprintf("%s-%d", series, number)
	eventually(t, 8*time.Minute, "the history has the point of "+revision, func() (bool, string) {
		status := scheduleNow(t, series).Status
		saw, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		dealt := status.LastSequence >= number && status.Next == nil && len(status.Active) == 0
		if measured := status.Predecessor != nil && status.Predecessor.Revision == revision; dealt && !measured {
			dump(t)
			t.Fatalf("run %s has ended, and there is no point of %s: %s\nthe run: %s", run, revision, saw, conditions(getRun(t, run)))
		}
		if status.LastSequence > number {
			t.Fatalf("number %d was given, want the newest to be %d: %s", status.LastSequence, number, saw)
		}
		return dealt, string(saw)
	})
}

// CI records two revisions. The schedule measures each beside the anchor, and a reader of the namespace reads its history by name.
func TestSchedule_FollowsTheRevisionsThatCIRecords(t *testing.T) {
	long(t)
	if mode := os.Getenv("CLUSTER"); mode != "" && mode != "embedded" {
		t.Skipf("CLUSTER=%s: images that are loaded there have no name by digest; push them to a registry", mode)
	}
	primes(t, "old", "division", "/primes")
	// The history of an earlier run of this test is another series.
	series := fmt.Sprintf("primes-%d", time.Now().Unix())
	nightly(t, series)
	for i, build := range []struct{ revision, method string }{{"r1", "division"}, {"r2", "sieve"}} {
		digest := digestOf(t, primes(t, build.revision, build.method, "/primes"))
		recorded := []string{"record", "--series", series, "--revision", build.revision, "--image", "assay.dev/primes@" + digest, "-n", namespace}
		command(t, "bin/assay", recorded...)
		if again := command(t, "bin/assay", recorded...); !strings.Contains(again, "was recorded before") {
			t.Errorf("a step of CI that is repeated says %q", again)
		}
		untilMeasured(t, series, build.revision, int64(i+1))
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
	raw := command(t, "bin/assay", "history", series, "-n", namespace, "-o", "json")
	found := parse[[]view](t, raw)
	if len(found) != 1 || found[0].Anchor != "r1" || len(found[0].Segments) != 1 || len(found[0].Segments[0].Points) != 2 ||
		len(found[0].Gaps) > 0 {
		t.Fatalf("the history is %s", raw)
	}
	if last := found[0].Segments[0].Points[1]; last.Revision != "r2" || !(last.Ratio.Low > 0 && last.Ratio.High < 1) {
		t.Errorf("a sieve is faster than division, and its point is %+v", last)
	}
	exits(t, 0, "CHANGE", "bin/assay", "changes", "-n", namespace)
}

// A program becomes slower with one commit. Its schedule notices, confirms, searches and names it without intervention: make
// e2e-history, because nothing is suspected before a series has some ten points.
func TestSchedule_NamesTheCommitOfARegression(t *testing.T) {
	if os.Getenv("ASSAY_HISTORY_E2E") == "" {
		t.Skip("half an hour of nights that are minutes: run make e2e-history")
	}
	primes(t, "old", "sieve", "/primes")
	series := fmt.Sprintf("slower-%d", time.Now().Unix())
	nightly(t, series)
	const culprit, last = 12, 30
	type found struct {
		State    string
		Culprits []string
	}
	// is gives the changes that are in one of some states, and all of them as they are printed.
	is := func(states ...string) (some []found, saw string) {
		saw = command(t, "bin/assay", "changes", "-n", namespace, "-o", "json")
		var all struct{ Changes []found }
		if err := json.Unmarshal([]byte(saw), &all); err != nil {
			t.Fatalf("assay changes printed %s: %v", saw, err)
		}
		for _, one := range all.Changes {
			if slices.Contains(states, one.State) {
				some = append(some, one)
			}
		}
		return some, saw
	}
	known := []string{"Confirmed", "Locating", "Located"}
	for number := 1; number <= last; number++ {
		method := "sieve"
		if number >= culprit {
			method = "division"
		}
		revision := fmt.Sprintf("r%02d", number)
		digest := digestOf(t, primes(t, revision, method, "/primes"))
		command(t, "bin/assay", "record", "--series", series, "--revision", revision, "--image", "assay.dev/primes@"+digest, "-n", namespace)
		eventually(t, 8*time.Minute, "the history has the point of "+revision, func() (bool, string) {
			status := scheduleNow(t, series).Status
			saw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			return status.Predecessor != nil && status.Predecessor.Revision == revision, string(saw)
		})
		if some, saw := is(known...); number < culprit && len(some) > 0 {
			t.Fatalf("after %s, which is as fast as all before, there is a change: %s", revision, saw)
		}
		if some, _ := is(append(known, "Suspected")...); number >= culprit && len(some) > 0 {
			break // No further point is due: the confirming run and the search go on by themselves.
		}
	}
	eventually(t, 25*time.Minute, "the change is located", func() (bool, string) {
		some, saw := is("Located")
		return len(some) > 0, saw
	})
	want := []found{{"Located", []string{fmt.Sprintf("r%02d", culprit)}}}
	if some, saw := is(known...); !reflect.DeepEqual(some, want) {
		t.Errorf("the changes are %s, want %v", saw, want)
	}
}
