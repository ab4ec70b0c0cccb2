// Package suite compares two builds on many benchmarks as one experiment: every benchmark is a point of a sweep, and every block has the
// trials of several benchmarks of both builds. It decides which benchmarks the next blocks measure and which of them differ, at one error
// rate for all (pure).
package suite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/bench"
	"assay.dev/assay/operator/internal/quantity"
)

// Names of the arms.
const (
	Old = "old"
	New = "new"
)

// Parameters of the points: the program of a build that has the benchmark, the benchmark's name in the output, and the argument that
// selects it.
const (
	fileParameter      = "file"
	benchmarkParameter = "benchmark"
	selectParameter    = "select"
	// buildParameter is the folder of an arm's programs.
	buildParameter = "build"
)

const (
	// MostMembers is the number of values that an axis of a sweep can have.
	MostMembers = 256
	// longestName is the limit of a value of an axis.
	longestName = 256
	// mostTrials is the limit of budget.trials in the API.
	mostTrials = 100_000
)

// Member is one benchmark of a suite.
type Member struct {
	// File is the program with the benchmark, relative to the folder of a build.
	File string `json:"file"`
	// Name is the benchmark's name in the output of the tool.
	Name string `json:"name"`
}

// Suite is the comparison of two builds on the benchmarks that both have.
type Suite struct {
	Tool Tool
	// Folders of the two builds, absolute, the baseline's first.
	Folders [2]string
	// Files are the names of the programs of the two builds where these differ, and every build is one program; empty otherwise.
	Files   [2]string
	Members []Member
	CPUs    int
	// Blocks of every member on a cluster; 0 is the first look.
	Blocks int
	// Budget is the time of the run, and Error the probability of a false difference among all members.
	Budget time.Duration
	Error  float64
	// Bound of the ratio that every member must meet; 0 judges nothing.
	Bound float64
}

// Labels returns the names of the members in tables: those of the benchmarks, after their files where there are several.
func Labels(members []Member) []string {
	out := make([]string, len(members))
	several := slices.ContainsFunc(members, func(m Member) bool { return m.File != members[0].File })
	for i, member := range members {
		if out[i] = member.Name; several {
			out[i] = member.File + " " + member.Name
		}
	}
	return out
}

// check reports members that a sweep cannot have.
func (s *Suite) check() error {
	switch n := len(s.Members); {
	case n == 0:
		return errors.New("no benchmark is in both builds: compare builds of one program, or choose others with --filter")
	case n > MostMembers:
		return fmt.Errorf("%d benchmarks, and a suite has at most %d: choose some with --filter", n, MostMembers)
	case !(s.Error > 0 && s.Error < 1):
		return fmt.Errorf("invalid error rate %g: use a number between 0 and 1", s.Error)
	}
	seen := map[Member]bool{}
	for _, member := range s.Members {
		for _, text := range []string{member.File, member.Name, s.Tool.selects(member.Name)} {
			if len(text) > longestName {
				return fmt.Errorf("benchmark %.40q…: its name has %d characters and at most %d are allowed: leave it out with --filter", text,
					len(text), longestName)
			}
		}
		if seen[member] {
			return fmt.Errorf("benchmark %q of %s is listed twice: give each benchmark a different name", member.Name, member.File)
		}
		seen[member] = true
	}
	return nil
}

// BenchmarkRun is the suite as one would write it down. The i-th point of its sweep is the i-th member. A cluster measures every member in
// the same number of blocks; Course moves blocks to the members that need them.
func (s *Suite) BenchmarkRun() (*assayv1alpha1.BenchmarkRun, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	// The metric, its unit and its direction are those of assay bench.
	pair := bench.Question{
		Commands: [][]string{{"/" + Old, "-"}, {"/" + New, "-"}}, Names: []string{Old, New}, CPUs: max(1, s.CPUs), Budget: s.Budget,
		Figures:     bench.Figures{Format: s.Tool.Format, Benchmark: "$(" + benchmarkParameter + ")", Path: s.Tool.Output},
		OnViolation: assayv1alpha1.ViolationWarn,
	}
	run, err := pair.BenchmarkRun()
	if err != nil {
		return nil, err
	}
	run.Name = "suite"
	spec := &run.Spec
	template := spec.Template
	template.Command = s.Tool.command()
	template.Parameters = slices.DeleteFunc(template.Parameters, func(p assayv1alpha1.Parameter) bool {
		return p.Env == "" // Those of the two placeholders; the others are the environment of the tool.
	})
	template.Parameters = append(template.Parameters, s.Tool.parameter(buildParameter))
	s.sweep(spec)
	for i := range spec.Arms {
		spec.Arms[i].Parameters = assayv1alpha1.ParameterValues{buildParameter: s.Folders[i]}
		if s.Files[i] != "" {
			spec.Arms[i].Parameters[fileParameter] = s.Files[i]
		}
	}
	spec.Design.Blocks = assayv1alpha1.Blocks{Min: int32(max(s.Blocks, looks[0])), Max: int32(looks[len(looks)-1])}
	spec.Design.Stop = nil // It asks for the same precision of all members.
	spec.Design.GateConfidence = gateConfidence(s.Error / float64(len(s.Members)))
	spec.Placement.Memory = resource.MustParse("1Gi")
	spec.Budget = assayv1alpha1.Budget{WallClock: metav1.Duration{Duration: s.Budget}, Trials: mostTrials}
	gate := assayv1alpha1.Gate{Name: Gate, Metric: template.Metrics[0].Name, Op: assayv1alpha1.RatioAtMost, Bound: "1",
		Severity: assayv1alpha1.Advisory}
	if template.Metrics[0].Direction == assayv1alpha1.HigherIsBetter {
		gate.Op = assayv1alpha1.RatioAtLeast
	}
	if s.Bound > 0 {
		gate.Bound, gate.Severity = quantity.Full(s.Bound), assayv1alpha1.Blocking
	}
	spec.Gates = []assayv1alpha1.Gate{gate}
	return run, nil
}

// Gate is the gate of every member: no worse than the baseline, or than the bound.
const Gate = "no-worse"

// Document is the suite's run as a file, for a cluster or for assay run --local, which measure every benchmark in the same number of
// blocks.
func (s *Suite) Document() ([]byte, error) {
	const blocks, heading = 20, `# Run of assay suite. For a cluster, name the image with the programs of both builds in template.image, and their
# folders in it in the arms.
`
	fixed := *s
	fixed.Blocks = blocks
	run, err := fixed.BenchmarkRun()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": run.APIVersion, "kind": run.Kind, "metadata": map[string]string{"name": run.Name}, "spec": run.Spec,
	})
	return append([]byte(heading), text...), err
}

// sweep adds the members as points, and leaves out the parameters that all of them share.
func (s *Suite) sweep(spec *assayv1alpha1.BenchmarkRunSpec) {
	values := make([]assayv1alpha1.ParameterValues, len(s.Members))
	for i, member := range s.Members {
		values[i] = assayv1alpha1.ParameterValues{
			fileParameter: member.File, benchmarkParameter: member.Name, selectParameter: s.Tool.selects(member.Name),
		}
	}
	sweep := &assayv1alpha1.Sweep{}
	for _, name := range []string{fileParameter, benchmarkParameter, selectParameter} {
		if name == selectParameter && s.Tool.Select == nil {
			for _, value := range values {
				delete(value, name)
			}
			continue
		}
		parameter := s.Tool.parameter(name)
		first := values[0][name]
		if same := !slices.ContainsFunc(values, func(v assayv1alpha1.ParameterValues) bool { return v[name] != first }); same &&
			name != benchmarkParameter {
			parameter.Default = &first
			for _, value := range values {
				delete(value, name)
			}
		} else {
			sweep.Axes = append(sweep.Axes, assayv1alpha1.SweepAxis{Name: name, Values: []string{first}})
		}
		spec.Template.Parameters = append(spec.Template.Parameters, parameter)
	}
	sweep.Include = values[1:]
	spec.Sweep = sweep
}

// gateConfidence is a confidence as the API writes it: five digits, rounded up as far as they reach.
func gateConfidence(level float64) string {
	const finest = 0.00001
	return strings.TrimRight(quantity.Decimals(1-max(finest, float64(int(level/finest))*finest), 5), "0")
}
