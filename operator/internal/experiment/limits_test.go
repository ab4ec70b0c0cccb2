package experiment

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// numbers returns n values of a width.
func numbers(count, width int) []string {
	var out []string
	for i := range count {
		out = append(out, fmt.Sprintf("%0*d", width, i))
	}
	return out
}

// free is a template whose parameters take any text.
func free(names ...string) assayv1alpha1.BenchmarkTemplateSpec {
	template := testTemplate()
	template.Parameters = nil
	for _, name := range names {
		template.Parameters = append(template.Parameters, assayv1alpha1.Parameter{Name: name})
	}
	template.Metrics[0].SamplesFrom = ""
	return template
}

func armsOf(count int, parameters values) []assayv1alpha1.Arm {
	var out []assayv1alpha1.Arm
	for i := range count {
		out = append(out, assayv1alpha1.Arm{Name: fmt.Sprintf("arm-%d", i), Baseline: i == 0, Parameters: parameters})
	}
	return out
}

// inBuilds gives every arm as many builds.
func inBuilds(arms []assayv1alpha1.Arm, count int) []assayv1alpha1.Arm {
	for i := range arms {
		for j := range count {
			arms[i].Builds = append(arms[i].Builds, assayv1alpha1.Build{Name: fmt.Sprintf("b%d", j), Program: fmt.Sprintf("/p%d-%d", i, j)})
		}
	}
	return arms
}

func TestFreeze_TooLargeExperimentIsRejectedBeforeExpansion(t *testing.T) {
	axes := func(count, size, width int) *assayv1alpha1.Sweep {
		out := &assayv1alpha1.Sweep{}
		for i := range count {
			out.Axes = append(out.Axes, assayv1alpha1.SweepAxis{Name: string(rune('a' + i)), Values: numbers(size, width)})
		}
		return out
	}
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	cases := map[string]struct {
		spec     assayv1alpha1.BenchmarkRunSpec
		template assayv1alpha1.BenchmarkTemplateSpec
		says     []string
	}{
		"160,000 cells of a run of 3 KB": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Sweep: axes(4, 10, 1)}, free(names[:4]...),
			[]string{"spec.sweep", "10000 points of 16 arms", "160000 cells", "at most 4096", "use fewer values"},
		},
		"more points than an integer holds": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Sweep: axes(8, 256, 3)}, free(names...),
			[]string{"spec.sweep", "18446744073709551616 points", "at most 4096"},
		},
		"few points are left, of too many arms": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Sweep: func() *assayv1alpha1.Sweep {
				out := axes(2, 100, 3)
				for i := range 70 {
					out.Exclude = append(out.Exclude, values{"a": fmt.Sprintf("%03d", i)})
				}
				return out
			}()}, free(names[:2]...),
			[]string{"spec.sweep", "3000 points of 16 arms", "48000 cells"},
		},
		"included points": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Sweep: func() *assayv1alpha1.Sweep {
				out := axes(1, 100, 3)
				for i := range 200 {
					out.Include = append(out.Include, values{"a": fmt.Sprintf("x%d", i)})
				}
				return out
			}()}, free("a"),
			[]string{"spec.sweep", "300 points of 16 arms", "4800 cells"},
		},
		"a null arm counts": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Design: assayv1alpha1.Design{NullArm: true}, Sweep: axes(1, 256, 3)}, free("a"),
			[]string{"spec.sweep", "256 points of 17 arms", "4352 cells"},
		},
		"builds count": {
			assayv1alpha1.BenchmarkRunSpec{Arms: inBuilds(armsOf(16, nil), 64), Sweep: axes(1, 256, 3)}, free("a"),
			[]string{"spec.sweep", "256 points of 1024 builds of 16 arms", "262144 cells", "fewer values, arms, builds or axes"},
		},
		"builds count without a sweep": {
			assayv1alpha1.BenchmarkRunSpec{Arms: inBuilds(armsOf(16, values{"a": strings.Repeat("x", 4096)}), 64)}, free("a"),
			[]string{"template.parameters", `parameter "a"`, "1024 cells", "at most 4194304"},
		},
		"images that a node has no room for": {
			assayv1alpha1.BenchmarkRunSpec{Arms: func() []assayv1alpha1.Arm {
				out := inBuilds(armsOf(2, nil), 20)
				for i := range out {
					for j := range out[i].Builds {
						out[i].Builds[j].Image = fmt.Sprintf("lab/zero:%d-%d", i, j)
					}
				}
				return out
			}()}, free("a"),
			[]string{"spec.arms", "40 images", "at most 32", "several programs into one image"},
		},
		"one value that a command repeats": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(1, nil), Parameters: values{"a": strings.Repeat("x", 4096)}},
			func() assayv1alpha1.BenchmarkTemplateSpec {
				out := free("a")
				for range 60 {
					out.Command = append(out.Command, strings.Repeat("$(a)", 1024))
				}
				return out
			}(),
			[]string{"template.parameters", `parameter "a"`, "61442 times", "at most 4194304"},
		},
		"many long values": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, values{"b": strings.Repeat("x", 4096)}), Sweep: axes(1, 200, 3)}, free("a", "b"),
			[]string{"template.parameters", `parameter "b"`, "3200 cells", "use fewer points or arms"},
		},
		"a long command of many cells": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Sweep: axes(1, 200, 3)}, func() assayv1alpha1.BenchmarkTemplateSpec {
				out := free("a")
				out.Command = append(out.Command, strings.Repeat("x", 4096))
				return out
			}(),
			[]string{"template.command", "3200 cells", "shorten it"},
		},
		"a search whose every load has a long command": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(2, nil), Search: &assayv1alpha1.Search{
				Over: assayv1alpha1.SearchAxis{Axis: "a", Low: resource.MustParse("1"), High: resource.MustParse("200"), Resolution: "5%"},
			}}, func() assayv1alpha1.BenchmarkTemplateSpec {
				out := free("a")
				for range 10 {
					out.Command = append(out.Command, strings.Repeat("x", 4096))
				}
				return out
			}(),
			[]string{"template.command", "220 cells", "shorten it"},
		},
		"points without an arm": {
			assayv1alpha1.BenchmarkRunSpec{Sweep: axes(4, 16, 2)}, free(names[:4]...), []string{"65536 points", "use fewer values"},
		},
		"as many cells as there may be": {
			assayv1alpha1.BenchmarkRunSpec{Arms: armsOf(16, nil), Sweep: axes(2, 16, 2), Budget: assayv1alpha1.Budget{Trials: 100000},
				Design: assayv1alpha1.Design{Blocks: assayv1alpha1.Blocks{Min: 8}}},
			free(names[:2]...), nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Freeze(testRun, tc.spec, tc.template)
			runtime.ReadMemStats(&after)
			if tc.says == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			assertSays(t, "error", errorText(err), tc.says)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
				t.Errorf("refusing it allocated %d KiB, want at most 2048", allocated>>10)
			}
		})
	}
}

// The counted size must equal the built size; otherwise a field could grow beyond the limit.
func TestCounter_EqualsBuiltSize(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		text := func(most int) string { return strings.Repeat("v", 1+random.IntN(most)) }
		template := free("a", "b", "cD", "e")
		template.Parameters[1].Env = "B_VALUE"
		template.Parameters[2].Argument = []string{"", "None", "-n", "--size="}[random.IntN(4)]
		for i := range template.Parameters {
			value := text(50)
			template.Parameters[i].Default = &value
		}
		for range random.IntN(4) {
			template.Command = append(template.Command, text(20)+"$(b)"+text(20)+"$(b)$(e)")
		}
		spec := assayv1alpha1.BenchmarkRunSpec{
			Arms: armsOf(1+random.IntN(4), nil), Parameters: values{"b": text(300)}, Budget: assayv1alpha1.Budget{Trials: 100000},
			Sweep: &assayv1alpha1.Sweep{Axes: []assayv1alpha1.SweepAxis{{Name: "a", Values: numbers(1+random.IntN(9), 2)}, {Name: "cD", Values: numbers(1+random.IntN(9), 2)}}},
		}
		spec.Arms[0].Parameters = values{"e": text(200)}
		spec.Sweep.Overrides = []assayv1alpha1.Override{{At: values{"a": "01"}, Parameters: values{"b": text(400)}},
			{At: values{"cD": "00"}, Parameters: values{"b": text(400)}}}
		if random.IntN(2) == 0 {
			spec.Sweep.Exclude = []assayv1alpha1.ParameterValues{{"a": "01", "cD": "01"}}
		}
		if random.IntN(2) == 0 {
			spec.Sweep.Include = []assayv1alpha1.ParameterValues{{"a": "x", "cD": "y"}}
		}
		spec.Design.NullArm = len(spec.Arms) > 1 && random.IntN(2) == 0
		if random.IntN(2) == 0 {
			inBuilds(spec.Arms, 2+random.IntN(3))
			spec.Design.Blocks.Min = 12
		}
		exp, err := freezeAndCheck(t, spec, template)
		if err != nil {
			t.Fatal(err)
		}
		counter := newCounter(&spec, &template)
		points := 0
		for values := range pointsOf(&spec) {
			points++
			counter.point(values)
		}
		built := 0
		for _, point := range exp.Points {
			for name, value := range point.Parameters {
				built += 2 * (len(name) + len(value))
			}
		}
		for _, cell := range exp.Cells {
			for _, element := range cell.Argv {
				built += len(element)
			}
			for _, of := range []map[string]string{cell.Env, cell.Parameters} {
				for name, value := range of {
					built += len(name) + len(value)
				}
			}
		}
		// References and separators are counted and not built; nothing else may differ.
		if slack := len(exp.Cells) * (30*len(template.Command) + 20*len(template.Parameters)); points != len(exp.Points) ||
			counter.total < built || counter.total > built+slack {
			t.Fatalf("seed %d: counted %d points and %d bytes, built %d and %d", seed, points, counter.total, len(exp.Points), built)
		}
	}
}

func TestInvalid_ErrorHasBoundedLength(t *testing.T) {
	template := testTemplate()
	template.Parameters[1].Enum = nil
	for i := range 64 {
		template.Parameters[1].Enum = append(template.Parameters[1].Enum, strings.Repeat("x", 4000)+fmt.Sprint(i))
	}
	spec := testSpec()
	spec.Sweep.Axes = append(spec.Sweep.Axes, assayv1alpha1.SweepAxis{Name: "note", Values: numbers(100, 3)})
	for i := range 256 {
		spec.Sweep.Exclude = append(spec.Sweep.Exclude, values{fmt.Sprintf("x%d", i): strings.Repeat("y", 4000)})
	}
	_, err := freezeAndCheck(t, spec, template)
	if err == nil {
		t.Fatal("it is accepted")
	}
	raw, _ := json.Marshal(err.Error())
	if len(raw) > 64<<10 || !strings.Contains(err.Error(), "further problems") {
		t.Errorf("the error has %d bytes and ends in %q", len(raw), err.Error()[max(0, len(err.Error())-100):])
	}
}
