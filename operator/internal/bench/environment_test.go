package bench

import (
	"slices"
	"strings"
	"testing"
)

func TestParseVariables_NameAndValueOrRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		given []string
		want  []Variable
		says  string
	}{
		"a value":                  {given: []string{"OMP_NUM_THREADS=4"}, want: []Variable{{"OMP_NUM_THREADS", "4"}}},
		"an empty value":           {given: []string{"A="}, want: []Variable{{"A", ""}}},
		"a value with =":           {given: []string{"A=b=c"}, want: []Variable{{"A", "b=c"}}},
		"one name twice":           {given: []string{"A=1", "B=2", "A=3"}, want: []Variable{{"B", "2"}, {"A", "3"}}},
		"no value":                 {given: []string{"A"}, says: `--env "A": write it as NAME=VALUE`},
		"no name":                  {given: []string{"=1"}, says: "NAME=VALUE"},
		"an invalid name":          {given: []string{"A-B=1"}, says: "NAME=VALUE"},
		"a reserved name":          {given: []string{"ASSAY_TRIAL=1"}, says: "reserved for Assay"},
		"a value that is too long": {given: []string{"A=" + strings.Repeat("x", 4097)}, says: "at most 4096"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseVariables(tc.given)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want one that says %q", err, tc.says)
				}
				return
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

func TestBenchmarkRun_VariablesAreParametersOfAllCommands(t *testing.T) {
	question := &Question{
		Commands: [][]string{{"/bin/a"}, {"/bin/b"}}, Names: []string{"a", "b"}, Blocks: 10, CPUs: 1, Budget: 1e9,
		Figures: Figures{Format: "None"}, Variables: []Variable{{"OMP_NUM_THREADS", "4"}, {"omp__num_threads", "x"}},
	}
	run, err := question.BenchmarkRun()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, parameter := range run.Spec.Template.Parameters {
		if parameter.Env != "" {
			got = append(got, parameter.Name+" "+parameter.Env+"="+*parameter.Default+" "+parameter.Argument)
		}
	}
	want := []string{"envOmpNumThreads OMP_NUM_THREADS=4 None", "envOmpNumThreads2 omp__num_threads=x None"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
