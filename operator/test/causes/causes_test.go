package causes

import (
	"bytes"
	"html"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/progress"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/ci"
	reporthtml "assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/status"
)

// way breaks trials. Says is a part of the cause that every view must have.
type way struct {
	kind, name string
	spoil      func(a *record.Attempt)
	says       string
	// edit changes the template or the spec; nil for the experiment of a pair.
	edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
	// analysed means that only the analysis, which compares trials, can find it. Then it is told with the verdict.
	analysed bool
}

// ways are the ways in which a trial fails, with the messages of the runner. Real runs that fail in these ways are those of calibrate
// broken.
func ways() []way {
	ended := func(outcome record.Outcome, code, signal *int, message string) func(*record.Attempt) {
		return func(a *record.Attempt) {
			a.Outcome, a.ExitCode, a.Signal, a.Message, a.Result = outcome, code, signal, message, nil
		}
	}
	exits := func(code int, message string) func(*record.Attempt) {
		return ended(record.Failed, ptr.To(code), nil, message)
	}
	killed := func(signal int, message string) func(*record.Attempt) {
		return ended(record.Failed, nil, ptr.To(signal), message)
	}
	unread := func(message string) func(*record.Attempt) { return ended(record.Malformed, ptr.To(0), nil, message) }
	refused := func(message string) func(*record.Attempt) { return ended(record.NotStarted, nil, nil, message) }
	reports := func(name string, metric record.Metric) func(*record.Attempt) {
		return func(a *record.Attempt) {
			result := *a.Result
			result.Metrics = map[string]*record.Metric{name: &metric}
			a.Result = &result
		}
	}
	return []way{
		{kind: "image", name: "without the program", spoil: exits(127, "cannot start /simulated: No such file or directory"), says: "No such file or directory"},
		{kind: "image", name: "without a shell", spoil: exits(127, "cannot start /bin/sh: No such file or directory"), says: "cannot start /bin/sh"},
		{kind: "image", name: "for another machine", spoil: exits(126, "cannot start /simulated: Exec format error"), says: "Exec format error"},
		{kind: "program", name: "crashes", spoil: killed(11, "killed by signal 11 (SIGSEGV)"), says: "SIGSEGV"},
		{kind: "program", name: "aborts", spoil: killed(6, "killed by signal 6 (SIGABRT); the last line on standard error is: assertion failed"), says: "assertion failed"},
		{kind: "program", name: "exits with an error", spoil: exits(3, "exited with code 3; the last line on standard error is: no such table"), says: "no such table"},
		{kind: "arguments", name: "unknown", spoil: exits(2, "exited with code 2; the last line on standard error is: unknown option --iteration"), says: "unknown option --iteration"},
		{kind: "arguments", name: "out of range", spoil: exits(1, "exited with code 1; the last line on standard error is: rows must be a power of two"), says: "rows must be a power of two"},
		{kind: "arguments", name: "missing file", spoil: exits(1, "exited with code 1; the last line on standard error is: cannot open data.bin"), says: "cannot open data.bin"},
		{kind: "output", name: "empty", spoil: unread("no result: standard output is empty"), says: "standard output is empty"},
		{kind: "output", name: "text", spoil: unread("no result: expected a JSON object, found it took 1 s"), says: "found it took 1 s"},
		{kind: "output", name: "without the column", spoil: unread("the CSV has no column seconds; it has minutes"), says: "no column seconds"},
		{kind: "output", name: "negative", spoil: reports("time", record.Metric{Unit: "s", Value: ptr.To(-1.0)}), says: "-1"},
		{kind: "unit", name: "another one", spoil: reports("time", record.Metric{Unit: "ms", Value: ptr.To(1.0)}), says: "ms"},
		{kind: "unit", name: "another metric", spoil: reports("latency", record.Metric{Unit: "s", Value: ptr.To(1.0)}), says: "time"},
		{kind: "unit", name: "of the CSV", spoil: unread("column seconds: invalid unit mss of the field"), says: "invalid unit mss"},
		{kind: "memory", name: "limit of the pod", spoil: killed(9, "killed by the kernel for lack of memory: the limit of the container is 64Mi"), says: "lack of memory"},
		{kind: "memory", name: "allocation fails", spoil: exits(101, "exited with code 101; the last line on standard error is: memory allocation failed"), says: "memory allocation failed"},
		{kind: "memory", name: "address space", spoil: exits(1, "exited with code 1; the last line on standard error is: mmap: Cannot allocate memory"), says: "Cannot allocate memory"},
		{kind: "disk", name: "full", spoil: exits(1, "exited with code 1; the last line on standard error is: No space left on device"), says: "No space left on device"},
		{kind: "disk", name: "read-only", spoil: exits(1, "exited with code 1; the last line on standard error is: Read-only file system"), says: "Read-only file system"},
		{kind: "disk", name: "file too large", spoil: killed(25, "killed by signal 25 (SIGXFSZ)"), says: "SIGXFSZ"},
		{kind: "rights", name: "program not executable", spoil: exits(126, "cannot start /simulated: Permission denied"), says: "cannot start /simulated: Permission denied"},
		{kind: "rights", name: "forbidden call", spoil: killed(31, "killed by signal 31 (SIGSYS)"), says: "SIGSYS"},
		{kind: "rights", name: "forbidden file", spoil: exits(1, "exited with code 1; the last line on standard error is: /data: Permission denied"), says: "/data: Permission denied"},
		{kind: "time", name: "timeout", spoil: ended(record.TimedOut, nil, ptr.To(9), "timed out after 5m0s"), says: "timed out after 5m0s"},
		{kind: "time", name: "timeout of a role", spoil: ended(record.TimedOut, nil, ptr.To(9), "role server was not ready after 1m0s"), says: "role server was not ready"},
		{kind: "time", name: "CPU time", spoil: killed(24, "killed by signal 24 (SIGXCPU)"), says: "SIGXCPU"},
		{kind: "node", name: "a requirement", spoil: refused("spec.environment.require: governor is powersave, required is performance"), says: "required is performance"},
		{kind: "node", name: "too few CPUs", spoil: refused("the container may use 1 CPU and the block needs 4"), says: "the block needs 4"},
		{kind: "node", name: "without cgroups", spoil: refused("cannot read the cgroup of the container: Permission denied"), says: "cannot read the cgroup"},
		{kind: "parity", name: "without a digest", edit: requireParity, spoil: func(*record.Attempt) {}, says: "no parity digest"},
		{kind: "parity", name: "digest of another form", edit: requireParity,
			spoil: unread("parity: invalid digest: expected sha256 and 64 hexadecimal digits"), says: "invalid digest"},
		{kind: "parity", name: "another answer", edit: requireParity, analysed: true, spoil: digests(func(a *record.Attempt) string { return a.Arm }),
			says: "gives another output than the baseline"},
		{kind: "parity", name: "another answer in each trial", edit: requireParity, analysed: true,
			spoil: digests(func(a *record.Attempt) string { return a.Trial }), says: "disagrees with itself"},
	}
}

// requireParity lets a run compare the answers of its arms.
func requireParity(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
	template.Parity = assayv1alpha1.ParityRequired
	spec.Gates = append(spec.Gates, assayv1alpha1.Gate{Name: "same-answers", Op: assayv1alpha1.ParityEqual})
}

// digests gives every attempt the digest of a text.
func digests(of func(*record.Attempt) string) func(*record.Attempt) {
	return func(a *record.Attempt) {
		result := *a.Result
		result.Parity = &record.Parity{Algorithm: "sha256", Digest: record.SHA256([]byte(of(a))), Items: 1}
		a.Result = &result
	}
}

// frozen freezes the experiment of a pair after a change.
func frozen(t *testing.T, edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)) *experiment.Experiment {
	t.Helper()
	exp, err := fixture.PairExperiment(nil)
	if err != nil || edit == nil {
		return exp
	}
	spec, template, err := fixture.SpecAndTemplate(exp)
	if err != nil {
		t.Fatal(err)
	}
	edit(&spec, &template)
	if exp, err = experiment.Freeze(exp.Run, spec, template); err != nil {
		t.Fatal(err)
	}
	return exp
}

// views returns the texts of all views of a run, by their names.
func views(t *testing.T, of way) map[string]string {
	t.Helper()
	exp := frozen(t, of.edit)
	wave, err := fixture.Wave(exp, 0, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(fixture.Scenarios()[0], 0, 1, 1).Run(exp, wave)
	for i := range attempts {
		of.spoil(&attempts[i])
	}
	evidence := record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}
	result := analyze.Evidence(exp, evidence, 0)
	if result.Verdict == experiment.VerdictGo || result.Verdict == experiment.VerdictNoGo && !of.analysed {
		t.Fatalf("a broken run is %s", result.Verdict)
	}

	var run assayv1alpha1.BenchmarkRun
	status.Results(&run.Status, exp, result, "report.html")
	status.Judged(&run.Status, result)
	ended := meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionFailed)
	if ended == nil {
		ended = meta.FindStatusCondition(run.Status.Conditions, assayv1alpha1.ConditionComplete)
	}
	var events, summary, terminal bytes.Buffer
	for _, event := range status.Events(&assayv1alpha1.BenchmarkRunStatus{}, &run.Status) {
		events.WriteString(event.Message + "\n")
	}
	progress.Summary(&summary, &run)
	if err := report.Terminal(&terminal, exp, result); err != nil {
		t.Fatal(err)
	}
	page, err := reporthtml.Render(exp, result, evidence)
	if err != nil {
		t.Fatal(err)
	}
	top, _, _ := strings.Cut(string(page), "</header>")
	return map[string]string{
		"verdict in the condition": ended.Message, "events": events.String(), "kubectl get": run.Status.Reason, "assay watch": progress.Line(&run),
		"assay get": summary.String(), "assay results": terminal.String(), "report.md": string(report.Markdown(exp, result)),
		"top of the report": html.UnescapeString(top), "pull request": ci.From("run", exp, result).Markdown(),
	}
}

// plain removes the line breaks and the escapes of a view.
func plain(text string) string {
	text = strings.NewReplacer("\\", "", "\u200b", "", "&quot;", `"`, "&#34;", `"`).Replace(html.UnescapeString(text))
	return strings.Join(strings.Fields(text), " ")
}

func TestViews_BrokenRunStatesFirstCause(t *testing.T) {
	for _, of := range ways() {
		t.Run(of.kind+", "+of.name, func(t *testing.T) {
			t.Parallel()
			var missing []string
			for name, text := range views(t, of) {
				if !strings.Contains(plain(text), plain(of.says)) {
					missing = append(missing, name)
					t.Errorf("%s lacks %q:\n%.2000s", name, of.says, plain(text))
				}
			}
			var after time.Duration
			if !of.analysed {
				o := operate(t, nil, of.edit)
				o.starts()
				o.measures(of.spoil)
				var late []string
				if after, late = o.told(of.says); len(late) > 0 {
					t.Errorf("while the wave runs, %v lack %q after %s: %s", late, of.says, after, o.run.Status.Reason)
				}
				missing = append(missing, late...)
			}
			counted.add(t, of.kind, after, missing)
		})
	}
}

// The message is a text of the program: no view prints its control characters or takes it for markup.
func TestViews_MessageOfProgramIsEscaped(t *testing.T) {
	evil := "\x1b[2J<script>alert(1)</script>\n::error::@everyone " + strings.Repeat("x", 10_000)
	for name, text := range views(t, way{spoil: func(a *record.Attempt) {
		a.Outcome, a.ExitCode, a.Message, a.Result = record.Failed, ptr.To(1), evil, nil
	}}) {
		if strings.ContainsAny(text, "\x1b") || strings.Contains(text, "\n::error::") {
			t.Errorf("%s has a control character: %.300q", name, text)
		}
		limits := map[string]int{"kubectl get": 256, "assay watch": 512, "verdict in the condition": 4096}
		if most, limited := limits[name]; limited && len(text) > most {
			t.Errorf("%s has %d bytes, want at most %d", name, len(text), most)
		}
		if (name == "report.md" || name == "pull request") && strings.Contains(text, "<script") {
			t.Errorf("%s has an element", name)
		}
	}
}
