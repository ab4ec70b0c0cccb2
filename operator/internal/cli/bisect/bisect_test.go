package bisect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/test/clitest"
)

// TestBisection_OnCluster has images in a registry, one of which comes late and one never, and a cluster whose runs are simulated.
func TestBisection_OnCluster(t *testing.T) {
	var names []string
	var made []*assayv1alpha1.BenchmarkRun
	var revisions []string
	for i := range 20 {
		revisions = append(revisions, fmt.Sprintf("c%d", i))
	}
	late, clock := 2, time.Now()
	o := bisectOptions{
		file: filepath.Join("..", "root", "testdata", "bisect.yaml"), good: "c0", bad: "c19", revisions: revisions, image: "registry.test/echo:{revision}",
		state: filepath.Join(t.TempDir(), "state"), form: "json", blocks: 4, waves: 6, certain: 0.95, layout: bisect.Layout, buildTime: time.Hour,
		wait: time.Minute, stderr: &bytes.Buffer{},
		now: func() time.Time { clock = clock.Add(59990 * time.Millisecond); return clock },
	}
	o.resolve = func(_ context.Context, reference string) schedule.Image {
		names = append(names, reference)
		_, revision, _ := strings.Cut(reference, ":c")
		if late--; revision == "14" || revision == "0" && late > 0 {
			return schedule.Image{Vanished: "no such tag"}
		}
		return schedule.Image{Revision: assayv1alpha1.Revision{Image: fmt.Sprintf("registry.test/echo@sha256:%064s", revision)}}
	}
	broken := true
	o.execute = func(_ context.Context, run *assayv1alpha1.BenchmarkRun) (*cli.AnalyzedLedger, error) {
		made = append(made, run)
		if broken {
			return nil, errors.New("the API server is away")
		}
		return simulatedRun(t, run, func(image string) float64 {
			number, err := strconv.Atoi(strings.TrimLeft(strings.TrimPrefix(image, "registry.test/echo@sha256:"), "0"))
			if err == nil && number >= 13 {
				return 0.011
			}
			return 0.01
		}), nil
	}
	var out bytes.Buffer
	o.stdout = &out
	first := o
	err := o.run(t.Context(), genericclioptions.NewConfigFlags(true))
	if err == nil || !strings.Contains(err.Error(), "the API server is away") {
		t.Fatalf("%v", err)
	}
	broken = false
	if err := first.run(t.Context(), genericclioptions.NewConfigFlags(true)); cli.ExitCode(err) != cli.ExitNoGo {
		t.Fatalf("%v\n%s", err, first.stderr)
	}
	var answer bisect.Answer
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Culprits) != 1 || answer.Culprits[0].At != "c13" ||
		len(answer.Skipped) != 1 || answer.Skipped[0].Revision != "c14" {
		t.Errorf("%v\n%s", err, out.String())
	}
	// A wave without an answer is created again under the same name, and every other wave has its own name.
	if len(made) < 3 || made[0].Name != made[1].Name || made[1].Name == made[2].Name || len(made[0].Name) > runs.NameLength ||
		made[0].Spec.Arms[0].Image == "" || !made[0].Spec.Arms[0].Baseline {
		t.Errorf("the runs are %+v", made)
	}
	if slices.Sort(names); names[0] != "registry.test/echo:c0" || names[1] != names[0] || len(slices.Compact(slices.Clone(names))) > 20 {
		t.Errorf("asked for %v", names)
	}
}

// simulatedRun returns the simulated analysis of a run with the given durations of its images.
func simulatedRun(t *testing.T, run *assayv1alpha1.BenchmarkRun, seconds func(image string) float64) *cli.AnalyzedLedger {
	t.Helper()
	exp, err := experiment.Freeze(record.Run{Namespace: "team", Name: run.Name, UID: run.Name}, *run.Spec.DeepCopy(), *run.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, int(run.Spec.Design.Blocks.Min))
	if err != nil {
		t.Fatal(err)
	}
	machine := fixture.Machine{
		Seed: uint64(len(run.Spec.Arms)), Noise: fixture.Noise{Block: 0.01, Arm: 0.001, Trial: 0.001},
		Seconds: func(_ record.Point, name string) float64 {
			return seconds(exp.Arms[slices.IndexFunc(exp.Arms, func(a record.Arm) bool { return a.Name == name })].Image)
		},
	}
	evidence := record.Evidence{Waves: []record.Wave{*wave}, Attempts: machine.Run(exp, wave)}
	return &cli.AnalyzedLedger{Where: "s3://ledger/" + run.Name, Experiment: exp, Analysis: analyze.Evidence(exp, evidence, 0)}
}

func TestBisection_HostileTextIsEscaped(t *testing.T) {
	for name, print := range map[string]func(io.Writer) error{
		"a step of a search": func(out io.Writer) error {
			b := &bisection{bisectOptions: bisectOptions{stderr: out}}
			b.printf("image of %s: %s\n", clitest.Hostile, clitest.Hostile)
			return nil
		},
		"an answer": func(out io.Writer) error {
			b := &bisection{bisectOptions: bisectOptions{stdout: out, form: "text"}}
			b.saved.Search.Key, b.saved.Subjects = clitest.HostileKey(), map[string]string{clitest.Hostile: clitest.Hostile}
			return b.print(&bisect.Answer{Skipped: []bisect.Skipped{{Revision: clitest.Hostile, Why: clitest.Hostile}},
				Culprits: []bisect.Culprit{{After: clitest.Hostile, At: clitest.Hostile, Among: []string{clitest.Hostile, clitest.Hostile}}}})
		},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckPrintable(t, print, false) })
	}
}
