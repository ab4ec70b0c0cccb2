package explain

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// sweep is a run of the arms old and new at three sizes, with one trial of each in six blocks, whose metrics the tests choose.
type sweep struct {
	exp *experiment.Experiment
	// value returns a metric of a trial, and phases the seconds of its phases a, b and c.
	value  func(metric, arm, size string, block int) *record.Metric
	phases func(arm, size string) [3]float64
}

func newSweep(sizes ...string) *sweep {
	exp := &experiment.Experiment{Arms: []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}}}
	exp.Plan.Design.Confidence = 0.95
	exp.Plan.Metrics = []experiment.Metric{{Name: "time", Unit: "s", Statistic: experiment.StatisticValue}}
	exp.Plan.Sweep = &experiment.Sweep{Axes: []experiment.Axis{{Name: "size", Values: sizes}}}
	for _, size := range sizes {
		exp.Points = append(exp.Points, record.Point{Key: "size=" + size, Parameters: map[string]string{"size": size}})
	}
	return &sweep{exp: exp, value: func(string, string, string, int) *record.Metric { return seconds(1) }}
}

func seconds(value float64) *record.Metric { return &record.Metric{Unit: "s", Value: &value} }

// data returns the figures of the run. Trials differ by up to a thousandth.
func (s *sweep) data() *estimate.Data {
	chosen := &selection.Selection{Admission: selection.Admission{Cells: map[*record.Attempt]selection.Cell{}}}
	for block := range 6 {
		for p, point := range s.exp.Points {
			for a, arm := range s.exp.Arms {
				size := point.Parameters["size"]
				result := &record.Result{Metrics: map[string]*record.Metric{}}
				for _, metric := range s.exp.Plan.Metrics {
					if value := s.value(metric.Name, arm.Name, size, block); value != nil {
						result.Metrics[metric.Name] = value
					}
				}
				if s.phases != nil {
					for i, value := range s.phases(arm.Name, size) {
						noise := 1 + 0.001*float64((block+i)%3)
						result.Phases = append(result.Phases, record.Phase{Name: string(rune('a' + i)), Samples: []float64{value * noise}})
					}
				}
				attempt := &record.Attempt{Block: fmt.Sprintf("w000-b%04d", block), Arm: arm.Name, Point: point.Key, Result: result}
				chosen.Cells[attempt] = selection.At(p, a)
				chosen.Used = append(chosen.Used, attempt)
			}
		}
	}
	return estimate.New(s.exp, chosen, nil)
}

// times returns values of every metric that depend on arm and size, with a noise that differs between arms and sizes.
func times(of func(arm, size string) float64) func(string, string, string, int) *record.Metric {
	return func(_, arm, size string, block int) *record.Metric {
		return seconds(of(arm, size) * (1 + 0.001*float64((block*len(arm+size)+len(size)+int(size[0]+arm[0]))%3)))
	}
}

// within raises the new arm at size 2 by nothing, 2 % and 4 % in turn. Alone that is significant at 95 %, and among several comparisons
// it is not.
func within(_, arm, size string, block int) *record.Metric {
	if arm == "new" && size == "2" {
		return seconds(math.Exp(0.02 * float64(block%3)))
	}
	return seconds(1)
}

func TestAxisWarnings_AxisWithoutEffectIsNamed(t *testing.T) {
	const warning = "the axis size (1, 2, 4) has no measurable effect on any metric of any arm"
	percentile := func(of func(arm, size string) float64) func(*sweep) {
		return func(s *sweep) {
			s.exp.Plan.Metrics[0].Statistic = "p95"
			s.value = func(_, arm, size string, block int) *record.Metric {
				middle := of(arm, size) * (1 + 0.001*float64(block%3))
				return &record.Metric{Unit: "s", Samples: []float64{middle * 0.9, middle, middle * 5}}
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*sweep)
		want   string
	}{
		"equal times":          {func(*sweep) {}, warning},
		"equal times of zero":  {func(s *sweep) { s.value = times(func(string, string) float64 { return 0 }) }, warning},
		"noise of equal times": {func(s *sweep) { s.value = times(func(string, string) float64 { return 1 }) }, warning},
		"slower at one size of one arm": {func(s *sweep) {
			s.value = times(func(arm, size string) float64 { return 1 + map[string]float64{"new2": 1.5}[arm+size] })
		}, ""},
		"faster at the last size": {func(s *sweep) {
			s.value = times(func(_, size string) float64 { return 1 / float64(len(strings.TrimLeft(size, "12"))+1) })
		}, ""},
		"an effect on the second metric": {func(s *sweep) {
			s.exp.Plan.Metrics = append(s.exp.Plan.Metrics, experiment.Metric{Name: "memory", Unit: "By", Statistic: experiment.StatisticValue})
			s.value = func(metric, _, size string, block int) *record.Metric {
				if metric == "memory" && size == "4" {
					return seconds(2 + 0.001*float64(block%3))
				}
				return seconds(1)
			}
		}, ""},
		"a difference by chance among several comparisons": {func(s *sweep) { s.value = within }, warning},
		"equal percentiles":           {percentile(func(string, string) float64 { return 1 }), warning},
		"a median that differs":       {percentile(func(_, size string) float64 { return float64(len(size) + int(size[0]-'0')) }), ""},
		"no value":                    {func(s *sweep) { s.value = func(string, string, string, int) *record.Metric { return nil } }, ""},
		"no sweep":                    {func(s *sweep) { s.exp.Plan.Sweep = nil }, ""},
		"an axis with a single value": {func(s *sweep) { s.exp.Points = s.exp.Points[:1] }, ""},
		"a metric that no trial of an arm has": {func(s *sweep) {
			s.value = func(_, arm, _ string, _ int) *record.Metric {
				if arm == "new" {
					return nil
				}
				return seconds(1)
			}
		}, warning},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSweep("1", "2", "4")
			tc.change(s)
			if diff := cmp.Diff(tc.want, strings.Join(axisNotes(s.data()), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRankingWarnings_OfArms(t *testing.T) {
	const warning = "the ranking of new and old by time changes with scale: new has 2.000x of it at size=1 and 0.5000x at size=4, so no " +
		"single answer holds"
	reversed := func(arm, size string) float64 {
		return map[string]float64{"new1": 2, "new4": 0.5}[arm+size] + map[bool]float64{true: 1}[arm == "old" || size == "2"]
	}
	exact := func(_, arm, size string, _ int) *record.Metric { return seconds(reversed(arm, size)) }
	for name, tc := range map[string]struct {
		change func(*sweep)
		parity selection.Parity
		want   string
	}{
		"an order that reverses": {func(*sweep) {}, selection.Parity{}, warning},
		"two metrics are one warning": {func(s *sweep) {
			s.exp.Plan.Metrics = append(s.exp.Plan.Metrics, experiment.Metric{Name: "other", Unit: "s", Statistic: experiment.StatisticValue})
		}, selection.Parity{}, warning},
		"a percentile is compared by its median": {func(s *sweep) {
			s.exp.Plan.Metrics[0].Statistic = "p95"
			s.value = func(_, arm, size string, _ int) *record.Metric {
				middle := reversed(arm, size)
				return &record.Metric{Unit: "s", Samples: []float64{middle / 2, middle, 100}}
			}
		}, selection.Parity{}, warning},
		"an order that stays": {func(s *sweep) {
			s.value = times(func(arm, _ string) float64 { return float64(arm[0]) })
		}, selection.Parity{}, ""},
		"a single point":                    {func(s *sweep) { s.exp.Points = s.exp.Points[:1] }, selection.Parity{}, ""},
		"a null arm":                        {func(s *sweep) { s.exp.Arms[1].Null = true }, selection.Parity{}, ""},
		"another output":                    {func(*sweep) {}, selection.Parity{Wrong: map[string]string{"new": "differs"}}, ""},
		"outputs of a baseline that differ": {func(*sweep) {}, selection.Parity{Baseline: "differs"}, ""},
		"a time of zero": {func(s *sweep) {
			s.value = func(_, arm, size string, block int) *record.Metric {
				if size == "1" && block == 0 {
					return seconds(0)
				}
				return exact("", arm, size, block)
			}
		}, selection.Parity{}, ""},
		"no value at a point": {func(s *sweep) {
			s.value = func(_, arm, size string, block int) *record.Metric {
				if size == "1" && arm == "new" {
					return nil
				}
				return exact("", arm, size, block)
			}
		}, selection.Parity{}, ""},
		"a lead by chance among several comparisons": {func(s *sweep) {
			s.value = func(_, arm, size string, block int) *record.Metric {
				if size == "4" {
					return exact("", arm, size, block)
				}
				return within("", arm, size, block)
			}
		}, selection.Parity{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSweep("1", "2", "4")
			s.value = exact
			tc.change(s)
			if diff := cmp.Diff(tc.want, strings.Join(rankingNotes(s.data(), &tc.parity), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRankingWarnings_OfPhases(t *testing.T) {
	at := func(small, middle, large [3]float64) func(arm, size string) [3]float64 {
		return func(arm, size string) [3]float64 {
			if arm == "old" {
				return [3]float64{1, 2, 4}
			}
			return map[string][3]float64{"1": small, "2": middle, "4": large}[size]
		}
	}
	for name, tc := range map[string]struct {
		phases func(arm, size string) [3]float64
		want   string
	}{
		"no phases":           {nil, ""},
		"an order that stays": {at([3]float64{1, 2, 4}, [3]float64{2, 4, 8}, [3]float64{3, 6, 12}), ""},
		"two phases that change places": {at([3]float64{1, 2, 9}, [3]float64{1, 1, 9}, [3]float64{2, 1, 9}),
			"the ranking of the phases of arm new changes with scale: b takes 2.000x of the time of a at size=1 and 0.5000x at size=4, so where " +
				"the time goes depends on the size"},
		"the pair that reverses most": {at([3]float64{1, 2, 4}, [3]float64{2, 2, 2}, [3]float64{4, 2, 1}),
			"the ranking of the phases of arm new changes with scale: c takes 4.000x of the time of a at size=1 and 0.2500x at size=4, so where " +
				"the time goes depends on the size"},
		"the pair that reverses most comes first": {at([3]float64{1, 4, 2}, [3]float64{2, 2, 2}, [3]float64{4, 1, 2}),
			"the ranking of the phases of arm new changes with scale: b takes 4.000x of the time of a at size=1 and 0.2500x at size=4, so where " +
				"the time goes depends on the size"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSweep("1", "2", "4")
			s.phases = tc.phases
			if diff := cmp.Diff(tc.want, strings.Join(rankingNotes(s.data(), &selection.Parity{}), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildWarnings_MixedAndEqualBuilds(t *testing.T) {
	of := func(build, version, digest string) *record.Attempt {
		out := &record.Attempt{Arm: "new", Build: build, Result: &record.Result{Workload: record.WorkloadID{Name: "scan", Version: version,
			Build: map[string]string{"rustc": "1.95", "profile": "release"}}}}
		if digest != "" {
			out.Environment.Soft = map[string]any{"programDigest": digest}
		}
		return out
	}
	for name, tc := range map[string]struct {
		first, second []*record.Attempt // At two points.
		want          []string
	}{
		"no trial":  {nil, nil, nil},
		"one build": {[]*record.Attempt{of("", "1", "d"), of("", "1", "d")}, []*record.Attempt{of("", "1", "d")}, nil},
		"two versions": {[]*record.Attempt{of("", "2", "")}, []*record.Attempt{of("", "1", "")}, []string{
			"the trials of arm new ran 2 builds: scan 1 profile=release rustc=1.95; scan 2 profile=release rustc=1.95"}},
		"listed builds": {[]*record.Attempt{of("a", "1", "d"), of("b", "2", "e")}, nil, nil},
		"listed builds that mix": {[]*record.Attempt{of("a", "1", "d"), of("a", "2", "d")}, nil, []string{
			"the trials of build a of arm new ran 2 builds: scan 1 profile=release rustc=1.95; scan 2 profile=release rustc=1.95"}},
		"listed builds with one program": {[]*record.Attempt{of("b", "1", "d"), of("b", "1", "d")}, []*record.Attempt{of("a", "1", "d"),
			of("c", "1", "e")}, []string{
			"builds a, b of arm new executed the same program, so that they count as one: programDigest=d"}},
		"listed builds without a digest": {[]*record.Attempt{of("b", "1", ""), of("a", "1", "")}, nil, nil},
		"an arm without builds":          {[]*record.Attempt{of("", "1", "d"), of("a", "1", "d")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &estimate.Data{Exp: newSweep("1", "2").exp, Trials: map[selection.Cell][]*record.Attempt{
				selection.At(0, 1): tc.first, selection.At(1, 1): tc.second,
			}}
			if diff := cmp.Diff(tc.want, buildWarnings(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
