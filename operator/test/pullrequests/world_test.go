package pullrequests

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"assay.dev/assay/operator/internal/cli/root"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/ondemand"
	"assay.dev/assay/operator/internal/record"
)

// Commits of the repository o/r.
var (
	baseCommit  = strings.Repeat("b", 40)
	mergeBase   = strings.Repeat("a", 40)
	headCommit  = "c0ffee1" + strings.Repeat("0", 33)
	otherCommit = "c0ffee1" + strings.Repeat("1", 33)
)

const policy = `
perPersonPerDay: 3
suites:
  default: {run: benchmarks/run.yaml, build: sh build.sh, program: bin/server, budget: 5m, maxBudget: 10m}
`

// runFile is of a program that prints a result; gates ask for at most 90 % of the baseline's time.
const runFile = `apiVersion: assay.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: server}
spec:
  template:
    image: assay.dev/server:0.1.0
    command: [/server]
    parity: None
    metrics:
    - {name: latency, unit: s, direction: LowerIsBetter}
  arms:
  - {name: base, baseline: true, image: "example.com/server:base"}
  - {name: head, image: "example.com/server:head"}
  design: {blocks: {min: 12, max: 12}}
  placement: {cpus: 1, exclusive: None}
  environment: {onViolation: Warn}
  gates:
  - {name: faster, metric: latency, op: RatioAtMost, bound: "0.9"}
`

// world is a repository with a pull request, a comment on it and the job that the comment starts.
type world struct {
	t *testing.T
	// event is the payload, and pull the answer about the pull request. Attacks change both.
	event, pull map[string]any
	permission  map[string]any
	runs        []map[string]any
	// files are contents by REF:PATH.
	files    map[string]string
	comments []map[string]any
	checks   []map[string]any
	// environment are the variables of the job.
	environment map[string]string
	folder      string
	*httptest.Server
}

var now = time.Now().UTC().Truncate(time.Second)

func at(before time.Duration) string { return now.Add(-before).Format(time.RFC3339) }

func newWorld(t *testing.T) *world {
	t.Helper()
	person := map[string]any{"login": "alice", "id": 11.0, "type": "User"}
	w := &world{
		t: t, folder: t.TempDir(),
		event: map[string]any{
			"action": "created",
			"issue":  map[string]any{"number": 7.0, "title": "faster", "pull_request": map[string]any{}},
			"comment": map[string]any{"id": 100.0, "body": "/bench", "created_at": at(time.Minute), "user": person,
				"author_association": "MEMBER"},
			"sender":     person,
			"repository": map[string]any{"full_name": "o/r", "default_branch": "main"},
		},
		pull: map[string]any{
			"number": 7.0, "state": "open", "title": "faster",
			"base": map[string]any{"ref": "main", "sha": baseCommit, "repo": map[string]any{"full_name": "o/r"}},
			"head": map[string]any{"ref": "faster", "sha": headCommit,
				"repo": map[string]any{"full_name": "mallory/r", "pushed_at": at(time.Hour)}},
		},
		permission: map[string]any{"permission": "write", "user": person},
		files: map[string]string{
			"refs/heads/main:" + ondemand.PolicyPath: policy, baseCommit + ":benchmarks/run.yaml": runFile,
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/o/r/collaborators/{login}/permission", func(out http.ResponseWriter, _ *http.Request) {
		w.write(out, w.permission)
	})
	mux.HandleFunc("GET /repos/o/r/pulls/7", func(out http.ResponseWriter, _ *http.Request) { w.write(out, w.pull) })
	mux.HandleFunc("GET /repos/o/r/compare/{range}", func(out http.ResponseWriter, _ *http.Request) {
		w.write(out, map[string]any{"merge_base_commit": map[string]any{"sha": mergeBase}})
	})
	mux.HandleFunc("GET /repos/o/r/actions/workflows/bench.yaml/runs", func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("actor") != "alice" || r.URL.Query().Get("event") != "issue_comment" {
			t.Errorf("runs of %s", r.URL.RawQuery)
		}
		w.write(out, map[string]any{"total_count": len(w.runs), "workflow_runs": w.runs})
	})
	mux.HandleFunc("GET /repos/o/r/contents/{path...}", func(out http.ResponseWriter, r *http.Request) {
		text, ok := w.files[r.URL.Query().Get("ref")+":"+r.PathValue("path")]
		if !ok {
			http.NotFound(out, r)
			return
		}
		w.write(out, map[string]any{"type": "file", "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(text))})
	})
	mux.HandleFunc("GET /repos/o/r/issues/7/comments", func(out http.ResponseWriter, _ *http.Request) { w.write(out, w.comments) })
	mux.HandleFunc("POST /repos/o/r/issues/7/comments", func(out http.ResponseWriter, r *http.Request) {
		w.says("github-actions[bot]", "Bot", fmt.Sprint(w.read(r)["body"]))
		w.write(out, w.comments[len(w.comments)-1])
	})
	mux.HandleFunc("PATCH /repos/o/r/issues/comments/{id}", func(out http.ResponseWriter, r *http.Request) {
		for _, comment := range w.comments {
			if fmt.Sprint(comment["id"]) == r.PathValue("id") {
				comment["body"] = w.read(r)["body"]
				w.write(out, comment)
			}
		}
	})
	mux.HandleFunc("GET /repos/o/r/commits/{sha}/check-runs", func(out http.ResponseWriter, _ *http.Request) {
		w.write(out, map[string]any{"total_count": 0, "check_runs": []any{}})
	})
	mux.HandleFunc("POST /repos/o/r/check-runs", func(out http.ResponseWriter, r *http.Request) {
		w.checks = append(w.checks, w.read(r))
		w.write(out, w.checks[len(w.checks)-1])
	})
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ghs_secret" {
			t.Errorf("%s %s without the token", r.Method, r.URL)
		}
		mux.ServeHTTP(out, r)
	}))
	t.Cleanup(w.Close)
	w.environment = map[string]string{
		"GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": w.URL, "GITHUB_EVENT_NAME": "issue_comment", "GITHUB_SHA": baseCommit,
		"GITHUB_EVENT_PATH": filepath.Join(w.folder, "event.json"), "GITHUB_OUTPUT": filepath.Join(w.folder, "outputs"),
		"GITHUB_STEP_SUMMARY": filepath.Join(w.folder, "summary.md"), "GITHUB_RUN_ID": "500", "GITHUB_RUN_ATTEMPT": "1",
		"GITHUB_WORKFLOW_REF": "o/r/.github/workflows/bench.yaml@refs/heads/main", "GITHUB_TOKEN": "ghs_secret",
		"GITHUB_SERVER_URL": "https://github.com", "ASSAY_DECISION": "", "RUNNER_TEMP": "",
	}
	return w
}

func (w *world) write(out http.ResponseWriter, value any) {
	if err := json.NewEncoder(out).Encode(value); err != nil {
		w.t.Error(err)
	}
}

func (w *world) read(r *http.Request) map[string]any {
	out := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
		w.t.Error(err)
	}
	return out
}

func (w *world) says(login, kind, body string) {
	w.comments = append(w.comments, map[string]any{"id": len(w.comments) + 1, "body": body,
		"user": map[string]any{"login": login, "type": kind}})
}

// in returns an object inside of another.
func in(object map[string]any, names ...string) map[string]any {
	for _, name := range names {
		object = object[name].(map[string]any)
	}
	return object
}

// comment changes the text of the comment.
func (w *world) comment(body string) { in(w.event, "comment")["body"] = body }

// assay runs a command in the job.
func (w *world) assay(args ...string) (stdout, stderr string, err error) {
	w.t.Helper()
	raw, err := json.Marshal(w.event)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.environment["GITHUB_EVENT_PATH"], raw, 0o600); err != nil {
		w.t.Fatal(err)
	}
	for name, value := range w.environment {
		w.t.Setenv(name, value)
	}
	command := root.New()
	var out, log bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(args)
	err = root.Execute(w.t.Context(), command)
	return out.String(), log.String(), err
}

// decides runs the first job and returns its outputs. An error of the job is no decision.
func (w *world) decides() map[string]string {
	w.t.Helper()
	_ = os.Remove(w.environment["GITHUB_OUTPUT"])
	if _, _, err := w.assay("pr", "decide"); err != nil {
		w.t.Logf("decide: %v", err)
	}
	out := map[string]string{}
	raw, err := os.ReadFile(w.environment["GITHUB_OUTPUT"])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		out[name] = value
	}
	return out
}

// starts reports whether the first job lets the benchmark run.
func (w *world) starts() bool {
	w.t.Helper()
	return w.decides()["action"] == ondemand.ActionRun
}

// decided returns a decision, and puts it into the environment of later jobs.
func (w *world) decided() *ondemand.Decision {
	w.t.Helper()
	text := w.decides()["decision"]
	out, err := ondemand.ParseDecision(text)
	if err != nil {
		w.t.Fatalf("%v in %q", err, text)
	}
	w.environment["ASSAY_DECISION"] = text
	return out
}

// frozen returns the experiment of a decision, with another run file if one is given.
func frozen(t *testing.T, of *ondemand.Decision, file string) *experiment.Experiment {
	t.Helper()
	name := filepath.Join(t.TempDir(), "run.yaml")
	if file == "" {
		file = of.RunFile
	}
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	template, err := set.Template(&set.Runs[0])
	if err != nil {
		t.Fatal(err)
	}
	out, err := experiment.Freeze(record.Run{Namespace: "local", Name: set.Runs[0].Name, UID: of.UID()}, set.Runs[0].Spec, *template)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// measured returns the objects of a ledger in which head takes a share of the time of base.
func measured(t *testing.T, exp *experiment.Experiment, share float64) map[string][]byte {
	t.Helper()
	wave, err := fixture.Wave(exp, 0, 0, 12)
	if err != nil {
		t.Fatal(err)
	}
	machine := fixture.Machine{Executor: "local", Seed: 1, Noise: fixture.Noise{Block: 0.01, Arm: 0.001, Trial: 0.001},
		Seconds: func(_ record.Point, arm string) float64 {
			return map[string]float64{"base": 0.01, "head": 0.01 * share}[arm]
		}}
	objects, err := fixture.Objects(exp, []*record.Wave{wave}, machine.Run(exp, wave))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// entry is one of an archive.
type entry struct {
	tar.Header
	data []byte
}

// entries are those of objects, in their order.
func entries(objects map[string][]byte) (out []entry) {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		out = append(out, entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o444}, objects[name]})
	}
	return out
}

// leaves writes the archive that the second job leaves.
func (w *world) leaves(of ...entry) string {
	w.t.Helper()
	var raw bytes.Buffer
	compressed, err := zstd.NewWriter(&raw)
	if err != nil {
		w.t.Fatal(err)
	}
	out := tar.NewWriter(compressed)
	for _, one := range of {
		one.Size = int64(len(one.data))
		if err := out.WriteHeader(&one.Header); err != nil {
			w.t.Fatal(err)
		}
		if _, err := out.Write(one.data); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), compressed.Close()); err != nil {
		w.t.Fatal(err)
	}
	folder := filepath.Join(w.folder, "left")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(folder, "ledger.tar.zst")
	if err := os.WriteFile(file, raw.Bytes(), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return folder
}

// publishes runs the third job and returns the conclusion of its check.
func (w *world) publishes(args ...string) string {
	w.t.Helper()
	before := len(w.checks)
	out, _, err := w.assay(append([]string{"pr", "publish", "--left", filepath.Join(w.folder, "left")}, args...)...)
	if err != nil || len(w.checks) == before {
		w.t.Logf("publish: %v\n%s", err, out)
		return ""
	}
	check := w.checks[len(w.checks)-1]
	if check["head_sha"] != headCommit {
		w.t.Errorf("the check is of commit %v", check["head_sha"])
	}
	w.t.Logf("%v: %v", check["conclusion"], in(check, "output")["summary"])
	return fmt.Sprint(check["conclusion"])
}

// repository returns a git repository with the trees, each a commit, and the hashes of the commits.
func repository(t *testing.T, trees ...map[string]string) (folder string, hashes []string) {
	t.Helper()
	folder = t.TempDir()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...)
		command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--initial-branch", "main")
	git("config", "uploadpack.allowAnySHA1InWant", "true")
	for _, tree := range trees {
		for name, text := range tree {
			file := filepath.Join(folder, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "--all")
		git("commit", "--quiet", "--allow-empty", "-m", "step")
		hashes = append(hashes, git("rev-parse", "HEAD"))
	}
	return folder, hashes
}

// executes runs the second job with a head whose build is a script. It has no token.
func (w *world) executes(script string, args ...string) (stderr string, err error) {
	w.t.Helper()
	const good = "mkdir -p bin && cp server bin/server\n"
	folder, hashes := repository(w.t, map[string]string{"build.sh": good, "server": "#!/bin/sh\necho base\n"},
		map[string]string{"build.sh": script, "server": "#!/bin/sh\necho head\n"})
	made := w.decided()
	made.Base, made.MergeBase, made.Head, made.Experiment = hashes[0], hashes[0], hashes[1], ""
	text, err := made.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.environment["ASSAY_DECISION"], w.environment["GITHUB_TOKEN"] = text, ""
	work := filepath.Join(w.folder, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		w.t.Fatal(err)
	}
	_, stderr, err = w.assay(append([]string{"pr", "execute", "--out", filepath.Join(w.folder, "left"), "--work", work,
		"--repository", folder}, args...)...)
	return stderr, err
}

// sandboxed skips a test where no sandbox can be made.
func sandboxed(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("needs bubblewrap (bwrap)")
	}
}

// workflow reads a file that people copy.
func workflow(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "workflows", "pull-requests", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
