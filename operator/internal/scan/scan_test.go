package scan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestAxes_ListsAndRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		lists, ranges []string
		want, says    string
	}{
		"a list":                      {lists: []string{"level=1,6,9"}, want: "level: 1 6 9"},
		"values with = and spaces":    {lists: []string{"flag=--a=1,--b 2"}, want: "flag: --a=1 --b 2"},
		"two parameters":              {lists: []string{"a=1,2"}, ranges: []string{"b=1:3"}, want: "a: 1 2, b: 1 2 3"},
		"a range with a step":         {ranges: []string{"n=0:10:5"}, want: "n: 0 5 10"},
		"a step beyond the end":       {ranges: []string{"n=1:8:3"}, want: "n: 1 4 7"},
		"decimals are exact":          {ranges: []string{"share=0.1:0.5:0.1"}, want: "share: 0.1 0.2 0.3 0.4 0.5"},
		"downwards":                   {ranges: []string{"n=2:-2:-2"}, want: "n: 2 0 -2"},
		"one value":                   {ranges: []string{"n=3:3"}, want: "n: 3"},
		"no values":                   {lists: []string{"level"}, says: `invalid -L "level": write a name and its values`},
		"an empty list":               {lists: []string{"level="}, says: `invalid -L "level="`},
		"an empty value":              {lists: []string{"level=1,,2"}, says: "it has an empty value"},
		"a value twice":               {lists: []string{"level=1,2,1"}, says: `"1" is there twice`},
		"a name twice":                {lists: []string{"a=1,2"}, ranges: []string{"a=1:2"}, says: "a has values already"},
		"a name of another form":      {lists: []string{"num_threads=1,2"}, says: `"num_threads" is no name; use letters and digits`},
		"a range without end":         {ranges: []string{"n=1"}, says: `"1" is no range`},
		"a range of words":            {ranges: []string{"n=a:b"}, says: `"a" is no decimal number`},
		"a fraction":                  {ranges: []string{"n=1/3:1"}, says: `"1/3" is no decimal number`},
		"a range that never ends":     {ranges: []string{"n=1:3:0"}, says: "its step is 0"},
		"a range in the wrong order":  {ranges: []string{"n=3:1"}, says: "a step of 1 never leads from 3 to 1"},
		"a range of too many values":  {ranges: []string{"n=1:1000000000000"}, says: "more than 256 values"},
		"too many combinations":       {ranges: []string{"a=1:20", "b=1:20"}, says: "too many points: 20 values of a times 20 values of b are more than 256"},
		"too many parameters":         {lists: strings.Fields("a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1"), says: "9 parameters: a run has at most 8"},
		"a value that is much longer": {lists: []string{"a=" + strings.Repeat("x", 257)}, says: "a value has 257 bytes, allowed are 256"},
	} {
		t.Run(name, func(t *testing.T) {
			axes, err := Axes(tc.lists, tc.ranges)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want one that says %q", err, tc.says)
				}
				return
			}
			var got []string
			for _, axis := range axes {
				got = append(got, axis.Name+": "+strings.Join(axis.Values, " "))
			}
			if text := strings.Join(got, ", "); err != nil || text != tc.want {
				t.Errorf("%q, %v; want %q", text, err, tc.want)
			}
		})
	}
}

func TestFill_ReplacesNamesAndKeepsOtherBraces(t *testing.T) {
	point := map[string]string{"n": "4", "other": "{n}"}
	for word, want := range map[string]string{
		"{n}": "4", "-{n}-{n}": "-4-4", "{other}": "{n}", "{{n}}": "{n}", "{}": "{}", "{print $1}": "{print $1}", "${n}": "${n}", "{{{n}}}": "{4}",
		"plain": "plain", "": "",
	} {
		if got, err := Fill(word, point); err != nil || got != want {
			t.Errorf("%q becomes %q (%v), want %q", word, got, err, want)
		}
	}
	if _, err := Fill("{m}", point); err == nil || !strings.Contains(err.Error(), "unknown parameter {m}: did you mean n?") {
		t.Errorf("got %v", err)
	}
}

func TestCheckUse_UnknownAndUnusedParametersAreNamed(t *testing.T) {
	axes := []Axis{{Name: "level", Flag: "-L level=1,2"}, {Name: "n", Flag: "-P n=1:2"}}
	for says, texts := range map[string][]string{
		"": {"gzip -{level}", "sleep {n}"}, "unknown parameter {levels}: did you mean level?": {"gzip -{levels}"},
		"unused -P n=1:2: no command and no step has {n}": {"gzip -{level}", "{{n}}"},
	} {
		err := CheckUse(axes, texts)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", texts, err, says)
		}
	}
}

// pieces are parts of random words: parameters, and text with a meaning to env, to a shell, or to the API.
var pieces = []string{"{n}", "{m}", "{n}", "a", " ", `\`, "'", `"`, "$(n)", "$HOME", "${n}", "{{n}}", "{", "}", "#", "*", "-x=", "ü", "\t", `\_`}

// Random commands have at every point the arguments that they would have if their values had been typed.
func TestApply_ArgumentsAreThoseOfTypedCommands(t *testing.T) {
	random := rand.New(rand.NewPCG(57, 2))
	axes := []Axis{{Name: "n", Values: []string{"1", "a b"}}, {Name: "m", Values: []string{"{n}", `$(n)'"\`}}}
	started := 0
	for range 150 {
		commands := make([][]string, 2+random.IntN(2))
		words := 1 + random.IntN(3)
		for i := range commands {
			commands[i] = []string{"/usr/bin/printf", "%s|"}
			for w := range words + random.IntN(2)*random.IntN(2) {
				if i > 0 && w < words && random.IntN(3) > 0 {
					commands[i] = append(commands[i], commands[0][2+w])
					continue
				}
				word := ""
				for range random.IntN(4) {
					word += pieces[random.IntN(len(pieces))]
				}
				commands[i] = append(commands[i], word)
			}
		}
		typed := make([][]string, len(commands))
		for i := range commands {
			typed[i] = slices.Clone(commands[i])
		}
		ready, err := Commands(commands)
		if err != nil {
			t.Fatal(err)
		}
		question := bench.Question{Commands: ready, Names: []string{"a", "b", "c"}[:len(ready)], CPUs: 1, Budget: time.Minute,
			Figures: bench.Figures{Format: assayv1alpha1.NoOutput}, OnViolation: assayv1alpha1.ViolationWarn}
		run, err := question.BenchmarkRun()
		if err != nil {
			t.Fatal(err)
		}
		if err := Apply(run, axes); err != nil {
			t.Fatal(err)
		}
		exp, err := experiment.Freeze(record.Run{Name: "bench"}, run.Spec, *run.Spec.Template)
		if err != nil {
			t.Fatalf("%q: %v", commands, err)
		}
		if len(exp.Points) != 4 || len(exp.Cells) != 4*len(commands) {
			t.Fatalf("%d points, %d cells", len(exp.Points), len(exp.Cells))
		}
		for _, cell := range exp.Cells {
			var want []string
			for _, word := range typed[cell.Arm] {
				filled, err := Fill(word, exp.Points[cell.Point].Parameters)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, filled)
			}
			if cell.Argv[0] != env {
				if !slices.Equal(cell.Argv, want) {
					t.Fatalf("%q at %s: arguments %q, want %q", typed[cell.Arm], exp.Points[cell.Point].Key, cell.Argv, want)
				}
				continue
			}
			if started++; started > 120 {
				continue // Processes take time.
			}
			command := exec.Command(cell.Argv[0], cell.Argv[1:]...)
			for name, value := range cell.Env {
				command.Env = append(command.Env, name+"="+value)
			}
			out, err := command.CombinedOutput()
			if wanted := strings.Join(want[2:], "|") + "|"; err != nil || string(out) != wanted {
				t.Fatalf("%q at %s: env prints %q (%v), want %q; it was started as %q", typed[cell.Arm], exp.Points[cell.Point].Key, out, err, wanted,
					cell.Argv)
			}
		}
	}
	if started == 0 {
		t.Error("no random commands need env")
	}
}

func TestApply_PointsAndTrialsStayWithinTheLimits(t *testing.T) {
	question := bench.Question{Commands: [][]string{{"/a", "{n}"}, {"/b", "{n}"}}, Names: []string{"a", "b"},
		Figures: bench.Figures{Format: assayv1alpha1.NoOutput}, CPUs: 1, Budget: time.Minute, OnViolation: assayv1alpha1.ViolationWarn}
	run, err := question.BenchmarkRun()
	if err != nil {
		t.Fatal(err)
	}
	axes, err := Axes(nil, []string{"n=1:256"})
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(run, axes); err != nil {
		t.Fatal(err)
	}
	exp, err := experiment.Freeze(record.Run{Name: "bench"}, run.Spec, *run.Spec.Template)
	if err != nil || len(exp.Points) != 256 {
		t.Fatalf("%v", err)
	}
	if trials := exp.Plan.Design.Blocks.Max * len(exp.Cells) * experiment.VisitTrials; trials > mostTrials {
		t.Errorf("%d trials", trials)
	}
	err = Apply(run, []Axis{{Name: "program", Values: []string{"1"}, Flag: "-L program=1"}})
	if err == nil || !strings.Contains(err.Error(), "invalid -L program=1: the run has a parameter program of its own") {
		t.Errorf("got %v", err)
	}
}

func TestPoints_LastParameterIsFastest(t *testing.T) {
	var got []string
	for _, point := range Points([]Axis{{Name: "a", Values: []string{"1", "2"}}, {Name: "b", Values: []string{"x", "y"}}}) {
		got = append(got, fmt.Sprint(point["a"], point["b"], len(slices.Collect(maps.Keys(point)))))
	}
	if text := strings.Join(got, " "); text != "1x2 1y2 2x2 2y2" && text != "1 x 2 1 y 2 2 x 2 2 y 2" {
		t.Errorf("points %q", text)
	}
}
