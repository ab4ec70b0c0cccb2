package pullrequests

import (
	"encoding/json"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/ondemand"
	"assay.dev/assay/operator/internal/store"
)

// analysisOf returns the analysis of objects as a ledger stores it.
func analysisOf(w *world, made *ondemand.Decision, objects map[string][]byte) []byte {
	w.t.Helper()
	w.leaves(entries(objects)...)
	s, err := store.OpenFolder(w.t.Context(), w.folder+"/left/ledger.tar.zst")
	if err != nil {
		w.t.Fatal(err)
	}
	evidence, err := ledger.ReadEvidence(w.t.Context(), s, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := json.Marshal(analyze.Evidence(frozen(w.t, made, ""), evidence, 0).Written())
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// The attacks would fail too if nothing worked.
func TestRequest_IsDecidedAndPublished(t *testing.T) {
	for name, tc := range map[string]struct {
		comment    string
		share      float64
		suite      string
		budget     string
		conclusion string
	}{
		"a head that is faster":          {"/bench", 0.5, "default", "5m0s", "success"},
		"a head that is slower":          {"/bench default", 1.5, "default", "5m0s", "failure"},
		"a budget, with a line break":    {"/bench --budget 9m\r\n", 0.5, "default", "9m0s", "success"},
		"the head is named":              {"/bench --head " + headCommit, 0.5, "default", "5m0s", "success"},
		"the named head, pushed to just": {"/bench default --budget 60s --head " + headCommit, 0.5, "default", "1m0s", "success"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.comment(tc.comment)
			if strings.Contains(name, "just") {
				in(w.pull, "head", "repo")["pushed_at"] = at(0)
			}
			made := w.decided()
			if made.Suite != tc.suite || made.Budget != tc.budget || made.Head != headCommit || made.MergeBase != mergeBase ||
				made.Base != baseCommit {
				t.Errorf("decided %+v", made)
			}
			if len(w.comments) != 1 || !strings.Contains(w.said(), "waits for a runner") {
				t.Errorf("comments %q", w.said())
			}
			w.leaves(entries(measured(t, frozen(t, made, ""), tc.share))...)
			report := w.folder + "/report.html"
			if got := w.publishes("--report", report); got != tc.conclusion {
				t.Errorf("conclusion %q, want %q", got, tc.conclusion)
			}
			if len(w.comments) != 1 || !strings.Contains(w.said(), "https://github.com/o/r/actions/runs/500/attempts/1#artifacts") ||
				!strings.Contains(w.said(), headCommit) {
				t.Errorf("comments %q", w.said())
			}
		})
	}
}

// A request of the policy cancel, and the command, end the earlier request through the group of the job that executes.
func TestRequest_SecondQueuesOrCancels(t *testing.T) {
	for name, tc := range map[string]struct{ policy, comment, action, cancel string }{
		"a second request waits":         {policy, "/bench", "run", "false"},
		"a second request cancels":       {policy + "secondRequest: cancel\n", "/bench", "run", "true"},
		"a request only ends the others": {policy, "/bench cancel", "cancel", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.files["refs/heads/main:"+ondemand.PolicyPath] = tc.policy
			w.comment(tc.comment)
			got := w.decides()
			if got["action"] != tc.action || got["cancel"] != tc.cancel || got["group"] != "assay-bench-7" {
				t.Errorf("outputs %v", got)
			}
		})
	}
	w := newWorld(t)
	made := w.decided()
	w.leaves()
	if got := w.publishes("--result", "cancelled"); got != "neutral" || !strings.Contains(w.said(), "cancelled") {
		t.Errorf("a request that is cancelled is %q: %s", got, w.said())
	}
	if made.Second != ondemand.Queue {
		t.Errorf("second request: %q", made.Second)
	}
}

// Comments that are no requests cost no request of the API, and no comment.
func TestRequest_OtherCommentsAreIgnored(t *testing.T) {
	for _, text := range []string{"", "nice", "> /bench", " /bench", "/benchmark", "please /bench", "/bench-all"} {
		w := newWorld(t)
		w.comment(text)
		w.environment["GITHUB_API_URL"] = "http://127.0.0.1:1"
		if got := w.decides(); got["action"] != "none" || len(w.comments) > 0 {
			t.Errorf("%q: outputs %v, comments %q", text, got, w.said())
		}
	}
}
