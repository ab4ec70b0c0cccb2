package causes

import (
	"bytes"
	"html"
	"strings"
	"testing"

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
		{"image", "without the program", exits(127, "cannot start /simulated: No such file or directory"), "No such file or directory"},
		{"image", "without a shell", exits(127, "cannot start /bin/sh: No such file or directory"), "cannot start /bin/sh"},
		{"image", "for another machine", exits(126, "cannot start /simulated: Exec format error"), "Exec format error"},
		{"program", "crashes", killed(11, "killed by signal 11 (SIGSEGV)"), "SIGSEGV"},
		{"program", "aborts", killed(6, "killed by signal 6 (SIGABRT); the last line on standard error is: assertion failed"), "assertion failed"},
		{"program", "exits with an error", exits(3, "exited with code 3; the last line on standard error is: no such table"), "no such table"},
		{"arguments", "unknown", exits(2, "exited with code 2; the last line on standard error is: unknown option --iteration"), "unknown option --iteration"},
		{"arguments", "out of range", exits(1, "exited with code 1; the last line on standard error is: rows must be a power of two"), "rows must be a power of two"},
		{"arguments", "missing file", exits(1, "exited with code 1; the last line on standard error is: cannot open data.bin"), "cannot open data.bin"},
		{"output", "empty", unread("no result: standard output is empty"), "standard output is empty"},
		{"output", "text", unread("no result: expected a JSON object, found it took 1 s"), "found it took 1 s"},
		{"output", "without the column", unread("the CSV has no column seconds; it has minutes"), "no column seconds"},
		{"output", "negative", reports("time", record.Metric{Unit: "s", Value: ptr.To(-1.0)}), "-1"},
		{"unit", "another one", reports("time", record.Metric{Unit: "ms", Value: ptr.To(1.0)}), "ms"},
		{"unit", "another metric", reports("latency", record.Metric{Unit: "s", Value: ptr.To(1.0)}), "time"},
		{"unit", "of the CSV", unread("column seconds: invalid unit mss of the field"), "invalid unit mss"},
		{"memory", "limit of the pod", killed(9, "killed by the kernel for lack of memory: the limit of the container is 64Mi"), "lack of memory"},
		{"memory", "allocation fails", exits(101, "exited with code 101; the last line on standard error is: memory allocation failed"), "memory allocation failed"},
		{"memory", "address space", exits(1, "exited with code 1; the last line on standard error is: mmap: Cannot allocate memory"), "Cannot allocate memory"},
		{"disk", "full", exits(1, "exited with code 1; the last line on standard error is: No space left on device"), "No space left on device"},
		{"disk", "read-only", exits(1, "exited with code 1; the last line on standard error is: Read-only file system"), "Read-only file system"},
		{"disk", "file too large", killed(25, "killed by signal 25 (SIGXFSZ)"), "SIGXFSZ"},
		{"rights", "program not executable", exits(126, "cannot start /simulated: Permission denied"), "cannot start /simulated: Permission denied"},
		{"rights", "forbidden call", killed(31, "killed by signal 31 (SIGSYS)"), "SIGSYS"},
		{"rights", "forbidden file", exits(1, "exited with code 1; the last line on standard error is: /data: Permission denied"), "/data: Permission denied"},
		{"time", "timeout", ended(record.TimedOut, nil, ptr.To(9), "timed out after 5m0s"), "timed out after 5m0s"},
		{"time", "timeout of a role", ended(record.TimedOut, nil, ptr.To(9), "role server was not ready after 1m0s"), "role server was not ready"},
		{"time", "CPU time", killed(24, "killed by signal 24 (SIGXCPU)"), "SIGXCPU"},
		{"node", "a requirement", refused("spec.environment.require: governor is powersave, required is performance"), "required is performance"},
		{"node", "too few CPUs", refused("the container may use 1 CPU and the block needs 4"), "the block needs 4"},
		{"node", "without cgroups", refused("cannot read the cgroup of the container: Permission denied"), "cannot read the cgroup"},
	}
}

// views returns the texts of all views of a run, by their names.
func views(t *testing.T, spoil func(*record.Attempt)) map[string]string {
	t.Helper()
	exp, err := fixture.PairExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	attempts := fixture.NewWorld(fixture.Scenarios()[0], 0, 1, 1).Run(exp, wave)
	for i := range attempts {
		spoil(&attempts[i])
	}
	evidence := record.Evidence{Waves: []record.Wave{*wave}, Attempts: attempts}
	result := analyze.Evidence(exp, evidence, 0)
	if result.Verdict == experiment.VerdictGo || result.Verdict == experiment.VerdictNoGo {
		t.Fatalf("a run that measures nothing is %s", result.Verdict)
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
	kinds := map[string]int{}
	for _, of := range ways() {
		kinds[of.kind]++
		t.Run(of.kind+", "+of.name, func(t *testing.T) {
			t.Parallel()
			for name, text := range views(t, of.spoil) {
				if !strings.Contains(plain(text), plain(of.says)) {
					t.Errorf("%s lacks %q:\n%.2000s", name, of.says, plain(text))
				}
			}
		})
	}
	for kind, count := range kinds {
		if count < 3 {
			t.Errorf("%d ways of kind %s, want at least 3", count, kind)
		}
	}
}

// The message is a text of the program: no view prints its control characters or takes it for markup.
func TestViews_MessageOfProgramIsEscaped(t *testing.T) {
	evil := "\x1b[2J<script>alert(1)</script>\n::error::@everyone " + strings.Repeat("x", 10_000)
	for name, text := range views(t, func(a *record.Attempt) {
		a.Outcome, a.ExitCode, a.Message, a.Result = record.Failed, ptr.To(1), evil, nil
	}) {
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
