package ci

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/report"
)

// codeQualitySchema is GitLab's definition of a Code Quality report. GitLab resolves only relative paths in a repository.
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
const codeQualitySchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "array",
  "items": {
    "type": "object",
    "required": ["description", "check_name", "fingerprint", "severity", "location"],
    "additionalProperties": false,
    "properties": {
      "description": {"type": "string", "minLength": 1},
      "check_name": {"type": "string", "minLength": 1},
      "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32,}$"},
      "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
      "location": {
        "type": "object",
        "required": ["path", "lines"],
        "additionalProperties": false,
        "properties": {
          "path": {"type": "string", "minLength": 1, "not": {"pattern": "^(/|\\.{1,2}/)"}},
          "lines": {
            "type": "object",
            "required": ["begin"],
            "additionalProperties": false,
            "properties": {"begin": {"type": "integer", "minimum": 1}}
          }
        }
      }
    }
  }
}`

func readCodeQualitySchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(codeQualitySchema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("code-quality.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("code-quality.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// validCodeQuality holds a report against the schema.
func validCodeQuality(schema *jsonschema.Schema, raw []byte) error {
	got, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	return schema.Validate(got)
}

func TestCodeQuality_MatchesSchema(t *testing.T) {
	schema := readCodeQualitySchema(t)
	for name, result := range results(t) {
		t.Run(name, func(t *testing.T) {
			raw, err := result.CodeQuality()
			if err != nil {
				t.Fatal(err)
			}
			if err := validCodeQuality(schema, raw); err != nil {
				t.Errorf("%v in\n%.3000s", err, raw)
			}
			var issues []quality
			if err := json.Unmarshal(raw, &issues); err != nil {
				t.Fatal(err)
			}
			// GitLab shows one of those that share a fingerprint.
			var seen []string
			for _, one := range issues {
				seen = append(seen, one.Fingerprint)
			}
			slices.Sort(seen)
			if n := len(slices.Compact(seen)); n != len(issues) {
				t.Errorf("%d findings have %d fingerprints", len(issues), n)
			}
		})
	}
}

func TestCodeQualitySchema_InvalidReportsRejected(t *testing.T) {
	schema := readCodeQualitySchema(t)
	const whole = `[{"description": "a", "check_name": "b", "fingerprint": "0123456789abcdef0123456789abcdef", "severity": "major",` +
		` "location": {"path": "run.yaml", "lines": {"begin": 1}}}]`
	if err := validCodeQuality(schema, []byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"an object, not a list": {whole, `{}`},
		"no fingerprint":        {`"fingerprint": "0123456789abcdef0123456789abcdef", `, ``},
		"an unknown severity":   {`"major"`, `"error"`},
		"a line of zero":        {`"begin": 1`, `"begin": 0`},
		"a line as text":        {`"begin": 1`, `"begin": "1"`},
		"a whole path":          {`"run.yaml"`, `"/run.yaml"`},
		"a path above":          {`"run.yaml"`, `"../run.yaml"`},
		"a path with a dot":     {`"run.yaml"`, `"./run.yaml"`},
		"an unknown field":      {`"severity"`, `"level": 1, "severity"`},
	} {
		changed := strings.Replace(whole, edit[0], edit[1], 1)
		if err := validCodeQuality(schema, []byte(changed)); changed == whole || err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Both forms are valid for every name and every end of a run.
func TestForms_AnyResultIsValid(t *testing.T) {
	junit, gitlab := readJUnitSchema(t), readCodeQualitySchema(t)
	for seed := range uint64(300) {
		result := anyResult(rand.New(rand.NewPCG(seed, 18)))
		raw, err := result.JUnit()
		if err == nil {
			err = junit.validate(raw)
		}
		if err != nil {
			t.Errorf("seed %d: %v in\n%.2000s", seed, err, raw)
		}
		if raw, err = result.CodeQuality(); err == nil {
			err = validCodeQuality(gitlab, raw)
		}
		if err != nil {
			t.Errorf("seed %d: %v in\n%.2000s", seed, err, raw)
		}
	}
}

// anyResult is a result of any kind, with any text in it.
func anyResult(random *rand.Rand) *Result {
	text := func() string {
		parts := []string{
			evil, "", " ", "\x00", "\uFFFE", "]]>", "a", "café", "\r\n", "&#0;", "\xed\xa0\x80", "<b/>", "1.5x", strings.Repeat("x", 3000),
		}
		var out strings.Builder
		for range random.IntN(4) {
			out.WriteString(parts[random.IntN(len(parts))])
		}
		return out.String()
	}
	verdicts := []experiment.Verdict{
		"", experiment.VerdictGo, experiment.VerdictNoGo, experiment.VerdictInconclusive, experiment.VerdictInvalid,
	}
	verdict := func() experiment.Verdict { return verdicts[random.IntN(len(verdicts))] }
	out := &Result{
		Title: "t" + text(), Verdict: verdict(), Passed: random.IntN(2) == 0, Sentence: text(), Gain: text(), Trials: text(), Report: text(),
		Lines: map[string]int{"g": random.IntN(100) - 1},
	}
	if random.IntN(2) == 0 {
		out.File = "benchmarks/" + text()
	}
	for range random.IntN(4) {
		gate := Gate{analysis.GateResult{Gate: "g" + text(), Candidate: text(), Point: text(), Message: text(), Outcome: verdict()}, text()}
		if random.IntN(3) == 0 {
			gate.Severity = experiment.Advisory
		}
		out.Gates = append(out.Gates, gate)
		out.Warnings = append(out.Warnings, report.Warning{Text: text(), More: []string{text()}})
	}
	return out
}
