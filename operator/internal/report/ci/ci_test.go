package ci

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/test/scanned"
)

func scan(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)) *Result {
	t.Helper()
	exp, result, _ := scanned.Run(t, scanned.Noisy, 8, edit, nil)
	return From("scan", exp, result)
}

const evil = "\"><script>alert(1)</script> | `x` @everyone --> ]]> %0A::error::\x00\xff\n# heading\n![](http://evil/x.png)"

// results are of every kind that there is.
func results(t *testing.T) map[string]*Result {
	t.Helper()
	hostile := &Result{
		Title: evil, Verdict: experiment.VerdictNoGo, Sentence: evil, Trials: evil, Report: "https://x/>" + evil, File: "a,b:c%" + evil,
		Gates: []Gate{{analysis.GateResult{Gate: evil, Candidate: evil, Point: evil, Estimate: &analysis.Estimate{Value: 1, Unit: evil, Blocks: 1},
			Message: evil, Outcome: experiment.VerdictNoGo}, evil}},
		Warnings: []report.Warning{{Text: evil, More: []string{evil}}},
	}
	many := &Result{Title: "many", Verdict: experiment.VerdictNoGo, Sentence: "s"}
	for i := range 5000 {
		many.Gates = append(many.Gates,
			Gate{GateResult: analysis.GateResult{Gate: fmt.Sprintf("g%d", i), Candidate: "new", Outcome: experiment.VerdictNoGo,
				Message: strings.Repeat("x", 500)}})
		many.Warnings = append(many.Warnings, report.Warning{Text: strings.Repeat("y", 500)})
	}
	allowed := &Result{Title: "allowed", Verdict: experiment.VerdictInconclusive, Passed: true, Sentence: "s",
		Gates: []Gate{{GateResult: analysis.GateResult{Gate: "g", Candidate: "new", Outcome: experiment.VerdictInconclusive}}}}
	invalid := &Result{Title: "invalid", Verdict: experiment.VerdictInvalid, Sentence: "s", Trials: "0 of 4 trials used",
		Gates: []Gate{{GateResult: analysis.GateResult{Gate: "g", Candidate: "new", Outcome: experiment.VerdictInvalid}}}}
	everywhere := &Result{Title: "everywhere", Verdict: experiment.VerdictNoGo, Sentence: "s"}
	for _, candidate := range []string{"new", "newer"} {
		for _, point := range []string{"n=1", "n=2"} {
			everywhere.Gates = append(everywhere.Gates,
				Gate{GateResult: analysis.GateResult{Gate: "g", Candidate: candidate, Point: point, Outcome: experiment.VerdictNoGo}})
		}
	}
	long := &Result{Title: "long", Verdict: experiment.VerdictNoGo, Sentence: "s", Gates: []Gate{{GateResult: analysis.GateResult{
		Gate: "g", Candidate: "new", Point: strings.Repeat("n=é,", 8<<10), Message: strings.Repeat("é ", 100<<10),
		Outcome: experiment.VerdictNoGo}}}}
	return map[string]*Result{
		"a point and a message without end":  long,
		"a failure that says all and a name": Failed(strings.Repeat("x", 1000), strings.Repeat("y", 1<<20)),
		"one gate, missed everywhere":        everywhere,
		"a Go beside a NoGo":                 scan(t, nil),
		"hostile":                            hostile, "many": many, "an Inconclusive that is allowed": allowed, "invalid": invalid,
		"failed": Failed("failed", "no runner"), "none": {Title: "none", Trials: "4 of 4 trials used", Sentence: "no gates"},
	}
}

// Every form lists failures if and only if the run does not pass.
func TestForms_AgreeOnPassing(t *testing.T) {
	for name, result := range results(t) {
		t.Run(name, func(t *testing.T) {
			raw, err := result.CodeQuality()
			var issues []quality
			if err == nil {
				err = json.Unmarshal(raw, &issues)
			}
			if err != nil {
				t.Fatal(err)
			}
			failures, errored := counted(t, result)
			for form, stands := range map[string]bool{
				"Code Quality": len(issues) > 0, "annotations": len(result.Annotations()) > 0, "JUnit": failures+errored > 0,
			} {
				if stands == result.Passed {
					t.Errorf("%s says that something stands in the way: %v; passed: %v", form, stands, result.Passed)
				}
			}
		})
	}
}

func counted(t *testing.T, result *Result) (failures, errored int) {
	t.Helper()
	raw, err := result.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(raw, []byte("<failure ")), bytes.Count(raw, []byte("<error "))
}

func TestForms_NoGoBesideGoDoesNotFail(t *testing.T) {
	result := scan(t, nil)
	raw, err := result.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	if !result.Passed || bytes.Contains(raw, []byte("<failure")) || !bytes.Contains(raw, []byte(`<skipped type="NoGo"`)) {
		t.Errorf("passed %v:\n%s", result.Passed, raw)
	}
}

func TestMarkdown_EscapedAndBounded(t *testing.T) {
	for name, result := range results(t) {
		t.Run(name, func(t *testing.T) {
			text := result.Markdown()
			if len(text) > MaxMarkdown || !utf8.ValidString(text) {
				t.Errorf("%d bytes", len(text))
			}
			for _, forbidden := range []string{"<script", "@everyone", "\n# heading", "![](", "-->", "\x00"} {
				if strings.Contains(text, forbidden) {
					t.Errorf("it has %q:\n%.600s", forbidden, text)
				}
			}
			columns := 0
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "|") {
					columns = 0
					continue
				}
				n := len(regexp.MustCompile(`(^|[^\\])\|`).FindAllString(line, -1))
				if columns != 0 && n != columns {
					t.Errorf("a row of %d cells in a table of %d: %s", n, columns, line)
				}
				columns = n
			}
		})
	}
}

func TestWorkflowCommands_OneLineEach(t *testing.T) {
	line := regexp.MustCompile(`^::(error|warning|notice) (file=[^,:\n]+,line=[0-9]+,)?title=[^,:\n]+::[^\n]*$`)
	for name, result := range results(t) {
		for text := range strings.Lines(result.Commands()) {
			if text = strings.TrimSuffix(text, "\n"); !line.MatchString(text) {
				t.Errorf("%s: %q", name, text)
			}
		}
		if n := len(result.Annotations()); n > maxAnnotations {
			t.Errorf("%s has %d annotations", name, n)
		}
		for _, a := range result.Annotations() {
			if len(a.Title) > maxTitle || len(a.Message) > 64<<10 || name != "hostile" && !utf8.ValidString(a.Title+a.Message) {
				t.Errorf("%s has an annotation with a title of %d bytes and a message of %d", name, len(a.Title), len(a.Message))
			}
		}
	}
}

func TestMarker_TextCannotEndComment(t *testing.T) {
	for name, result := range results(t) {
		if marker := result.Marker(); !regexp.MustCompile(`^<!-- assay-report: [A-Za-z0-9._/%-]+ -->$`).MatchString(marker) ||
			strings.Contains(strings.TrimSuffix(strings.TrimPrefix(marker, "<!--"), "-->"), "--") {
			t.Errorf("%s: %q", name, marker)
		}
	}
	one, other := Result{Title: "a", File: "x/run.yaml"}, Result{Title: "b", File: "x/run.yaml"}
	if one.Marker() != other.Marker() {
		t.Error("a file that is refused has another comment than when it runs")
	}
	files := map[string]string{}
	for _, file := range []string{"a_b", "a b", "a+b", "a%20b", "a-b", "a--b", "a---b", "a-%2Db", "-a-b", "é", "è", "a@b", "a\nb", "a/b",
		"a_/b"} {
		marker := (&Result{File: file}).Marker()
		if other, ok := files[marker]; ok {
			t.Errorf("%q and %q have one comment, %q: the second takes the place of the first", other, file, marker)
		}
		if files[marker] = file; strings.Contains(strings.TrimSuffix(strings.TrimPrefix(marker, "<!--"), "-->"), "--") {
			t.Errorf("%q ends within itself", marker)
		}
	}
	if got, want := (&Result{File: "bench/run_1-a.yaml"}).Marker(), "<!-- assay-report: bench/run_1-a.yaml -->"; got != want {
		t.Errorf("the comment of a file as files are called begins with %s, want %s", got, want)
	}
}

func TestCodeQuality_PointsAtGate(t *testing.T) {
	result := &Result{
		Title: "r", File: "benchmarks/run.yaml", Lines: map[string]int{"worth-it": 22}, Verdict: experiment.VerdictNoGo,
		Gates: []Gate{{analysis.GateResult{Gate: "worth-it", Candidate: "new", Outcome: experiment.VerdictNoGo, Message: "m"}, "a"},
			{GateResult: analysis.GateResult{Gate: "maybe", Candidate: "new", Outcome: experiment.VerdictInconclusive}},
			{GateResult: analysis.GateResult{Gate: "advice", Candidate: "new", Outcome: experiment.VerdictNoGo, Severity: experiment.Advisory}}},
	}
	raw, err := result.CodeQuality()
	var issues []quality
	if err == nil {
		err = json.Unmarshal(raw, &issues)
	}
	if err != nil || len(issues) != 2 {
		t.Fatalf("%v: %s", err, raw)
	}
	first, second := issues[0], issues[1]
	if first.Location.Path != "benchmarks/run.yaml" || first.Location.Lines.Begin != 22 || first.Severity != "critical" ||
		second.Severity != "major" ||
		second.Location.Lines.Begin != 1 || first.Fingerprint == second.Fingerprint {
		t.Errorf("%+v", issues)
	}
	result.Gates[0].Message = "other figures"
	again, err := result.CodeQuality()
	if err != nil || !bytes.Contains(again, []byte(first.Fingerprint)) {
		t.Error("a gate has another fingerprint with other figures")
	}
}

func TestBadge_WellFormedWithVerdict(t *testing.T) {
	for name, result := range results(t) {
		badge := result.Badge()
		if err := xml.Unmarshal(badge, new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%s: %v in %s", name, err, badge)
		}
		if !bytes.Contains(badge, []byte(">"+result.Word())) || bytes.Contains(badge, []byte("<script")) {
			t.Errorf("%s: %s", name, badge)
		}
		raw, err := result.Shields()
		var endpoint struct {
			SchemaVersion         int
			Label, Message, Color string
		}
		if err == nil {
			err = json.Unmarshal(raw, &endpoint)
		}
		if err != nil || endpoint.SchemaVersion != 1 || endpoint.Message == "" || endpoint.Label == "" || endpoint.Color == "" {
			t.Errorf("%s: %v %s", name, err, raw)
		}
	}
	if got := string(scan(t, nil).Badge()); !strings.Contains(got, ">Go 0.9957x<") {
		t.Errorf("the gain is not on the badge: %s", got)
	}
}
