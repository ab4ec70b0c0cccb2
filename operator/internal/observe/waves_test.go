package observe

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// A run may have thousands of waves with plans of up to a megabyte. Finished waves are cached without their commands, which does not change
// decisions.
func TestWaves_FinishedWaveIsStoredWithoutCommands(t *testing.T) {
	const waves, much = 12, 200_000
	build := func(name string) assayv1alpha1.Build {
		return assayv1alpha1.Build{Name: name, Program: "/scan-" + name}
	}
	spec := assayv1alpha1.BenchmarkRunSpec{
		Arms: []assayv1alpha1.Arm{
			{Name: "loop", Baseline: true}, {Name: "fused", Builds: []assayv1alpha1.Build{build("a"), build("b")}},
		},
		Design: assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 24, Max: 24}},
	}
	template := assayv1alpha1.BenchmarkTemplateSpec{
		Image: "scan", Command: []string{"/scan", strings.Repeat("x", much)},
		Metrics: []assayv1alpha1.Metric{{Name: "time", Unit: "s", Direction: assayv1alpha1.LowerIsBetter}},
	}
	exp, err := experiment.Freeze(record.Run{Namespace: "lab", Name: "scan", UID: "1"}, spec, template)
	if err != nil {
		t.Fatal(err)
	}
	store, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(key string, value any) {
		raw, err := json.Marshal(value)
		if err == nil {
			err = store.Create(t.Context(), key, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(ledger.ExperimentKey, exp)
	course, memory := design.Begin(exp), &Memory{}
	var earlier remembered
	for number := range waves {
		lanes := []design.Lane{{Node: "a", Token: int64(number + 1)}, {Node: "b", Token: 1}}
		wave, err := design.BuildWave(exp, number, course.Blocks(), 2, lanes)
		if err != nil {
			t.Fatal(err)
		}
		course.Waves = append(course.Waves, *wave)
		write(ledger.WaveKey(number), wave)
		known, err := memory.read(t.Context(), store, "1")
		if err != nil {
			t.Fatal(err)
		}
		if newest := known.waves[number]; len(known.waves) != number+1 || !reflect.DeepEqual(newest, *wave) {
			t.Errorf("the newest of %d waves, which is to be run, is not whole", len(known.waves))
		}
		if number > 0 && !reflect.DeepEqual(earlier.waves[number-1], course.Waves[number-1]) {
			t.Error("a cached wave was modified in place")
		}
		course.Found.Valid, earlier = 2*number, known
		as := design.Course{Experiment: known.experiment, Waves: known.waves, Found: course.Found}
		if got, want := as.Next(), course.Next(); !reflect.DeepEqual(got, want) {
			t.Errorf("after %d waves the next step is %+v, and by the whole waves %+v", number+1, got, want)
		}
	}
	raw, err := json.Marshal(earlier.waves[:waves-1])
	if err != nil || len(raw) > much {
		t.Errorf("%d finished waves take %d bytes (%v)", waves-1, len(raw), err)
	}
	if newest, most := earlier.newestBytes, 6*much; earlier.planBytes > 2*newest+most || newest < much {
		t.Errorf("the plan counts as %d bytes, of which the newest wave has %d", earlier.planBytes, newest)
	}
}
