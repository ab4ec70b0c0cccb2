package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// primes builds the example's program by a method, puts it into an image and the image onto the cluster's node, and returns its archive.
func primes(t *testing.T, tag, method, path string) (archive string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "primes")
	t.Setenv("CGO_ENABLED", "0")
	command(t, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.method="+method, "-o", program,
		"./workflows/examples/compare-two-images/primes/main.go")
	archive = strings.TrimSpace(command(t, "bin/cluster", "images", "add", "--name", "assay.dev/primes:"+tag, "--file", path+"="+program,
		"--entrypoint", path, "--user", "65532"))
	mode := os.Getenv("CLUSTER")
	if mode == "" {
		mode = "embedded"
	}
	command(t, "bin/cluster", "load", "--mode", mode, archive)
	return archive
}

func softKey(attempt map[string]any, key string) string {
	environment, _ := attempt["environment"].(map[string]any)
	soft, _ := environment["soft"].(map[string]any)
	value, _ := soft[key].(string)
	return value
}

// Two builds of a program in two images: their trials alternate in one pod, and the faster one wins.
func TestImages_TwoImagesAreCompared(t *testing.T) {
	long(t)
	const name = "compare-two-images"
	primes(t, "old", "division", "/primes")
	primes(t, "new", "sieve", "/primes")
	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	command(t, "kubectl", "apply", "-n", namespace, "-f", "workflows/examples/compare-two-images/run.yaml")
	run := untilComplete(t, name, 4*time.Minute)
	wins(t, run, "new", "a sieve is faster than division")

	digests, executors := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, attempt := range attempts(t, name) {
		arm, id := attempt["arm"].(string), attempt["id"].(string)
		if attempt["outcome"] != "Succeeded" {
			t.Errorf("attempt %s is %v: %v", id, attempt["outcome"], attempt["message"])
		}
		if got, want := softKey(attempt, "image"), "assay.dev/primes:"+arm; got != want {
			t.Errorf("attempt %s of arm %s says image %q, want %q", id, arm, got, want)
		}
		if softKey(attempt, "imageFilesDigest") == "" {
			t.Errorf("attempt %s has no digest of the copied program", id)
		}
		if digests[arm] == nil {
			digests[arm] = map[string]bool{}
		}
		digests[arm][softKey(attempt, "programDigest")] = true
		pod, _, _ := strings.Cut(id, "/")
		if executors[pod] == nil {
			executors[pod] = map[string]bool{}
		}
		executors[pod][arm] = true
	}
	for arm, of := range digests {
		if len(of) != 1 || of[""] {
			t.Errorf("arm %s ran programs with digests %v, want one", arm, of)
		}
	}
	for digest := range digests["old"] {
		if digests["new"][digest] {
			t.Errorf("both arms ran the program with digest %s", digest)
		}
	}
	if len(executors) != 5 {
		t.Errorf("%d pods for 5 blocks", len(executors))
	}
	for pod, arms := range executors {
		if len(arms) != 2 {
			t.Errorf("pod %s ran %v; the trials of both arms alternate in one pod", pod, arms)
		}
	}
}

// An image without the program costs its arm its trials, with the reason in each, and the other arm nothing.
func TestImages_MissingProgramIsReported(t *testing.T) {
	primes(t, "old", "division", "/primes")
	primes(t, "elsewhere", "sieve", "/app/primes")
	run := &assayv1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "image-without-program"},
		Spec: assayv1alpha1.BenchmarkRunSpec{
			Template: &assayv1alpha1.BenchmarkTemplateSpec{
				Image: "assay.dev/primes:old", Command: []string{"/primes"},
				Metrics: []assayv1alpha1.Metric{{Name: "duration", Unit: "s", Direction: assayv1alpha1.LowerIsBetter}},
			},
			Arms:   []assayv1alpha1.Arm{{Name: "old", Baseline: true}, {Name: "new", Image: "assay.dev/primes:elsewhere"}},
			Design: assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 2, Max: 2}},
		},
	}
	apply(t, run)
	done := untilComplete(t, run.Name, 3*time.Minute)
	all := attempts(t, run.Name)
	if len(all) != 12 { // A visit of three trials for each arm and block.
		t.Errorf("%d attempts, want one for each trial of both arms: %s", len(all), conditions(done))
	}
	for _, attempt := range all {
		message, _ := attempt["message"].(string)
		switch {
		case attempt["arm"] == "old" && attempt["outcome"] != "Succeeded":
			t.Errorf("attempt %v of the arm that is sound is %v: %s", attempt["id"], attempt["outcome"], message)
		case attempt["arm"] == "new" &&
			(attempt["outcome"] != "Failed" || !strings.Contains(message, "image assay.dev/primes:elsewhere: /primes: No such file")):
			t.Errorf("attempt %v is %v and says %q, want that its image has no /primes", attempt["id"], attempt["outcome"], message)
		}
	}
}
