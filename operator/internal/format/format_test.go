package format

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormats_AreThoseOfTheSchema(t *testing.T) {
	raw, err := os.ReadFile("../record/schema/wave.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Workload struct {
				Properties struct {
					Output struct {
						Properties struct {
							Format struct{ Enum, EnumDescriptions []string }
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	of := schema.Properties.Workload.Properties.Output.Properties.Format
	if diff := cmp.Diff(of.Enum, allNames()); diff != "" {
		t.Errorf("formats of the schema (-) and of the table (+):\n%s", diff)
	}
	if len(of.EnumDescriptions) != len(of.Enum) {
		t.Errorf("%d formats have %d descriptions", len(of.Enum), len(of.EnumDescriptions))
	}
}

// The API has a rule for the formats whose metrics must name a field, and a rule cannot call Go.
func TestFormats_WithoutUsualFieldAreThoseOfTheRule(t *testing.T) {
	raw, err := os.ReadFile("../../api/v1alpha1/benchmarktemplate_types.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, of := range formats {
		if of.NoUsualField {
			names = append(names, "'"+of.Name+"'")
		}
	}
	if rule := "self.output.format in [" + strings.Join(names, ", ") + "]"; !strings.Contains(string(raw), rule) {
		t.Errorf("the rule of BenchmarkTemplateSpec for from.field lacks %s", rule)
	}
}

func TestFormat_SamplesOfAFigure(t *testing.T) {
	cases := map[string]struct {
		format string
		from   From
		text   bool
		want   bool
	}{
		"the usual field of hyperfine has a sample per run":       {"Hyperfine", From{}, false, true},
		"hyperfine's mean is one figure":                          {"Hyperfine", From{Field: "mean"}, false, false},
		"Criterion's folder has samples":                          {"Criterion", From{}, false, true},
		"Criterion's text has medians":                            {"Criterion", From{}, true, false},
		"repetitions of Google Benchmark are samples":             {"GoogleBenchmark", From{Benchmark: "BM_List"}, false, true},
		"an aggregate of Google Benchmark is one figure":          {"GoogleBenchmark", From{Benchmark: "BM_List_median"}, false, false},
		"JMH's iterations are samples":                            {"JMH", From{Field: "score"}, false, true},
		"a percentile of JMH is one figure":                       {"JMH", From{Field: "score.p(0.99)"}, false, false},
		"wrk reports no samples":                                  {"Wrk", From{Field: "Latency Avg"}, false, false},
		"every column of a table has samples":                     {"CSV", From{Field: "mean"}, false, true},
		"every unit of a Go benchmark has a sample for each line": {"GoBench", From{Field: "B/op"}, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Named(tc.format).HasSamples(tc.from, tc.text); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// allNames returns the names of the formats, in the order of the schema.
func allNames() []string {
	out := make([]string, len(formats))
	for i := range formats {
		out[i] = formats[i].Name
	}
	return out
}
