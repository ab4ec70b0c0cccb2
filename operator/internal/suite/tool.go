package suite

import (
	"regexp"
	"slices"
	"strings"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// Tool is how one process of a benchmark tool runs one benchmark. Every tool gets a process for each benchmark and trial: benchmarks that
// share a process share its heap, its caches and its compiled code, and one that crashes takes the others with it. The order of these
// processes is drawn for every block.
type Tool struct {
	Name   string
	Format assayv1alpha1.OutputFormat
	// Output is the file with the figures; "" for standard output or the folder of the format.
	Output string
	// Files is the pattern of the names of programs in the folder of a build; empty if only a person can tell them from others.
	Files string
	// Arguments of a trial, with the parameters file, benchmark and select. Program is the word that is started.
	Program   string
	Arguments []string
	// Select returns the argument that selects a benchmark; nil uses its name.
	Select func(name string) string
	// Why is the reason for one process per benchmark, for the documentation.
	Why string
}

// program is the path of a member's file in the folder of an arm's build.
const program = "$(" + buildParameter + ")/$(" + fileParameter + ")"

const (
	byName   = "$(" + benchmarkParameter + ")"
	bySelect = "$(" + selectParameter + ")"
)

// tools lists all tools, by the order of the documentation.
var tools = []Tool{
	{
		Name: "Go", Format: assayv1alpha1.GoBenchOutput, Files: "*.test", Program: program,
		Arguments: []string{"-test.run=^$", "-test.bench=" + bySelect, "-test.benchtime=50ms", "-test.benchmem"}, Select: goPattern,
		Why: "a start takes 4 ms; benchmarks of one process share the heap, and so the times of its collector",
	},
	{
		Name: "Criterion", Format: assayv1alpha1.CriterionOutput, Program: program,
		Arguments: []string{"--bench", "--noplot", "--warm-up-time=0.1", "--measurement-time=0.5", "--sample-size=20", "--exact", byName},
		Why:       "a start takes 2 ms; the warm-up of 0.1 s is per benchmark in any case",
	},
	{
		Name: "Divan", Format: assayv1alpha1.DivanOutput, Program: program,
		Arguments: []string{"--bench", "--sample-count=50", "--exact", byName},
		Why:       "a start takes 2 ms",
	},
	{
		Name: "PytestBenchmark", Format: assayv1alpha1.PytestBenchmarkOutput, Output: "pytest-benchmark.json", Files: "test_*.py",
		Program: "pytest",
		Arguments: []string{"-q", "-p", "no:cacheprovider", "--benchmark-max-time=0.2", "--benchmark-json=pytest-benchmark.json",
			program + "::" + byName},
		Why: "a start takes 0.3 s and more with imports, which is the price of a heap and a hash seed of its own",
	},
	{
		Name: "JMH", Format: assayv1alpha1.JMHOutput, Output: "jmh.json", Files: "*.jar", Program: "java",
		Arguments: []string{"-jar", program, bySelect, "-f", "1", "-wi", "1", "-w", "200ms", "-i", "5", "-r", "100ms", "-foe", "true",
			"-rf", "json", "-rff", "jmh.json"},
		Select: jmhPattern,
		Why:    "JMH starts a virtual machine for each benchmark itself (-f 1), because profiles of compiled code are shared within one",
	},
}

// Tools returns all tools.
func Tools() []Tool { return slices.Clone(tools) }

// FindTool returns a tool by its name, ignoring case; ok is false for an unknown name.
func FindTool(name string) (tool Tool, ok bool) {
	i := slices.IndexFunc(tools, func(t Tool) bool { return strings.EqualFold(t.Name, name) })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}

// command is the template's command.
func (t Tool) command() []string { return append([]string{t.Program}, t.Arguments...) }

// Executable reports whether the files of a build are started themselves.
func (t Tool) Executable() bool { return t.Program == program }

// parameter is a parameter of the command, or of the metric alone.
func (t Tool) parameter(name string) assayv1alpha1.Parameter {
	out := assayv1alpha1.Parameter{Name: name}
	if !strings.Contains(strings.Join(t.command(), " "), "$("+name+")") {
		out.Argument = "None"
	}
	return out
}

// selects returns the argument that selects a benchmark.
func (t Tool) selects(name string) string {
	if t.Select == nil {
		return name
	}
	return t.Select(name)
}

// goPattern selects one benchmark of a Go test. Each level of a name is matched by its own expression.
func goPattern(name string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// jmhPattern selects one benchmark method.
func jmhPattern(name string) string { return "^" + regexp.QuoteMeta(name) + "$" }
