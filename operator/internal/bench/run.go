package bench

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/suggest"
)

// Question is the comparison that the command line describes.
type Question struct {
	// Commands are the words of each command, its program as it is started; the first one is the baseline.
	Commands [][]string
	// Names of the arms, as many as commands.
	Names   []string
	Figures Figures
	// Benchmarks are the names in the output of each command, where they differ; nil if Figures.Benchmark is that of all.
	Benchmarks []string
	// Requirements are the gates, as of --require; without any it is asked whether a candidate is faster.
	Requirements []string
	// By is the deciding figure of commands that report none, and without requirements: WallTime or CPUTime.
	By string
	// Blocks is the number of blocks; 0 continues until the interval is as narrow as Precision, within the budget.
	Blocks      int
	Warmup      int
	CPUs        int
	Budget      time.Duration
	OnViolation assayv1alpha1.ViolationPolicy
	// Variables of the environment of all commands, as of --env.
	Variables []Variable
}

// Image stands for the image that a run on this machine does not have. The API wants one.
const Image = "localhost/none"

// env splits a command line without a shell: its -S.
const env = "/usr/bin/env"

const (
	mostWords      = 64
	mostCandidates = 15
)

// BenchmarkRun is the question as one would write it down.
func (q *Question) BenchmarkRun() (*assayv1alpha1.BenchmarkRun, error) {
	switch n := len(q.Commands); {
	case n < 2:
		return nil, fmt.Errorf("%d command: name the baseline and at least one other, each as one quoted argument", n)
	case n > mostCandidates+1:
		return nil, fmt.Errorf("%d commands: at most %d can be compared in one run", n, mostCandidates+1)
	}
	figures := q.Figures
	if len(q.Benchmarks) > 0 {
		if len(q.Benchmarks) != len(q.Commands) {
			return nil, fmt.Errorf("--benchmark: %d names for %d commands: give one for all, or one for each, the baseline's first",
				len(q.Benchmarks), len(q.Commands))
		}
		figures.Benchmark = "$(" + benchmarkParameter + ")"
	}
	if err := errors.Join(figures.check(), q.checkBy()); err != nil {
		return nil, err
	}
	commands := make([][]string, len(q.Commands))
	for i, command := range q.Commands {
		commands[i] = command
		benchmark := q.Figures.Benchmark
		if len(q.Benchmarks) > 0 {
			benchmark = q.Benchmarks[i]
		}
		if usual := figures.format().Arguments(benchmark); len(command) == 1 {
			commands[i] = append([]string{command[0]}, usual...)
		}
	}
	if err := q.checkNames(); err != nil {
		return nil, err
	}
	command, values, parameters, err := template(commands)
	if err != nil {
		return nil, err
	}
	if len(q.Benchmarks) > 0 {
		parameters = append(parameters, assayv1alpha1.Parameter{
			Name: benchmarkParameter, Type: assayv1alpha1.StringParameter, Argument: "None",
		})
		for i, name := range q.Benchmarks {
			values[i][benchmarkParameter] = name
		}
	}
	run := &assayv1alpha1.BenchmarkRun{
		TypeMeta:   metav1.TypeMeta{APIVersion: assayv1alpha1.GroupVersion.String(), Kind: "BenchmarkRun"},
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
	}
	spec := &run.Spec
	spec.Template = &assayv1alpha1.BenchmarkTemplateSpec{
		Image: Image, Command: command, Parameters: parameters, Parity: assayv1alpha1.ParityNone,
		Output:       assayv1alpha1.Output{Format: q.Figures.Format, Path: q.Figures.Path},
		TrialTimeout: metav1.Duration{Duration: q.Budget},
	}
	if metric := figures.metric(); metric != nil {
		spec.Template.Metrics = []assayv1alpha1.Metric{*metric}
	}
	if q.Figures.Format == assayv1alpha1.CriterionOutput && q.Figures.Path == "" {
		folder := "criterion"
		spec.Template.Output.Path = folder
		spec.Template.Parameters = append(spec.Template.Parameters,
			assayv1alpha1.Parameter{Name: "criterionHome", Default: &folder, Argument: "None", Env: "CRITERION_HOME"})
	}
	spec.Template.Parameters = append(spec.Template.Parameters, q.variables()...)
	for i, name := range q.Names {
		spec.Arms = append(spec.Arms, assayv1alpha1.Arm{Name: name, Baseline: i == 0, Parameters: values[i]})
	}
	perBlock := len(q.Names) * (experiment.VisitTrials + q.Warmup)
	spec.Design.Blocks = assayv1alpha1.Blocks{Min: int32(q.Blocks), Max: int32(q.Blocks)}
	switch {
	case q.Blocks == 0:
		spec.Design.Blocks = assayv1alpha1.Blocks{Min: LeastBlocks, Max: int32(max(LeastBlocks+1, min(mostBlocks, mostTrials/perBlock)))}
		spec.Design.Stop = &assayv1alpha1.Stop{RelativeHalfWidth: Precision}
	case q.OnViolation == assayv1alpha1.ViolationRetry:
		spec.Design.Blocks.Max = 2 * int32(q.Blocks)
	}
	spec.Design.WarmupTrials = int32(q.Warmup)
	spec.Placement = assayv1alpha1.Placement{CPUs: int32(q.CPUs), Exclusive: assayv1alpha1.ExclusiveNone, Memory: resource.MustParse("1Gi")}
	spec.Environment = &assayv1alpha1.Environment{OnViolation: q.OnViolation}
	spec.Budget = assayv1alpha1.Budget{
		WallClock: metav1.Duration{Duration: q.Budget}, Trials: min(mostTrials, max(2000, int32(perBlock)*spec.Design.Blocks.Max)),
	}
	spec.Gates, err = q.gates()
	return run, err
}

// benchmarkParameter has the name of each command's benchmark.
const benchmarkParameter = "benchmark"

// checkNames reports names that arms cannot have. That they differ is checked with the run.
func (q *Question) checkNames() error {
	if len(q.Names) != len(q.Commands) {
		return fmt.Errorf("--name: %d names for %d commands: give one for each, the baseline's first", len(q.Names), len(q.Commands))
	}
	for _, name := range q.Names {
		if !ArmName.MatchString(name) {
			return fmt.Errorf("--name: invalid name %q: use lower case letters, digits and - inside", name)
		}
	}
	return nil
}

// template is the command that all share, with a parameter for every word that differs. Commands of different lengths are split by
// env -S, which replaces itself by the program.
func template(commands [][]string) ([]string, []assayv1alpha1.ParameterValues, []assayv1alpha1.Parameter, error) {
	values := make([]assayv1alpha1.ParameterValues, len(commands))
	same := len(commands[0]) <= mostWords
	for i, command := range commands {
		values[i] = assayv1alpha1.ParameterValues{}
		same = same && len(command) == len(commands[0])
	}
	if !same {
		for i, command := range commands {
			if strings.Contains(command[0], "=") {
				return nil, nil, nil, fmt.Errorf("program %q: commands with different numbers of arguments are started by env, which takes a name "+
					"with = for a variable: "+
					"rename the program", command[0])
			}
			values[i]["command"] = quoted(command)
		}
		return []string{env, "-S", "$(command)"}, values, []assayv1alpha1.Parameter{{Name: "command", Type: assayv1alpha1.StringParameter}}, nil
	}
	var out []string
	var parameters []assayv1alpha1.Parameter
	for w, word := range commands[0] {
		// $(name) is a parameter in a command, but literal text in the value of a parameter.
		differs := strings.Contains(word, "$(")
		for _, command := range commands {
			differs = differs || command[w] != word
		}
		if !differs {
			out = append(out, word)
			continue
		}
		name := "argument" + strconv.Itoa(w)
		if w == 0 {
			name = "program"
		}
		for i, command := range commands {
			values[i][name] = command[w]
		}
		out = append(out, "$("+name+")")
		parameters = append(parameters, assayv1alpha1.Parameter{Name: name, Type: assayv1alpha1.StringParameter})
	}
	return out, values, parameters, nil
}

// quoted are words as env -S reads them: inside single quotes only \' and \\ mean something.
// https://www.gnu.org/software/coreutils/manual/html_node/env-invocation.html
func quoted(words []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	out := make([]string, 0, len(words))
	for _, word := range words {
		out = append(out, "'"+escape.Replace(word)+"'")
	}
	return strings.Join(out, " ")
}

// Faster is the gate without --require: Go is faster, NoGo is slower, Inconclusive is that neither was shown. Beside is the gate of the
// figure that does not decide, which never changes a verdict.
const (
	Faster = "faster"
	Beside = "beside"
)

// The figures of the process that --by can name, of which one is fixed as the deciding one before the first trial.
const (
	WallTime = "wall"
	CPUTime  = "cpu"
)

// byMetric are the metrics of --by.
var byMetric = map[string]string{WallTime: record.ProcessPrefix + "wallTime", CPUTime: record.ProcessPrefix + "cpuTime"}

// MetricOf returns the metric of a figure that --by can name.
func MetricOf(by string) string { return byMetric[by] }

// checkBy reports a deciding figure that is unknown, or that something else has fixed.
func (q *Question) checkBy() error {
	switch {
	case byMetric[q.By] == "" && q.By != "":
		return fmt.Errorf("invalid --by %q: %s", q.By, suggest.Allowed(q.By, []string{WallTime, CPUTime}))
	case q.By != "" && len(q.Requirements) > 0:
		return errors.New("--by and --require both name the figure that decides: use one of them, such as --require 'cpuTime<=1x'")
	case q.By != "" && q.Figures.Format != assayv1alpha1.NoOutput:
		return errors.New("--by is for commands that report no figures, and --format reads one that decides: use one of them")
	}
	return nil
}

// requirementPrefix begins the names of the gates of --require.
const requirementPrefix = "require-"

var requirement = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9.]*)\s*(<=|>=)\s*([0-9]+(?:\.[0-9]+)?)\s*(x|[A-Za-z]*)\s*$`)

func (q *Question) gates() ([]assayv1alpha1.Gate, error) {
	metric, reported := byMetric[cmp.Or(q.By, WallTime)], q.Figures.metric()
	op := assayv1alpha1.RatioAtMost
	if reported != nil {
		metric = reported.Name
		if reported.Direction == assayv1alpha1.HigherIsBetter {
			op = assayv1alpha1.RatioAtLeast
		}
	}
	if len(q.Requirements) == 0 {
		out := []assayv1alpha1.Gate{{Name: Faster, Metric: metric, Op: op, Bound: "1"}}
		if reported == nil {
			other := byMetric[CPUTime]
			if metric == other {
				other = byMetric[WallTime]
			}
			out = append(out, assayv1alpha1.Gate{Name: Beside, Metric: other, Op: op, Bound: "1", Severity: assayv1alpha1.Advisory})
		}
		return out, nil
	}
	var out []assayv1alpha1.Gate
	for i, text := range q.Requirements {
		parts := requirement.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("--require %q: write METRIC<=BOUND or METRIC>=BOUND, with an x where the bound is a multiple of the baseline's, "+
				"such as 'wallTime<=0.9x' or 'peakMemory<=200Mi'", text)
		}
		gate := assayv1alpha1.Gate{Name: requirementPrefix + strconv.Itoa(i+1), Metric: parts[1], Bound: parts[3]}
		if _, read := record.FindProcessQuantity(record.ProcessPrefix + parts[1]); read != nil && (reported == nil || reported.Name != parts[1]) {
			gate.Metric = record.ProcessPrefix + parts[1]
		}
		ops := map[string][2]assayv1alpha1.GateOperator{
			"<=": {assayv1alpha1.AtMost, assayv1alpha1.RatioAtMost}, ">=": {assayv1alpha1.AtLeast, assayv1alpha1.RatioAtLeast},
		}[parts[2]]
		if gate.Op = ops[0]; parts[4] == "x" {
			gate.Op = ops[1]
		} else {
			gate.Bound += parts[4]
		}
		out = append(out, gate)
	}
	return out, nil
}

// Commands are the command lines, however they were given, the baseline's first.
func Commands(arguments []string, baseline string, candidates []string) ([]string, error) {
	switch {
	case baseline == "" && len(candidates) == 0:
		return arguments, nil
	case len(arguments) > 0:
		return nil, errors.New("the commands are named both as arguments and with --baseline and --candidate: use one of them")
	case baseline == "":
		return nil, errors.New("--candidate requires --baseline")
	default:
		return append([]string{baseline}, candidates...), nil
	}
}
