package judge_test

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/test/folderledger"
)

// A program that makes the records of its slow or wrong trials unusable hides them, and must not win by it.
func TestCompletes_TrialsWithoutUsableRecordAreNoSuccess(t *testing.T) {
	t.Parallel()
	parity := assayv1alpha1.Gate{Name: "same", Op: assayv1alpha1.ParityEqual}
	items := regexp.MustCompile(`"items":[0-9]+`)
	unreadable := func(l *folderledger.Ledger, key string) {
		l.Write(key, items.ReplaceAll(l.Read(key), []byte(`"items":9223372036854775808`)))
	}
	const arm = `"arm":"fused-m4r"`
	// twice executes every block once more, and has the run analysed.
	twice := func(l *folderledger.Ledger) {
		for _, key := range l.Attempts() {
			l.Write(strings.Replace(key, "/pod-", "/pod-copy-", 1), l.Read(key))
		}
		l.Analyze()
	}
	for name, c := range map[string]struct {
		gates        []assayv1alpha1.Gate
		before       func(*folderledger.Ledger)
		arm          string // Empty is the candidate.
		spoil        func(l *folderledger.Ledger, key string)
		want         experiment.Verdict
		gate, reason string
		warning      string
	}{
		"as they are": {spoil: func(*folderledger.Ledger, string) {}, want: fixture.Go},
		"a count that Go cannot read": {spoil: unreadable, want: fixture.Inconclusive, gate: "completes", reason: "76 of 80 trials completed against at least " +
			"1.000: 4 unreadable (first w000-b0000-s"},
		"of the baseline": {arm: `"arm":"loop"`, spoil: unreadable, want: fixture.Inconclusive, gate: "completes", reason: "4 unreadable"},
		"a share that is reached without them holds": {
			gates: []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}, spoil: unreadable, want: fixture.Go,
		},
		"an output that differs in them is not equal": {
			gates: []assayv1alpha1.Gate{parity, {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}},
			spoil: func(l *folderledger.Ledger, key string) {
				l.Write(key, regexp.MustCompile(`"digest":"..`).ReplaceAll(l.Read(key), []byte(`"digest":"00`)))
				unreadable(l, key)
			}, want: fixture.Inconclusive, gate: "same", reason: "the outputs of 4 trials of arm fused-m4r are not known",
		},
		"an output of the baseline that is not known is not equal": {
			gates: []assayv1alpha1.Gate{parity, {Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}, arm: `"arm":"loop"`,
			spoil: unreadable, want: fixture.Inconclusive, gate: "same", reason: "the outputs of 4 trials of arm loop are not known",
		},
		"a record of another run": {spoil: func(l *folderledger.Ledger, key string) {
			l.Replace(key, "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11", "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c12")
		}, want: fixture.Inconclusive, gate: "completes", reason: "4 not part of this experiment"},
		"a record that was changed": {before: func(l *folderledger.Ledger) { l.Analyze() }, spoil: func(l *folderledger.Ledger, key string) {
			l.Replace(key, `"durationSeconds":`, `"durationSeconds":1`)
		}, want: fixture.Inconclusive, gate: "completes", reason: "4 changed since it was analysed before"},
		"a record that was taken away": {before: func(l *folderledger.Ledger) { l.Analyze() }, spoil: func(l *folderledger.Ledger, key string) {
			l.Remove(key)
		}, want: fixture.Inconclusive, gate: "completes", reason: "4 changed since it was analysed before"},
		"a record that was taken away, of a share that is reached without it": {
			gates:  []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}},
			before: func(l *folderledger.Ledger) { l.Analyze() }, spoil: func(l *folderledger.Ledger, key string) { l.Remove(key) },
			want: fixture.Inconclusive, gate: "gain", reason: "was present in an earlier analysis, and is missing or changed",
		},
		"a record that another execution also has, and that was taken away": {before: twice, spoil: func(l *folderledger.Ledger, key string) {
			l.Remove(key)
		}, want: fixture.Inconclusive, gate: "gain", reason: "is missing or changed"},
		"a record that another execution also has, and that was changed": {before: twice, spoil: func(l *folderledger.Ledger, key string) {
			l.Replace(key, `"durationSeconds":`, `"durationSeconds":1`)
		}, want: fixture.Inconclusive, gate: "done", reason: "is missing or changed",
			gates: []assayv1alpha1.Gate{{Name: "done", Op: assayv1alpha1.Completes, Bound: "0.9"}}},
		"a record that another execution also has, and that is unreadable": {before: twice,
			spoil: func(l *folderledger.Ledger, key string) { l.Write(key, []byte("{")) },
			want:  fixture.Inconclusive, gate: "gain", reason: "is missing or changed"},
		"one that another execution cannot read is a loss": {spoil: func(l *folderledger.Ledger, key string) {
			l.Write(strings.Replace(key, "/pod-", "/pod-copy-", 1), []byte("{"))
		}, want: fixture.Go, warning: "4 of no use in another execution"},
		"a record that another execution also has": {spoil: func(l *folderledger.Ledger, key string) {
			l.Write(strings.Replace(key, "/pod-", "/pod-copy-", 1), l.Read(key))
		}, want: fixture.Go},
	} {
		if testing.Short() && fixture.OmittedInShortForm(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			l := folderledger.Of(t, 10, append(c.gates, fixture.GainAt8("1.5"))...)
			if c.before != nil {
				c.before(l)
			}
			left := 4
			for _, key := range l.Attempts() {
				if left > 0 && bytes.Contains(l.Read(key), []byte(cmp.Or(c.arm, arm))) {
					left--
					c.spoil(l, key)
				}
			}
			got := l.Analyze()
			at := slices.IndexFunc(got.Candidates, func(c analysis.Candidate) bool { return c.Name == "fused-m4r" })
			if got.Candidates[at].Verdict != c.want {
				t.Errorf("%s: %s, want %s", got.Candidates[at].Verdict, got.Candidates[at].Reason, c.want)
			}
			if !slices.ContainsFunc(got.Gates, func(g analysis.GateResult) bool {
				return g.Gate == c.gate && g.Outcome == c.want && strings.Contains(g.Message, c.reason)
			}) && c.gate != "" {
				t.Errorf("no gate %s that is %s with %q: %+v", c.gate, c.want, c.reason, got.Gates)
			}
			if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, c.warning) }) && c.warning != "" {
				t.Errorf("warnings %q, want one with %q", got.Warnings, c.warning)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
