package causes

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"assay.dev/assay/operator/internal/why"
	"assay.dev/assay/operator/test/golden"
)

func explained() (*why.Explanation, []why.Trial) {
	question := why.Question{Figure: why.WallTime, Baseline: "old", Candidate: "new", Null: "baseline-copy", Instrument: "profile",
		Uninstrumented: "resource usage", Resolution: 0.0005, Judged: &why.Interval{Value: 1.5, Low: 1.45, High: 1.55}}
	var trials []why.Trial
	for block := range 8 {
		noise := 0.0005 * float64(block%3)
		for _, arm := range []string{"old", "baseline-copy", "new"} {
			trial := why.Trial{Block: block, Arm: arm, Instrument: "profile", Elapsed: 0.1, Counts: map[string]float64{why.MinorFaults: 100}}
			add := func(seconds float64, stack ...string) {
				trial.Costs = append(trial.Costs, why.Cost{Stack: stack, Seconds: seconds})
				trial.Seconds += seconds
			}
			add(0.06+noise, why.UserCode, "main", "parse<int>&")
			if add(0.02, why.PageFault, "main", "load"); arm == "new" {
				trial.Counts[why.MinorFaults] = 5000
				add(0.03, why.PageFault, "main", "load")
				add(0.02, why.WaitTimer, "main", "clock_nanosleep")
			}
			trials = append(trials, trial)
			trial.Instrument, trial.Costs, trial.Elapsed = "resource usage", nil, 0.098
			trials = append(trials, trial)
		}
	}
	rungs := []why.Rung{{Name: "resource usage"}, {Name: "system calls", Absent: "CAP_BPF is missing"},
		{Name: "profile", Lost: 3, Notes: []string{"functions of k have no names: it has no symbol table"}}}
	return why.Explain(question, trials, rungs), trials
}

func TestText_TableOfCauses(t *testing.T) {
	explanation, _ := explained()
	var out strings.Builder
	if err := Text(&out, explanation); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/causes.txt", out.String())
}

func TestText_Withheld(t *testing.T) {
	explanation, trials := explained()
	question := explanation.Question
	question.Judged = &why.Interval{Value: 9, Low: 8, High: 10}
	var out strings.Builder
	err := Text(&out, why.Explain(question, trials, nil))
	if err != nil || !strings.HasPrefix(out.String(), "why: The explanation is withheld: ") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestFlame_IsAStaticPictureOfBothArms(t *testing.T) {
	explanation, trials := explained()
	var out strings.Builder
	if err := Flame(&out, explanation.Question, Stacks(explanation.Question, trials)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/flame.svg", out.String())
	for _, active := range []string{"<script", "onload", "href", "<style", "javascript"} {
		if strings.Contains(out.String(), active) {
			t.Errorf("the picture has %q", active)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolded_TwoColumns(t *testing.T) {
	explanation, trials := explained()
	var out strings.Builder
	if err := Folded(&out, Stacks(explanation.Question, trials)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"page fault;main;load 20000000 50000000\n", "waiting for a timer;main;clock_nanosleep 0 20000000\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestPprof_ValuesOfBothArms(t *testing.T) {
	explanation, trials := explained()
	var out bytes.Buffer
	if err := Pprof(&out, explanation.Question, Stacks(explanation.Question, trials)); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.CheckValid(); err != nil {
		t.Error(err)
	}
	for _, sample := range got.Sample {
		if sample.Location[0].Line[0].Function.Name != "load" {
			continue
		}
		if values := sample.Value; values[0] != 20_000_000 || values[1] != 50_000_000 || values[2] != 30_000_000 {
			t.Errorf("values %v of %v", values, got.SampleType)
		}
	}
}
