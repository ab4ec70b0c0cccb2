package root

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/store"
)

// programRepository returns a git repository in which every commit is a program that takes a percentage of 10 ms; 0 does not build.
func programRepository(t *testing.T, percents []float64) string {
	t.Helper()
	folder := t.TempDir()
	var script strings.Builder
	script.WriteString("git init --quiet --initial-branch main\n")
	for i, percent := range percents {
		fmt.Fprintf(&script, "echo %g > percent; echo %d > step; git add percent step; git commit --quiet -m 'step %d'; git tag v%d\n",
			percent, i, i, i)
	}
	command := exec.CommandContext(t.Context(), "/bin/sh", "-e")
	command.Dir, command.Stdin = folder, strings.NewReader(script.String())
	command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// building makes the program of a commit.
const building = `test "$(cat percent)" != 0 && mkdir -p bin && printf '#!/bin/sh\n# %s\n' "$(cat percent)" > bin/echo && chmod +x bin/echo`

// levels returns the levels of n commits. Each value holds from its index on.
func levels(count int, from map[int]float64) []float64 {
	out, level := make([]float64, count), 100.0
	for i := range out {
		if changed, ok := from[i]; ok {
			level = changed
		}
		out[i] = level
	}
	return out
}

// searched is a search on this machine, with the simulated runner.
type searched struct {
	t                      *testing.T
	repository, state, bin string
}

func newSearch(t *testing.T, percents []float64) *searched {
	t.Helper()
	return &searched{t, programRepository(t, percents), filepath.Join(t.TempDir(), "state"), simulated}
}

func (s *searched) args(more ...string) []string {
	return append([]string{
		"bisect", filepath.Join("testdata", "bisect.yaml"), "--repository", s.repository, "--state", s.state, "--bin-dir", s.bin, "--pin=false",
		"--build", building, "--program", "bin/echo", "--blocks", "4",
	}, more...)
}

func (s *searched) answer(more ...string) (*bisect.Answer, string, error) {
	s.t.Helper()
	stdout, stderr, err := assay(s.t, append(s.args(more...), "-o", "json")...)
	var out bisect.Answer
	if cli.ExitCode(err) != cli.ExitUsage && json.Unmarshal([]byte(stdout), &out) != nil {
		s.t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	return &out, stderr, err
}

// hash of a commit by its number.
func (s *searched) hash(number int) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "git", "-C", s.repository, "rev-parse", fmt.Sprintf("v%d", number)).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestBisection_FindsCulprits(t *testing.T) {
	slower := levels(30, map[int]float64{17: 105})
	broken := slices.Clone(slower)
	for i := range broken {
		if i%7 == 4 {
			broken[i] = 0
		}
	}
	around := slices.Clone(slower)
	around[16], around[17], around[18] = 0, 0, 0
	for name, tc := range map[string]struct {
		percents []float64
		// want are the culprits: the last commit before each, and the first one that has it for certain.
		want    [][2]int
		skipped bool
		code    int
		says    string
	}{
		"the commit that did it":                  {slower, [][2]int{{16, 17}}, false, cli.ExitNoGo, ""},
		"a commit that made it faster":            {levels(30, map[int]float64{11: 90}), [][2]int{{10, 11}}, false, 0, ""},
		"two commits":                             {levels(30, map[int]float64{8: 106, 22: 112}), [][2]int{{7, 8}, {21, 22}}, false, cli.ExitNoGo, ""},
		"the only commit":                         {levels(2, map[int]float64{1: 110}), [][2]int{{0, 1}}, false, cli.ExitNoGo, ""},
		"commits that do not build, passed over":  {broken, [][2]int{{16, 17}}, true, cli.ExitNoGo, ""},
		"a range around those that do not build":  {around, [][2]int{{15, 19}}, true, cli.ExitNoGo, ""},
		"that the ends do not differ":             {levels(8, nil), nil, false, cli.ExitInconclusive, "the ends do not differ"},
		"that the first commit does not build":    {levels(8, map[int]float64{0: 0, 1: 100}), nil, true, cli.ExitInconclusive, "the first revision could not be measured"},
		"that a program came and went, so no end": {levels(8, map[int]float64{3: 110, 5: 100}), nil, false, cli.ExitInconclusive, "the ends do not differ"},
	} {
		t.Run(name, func(t *testing.T) {
			longForm(t, name, "the only commit", "that the first commit does not build")
			t.Parallel()
			s := newSearch(t, tc.percents)
			got, stderr, err := s.answer("--good", "v0", "--bad", "main")
			if cli.ExitCode(err) != tc.code || tc.says != "" && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("it ends with %d: %v\n%s", cli.ExitCode(err), err, stderr)
			}
			var culprits, want [][2]string
			for _, c := range got.Culprits {
				culprits = append(culprits, [2]string{c.After, c.At})
				if c.Probability < 0.95 || c.Fresh == nil || len(c.Among) != 1 && !tc.skipped {
					t.Errorf("%+v", c)
				}
			}
			for _, c := range tc.want {
				want = append(want, [2]string{s.hash(c[0]), s.hash(c[1])})
			}
			if !slices.Equal(culprits, want) {
				t.Errorf("%v (%s), want %v\n%s", culprits, got.Why, want, stderr)
			}
			if (len(got.Skipped) > 0) != tc.skipped {
				t.Errorf("passed over: %+v", got.Skipped)
			}
			if left, err := filepath.Glob(filepath.Join(s.state, "builds", "*")); err != nil || len(left) > 0 {
				t.Errorf("builds are left: %v, %v", left, err)
			}
		})
	}
}

func TestBisection_ResumesAfterInterrupt(t *testing.T) {
	longForm(t, "")
	s := newSearch(t, levels(30, map[int]float64{17: 105}))
	for _, at := range []string{"wave 1: ", "wave 2: ", "block ", "wave 3: "} {
		ctx, cancel := context.WithCancel(t.Context())
		command := New()
		command.SetOut(&bytes.Buffer{})
		command.SetErr(&interrupter{at: at, cancel: cancel})
		command.SetArgs(s.args("--good", "v0", "--bad", "main"))
		err := command.ExecuteContext(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "restart the command to resume") || cli.ExitCode(err) != cli.ExitError {
			t.Fatalf("interrupted at %q: %v", at, err)
		}
	}
	got, stderr, err := s.answer("--good", "v0", "--bad", "main")
	if cli.ExitCode(err) != cli.ExitNoGo || len(got.Culprits) != 1 || got.Culprits[0].At != s.hash(17) ||
		!strings.Contains(stderr, "resuming after 2 waves") {
		t.Fatalf("%+v, %v\n%s", got, err, stderr)
	}
	if strings.Contains(stderr, "wave 2: ") {
		t.Errorf("it measures a wave again:\n%s", stderr)
	}

	t.Run("and prints its answer when it has ended", func(t *testing.T) {
		stdout, stderr, err := assay(t, s.args("--good", "v0", "--bad", "main")...)
		if cli.ExitCode(err) != cli.ExitNoGo || strings.Contains(stderr, "wave ") || strings.Contains(stderr, "build ") {
			t.Fatalf("%v\n%s", err, stderr)
		}
		for _, want := range []string{
			"culprit " + s.hash(17)[:10] + " step 17: latency.median", " times the previous level, probability ", "fresh blocks", "waves, state ",
		} {
			if !strings.Contains(stdout, want) {
				t.Errorf("it does not say %q:\n%s", want, stdout)
			}
		}
	})
	t.Run("and not with another question", func(t *testing.T) {
		for _, args := range [][]string{{"--good", "v1", "--bad", "main"}, {"--good", "v0", "--bad", "main", "--blocks", "12"},
			{"--good", "v0", "--bad", "main", "--layout", "0.01"}} {
			if _, _, err := s.answer(args...); err == nil || !strings.Contains(err.Error(),
				"holds another search") || cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("%v: %v", args, err)
			}
		}
	})
}

// The folder of a search is untrusted, and the builds that it names are removed at the end.
func TestBisection_ForgedStateTouchesNoOtherFiles(t *testing.T) {
	longForm(t, "")
	s := newSearch(t, levels(2, map[int]float64{1: 110}))
	ends := []string{"--good", "v0", "--bad", "main"}
	if _, stderr, err := s.answer(ends...); cli.ExitCode(err) != cli.ExitNoGo {
		t.Fatalf("%v\n%s", err, stderr)
	}
	file := filepath.Join(s.state, "bisect.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	outside, err := filepath.Rel(filepath.Join(s.state, "builds"), mine)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		edit func(kept map[string]any)
		says string
	}{
		"nothing else":              {func(map[string]any) {}, ""},
		"a build elsewhere":         {func(kept map[string]any) { kept["built"] = []string{outside} }, "not a revision of the search"},
		"a build that failed there": {func(kept map[string]any) { kept["failed"] = map[string]string{outside: "no"} }, "not a revision of the search"},
		"a revision there": {func(kept map[string]any) {
			kept["search"].(map[string]any)["revisions"].([]any)[1].(map[string]any)["revision"] = outside
			kept["built"] = []string{outside}
		}, "a commit hash is required"},
		"no list of failed revisions": {func(kept map[string]any) { kept["failed"] = nil }, "found null"},
		"no list of images":           {func(kept map[string]any) { kept["images"] = nil }, "found null"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := map[string]any{}
			if err := json.Unmarshal(raw, &kept); err != nil {
				t.Fatal(err)
			}
			tc.edit(kept)
			changed, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err = assay(t, s.args(ends...)...)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
			if _, err := os.Stat(mine); err != nil {
				t.Fatalf("a file beside the folder was removed: %v", err)
			}
		})
	}
}

// interrupter ends a command when it says something for the first time.
type interrupter struct {
	at     string
	cancel func()
}

func (i *interrupter) Write(text []byte) (int, error) {
	if strings.Contains(string(text), i.at) {
		i.cancel()
	}
	return len(text), nil
}

func TestBisection_ListedRevisions(t *testing.T) {
	longForm(t, "")
	var revisions []string
	for i := range 20 {
		percent := 100
		if i >= 13 {
			percent = 108
		}
		revisions = append(revisions, fmt.Sprintf("r%d-%d", i, percent))
	}
	stdout, stderr, err := assay(t, "bisect", filepath.Join("testdata", "series.yaml"), "--bin-dir", simulated, "--pin=false", "--state",
		filepath.Join(t.TempDir(), "state"), "--good", revisions[0], "--bad", revisions[19], "--revisions", strings.Join(revisions, ","))
	if cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(stdout, "culprit r13-108: latency.median") {
		t.Errorf("%v\n%s\n%s", err, stdout, stderr)
	}
}

// TestBisection_LocatesChangeOfHistory goes from points to a confirmed change, and from there to its commit.
func TestBisection_LocatesChangeOfHistory(t *testing.T) {
	longForm(t, "")
	h := newSeries(t)
	h.must("r1-100")
	h.nights(12)
	h.must("r2-120")
	state := filepath.Join(t.TempDir(), "state")
	where := []string{"--history", h.folder}
	search := func(id string) (string, string, error) {
		return assay(t, append([]string{"bisect", h.file, "--bin-dir", h.bin, "--pin=false", "--state", state, "--change", id,
			"--revisions", "night11-100,a-100,b-100,c-120,d-120,r2-120"}, where...)...)
	}
	book := func() change.Change {
		t.Helper()
		got, err := h.archive().Book(t.Context())
		if err != nil || len(got.Changes) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		return got.Changes[0]
	}
	_, _, err := search(book().ID)
	if err == nil || !strings.Contains(err.Error(), "cannot follow Suspected") || cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("a suspicion is located: %v", err)
	}
	h.alerts("", "--confirm")
	stdout, stderr, err := search(book().ID[:6])
	if cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(stdout, "culprit c-120") {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	if c := book(); c.State != change.Located || !slices.Equal(c.Culprits, []string{"c-120"}) ||
		!strings.Contains(c.History[len(c.History)-1].Why, "c-120: 1.") || c.History[len(c.History)-2].To != change.Locating {
		t.Errorf("the change is %+v", c)
	}
	// Later points date the change again, and the culprit is reported again, also from the namespace of the history.
	h.must("r3-120", "--confirm")
	nightly := assayv1alpha1.BenchmarkSchedule{}
	nightly.Status.History = store.FolderURL(h.folder)
	server := namespaces(t, map[string][]assayv1alpha1.BenchmarkSchedule{"bench": {nightly}})
	t.Setenv("AWS_ACCESS_KEY_ID", "mine")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	where = []string{"-n", "bench", "--server", server}
	if stdout, _, err = search(book().ID); cli.ExitCode(err) != cli.ExitNoGo || !strings.Contains(stdout, "culprit c-120") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

func TestBisection_InvalidFlagsRejected(t *testing.T) {
	s := newSearch(t, levels(3, map[int]float64{1: 110}))
	twice := filepath.Join(t.TempDir(), "twice.yaml")
	raw, err := os.ReadFile(filepath.Join("testdata", "bisect.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wall := "  - {name: wall, metric: process.wallTime, op: RatioAtMost, bound: \"1.05\"}\n"
	more := strings.Replace(string(raw), "  gates:\n", "  gates:\n"+wall, 1)
	if err := os.WriteFile(twice, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "bisect.yaml")
	ends := []string{"--good", "v0", "--bad", "v2"}
	build := []string{"--build", building, "--program", "bin/echo"}
	for name, tc := range map[string]struct {
		file string
		args [][]string
		says string
	}{
		"without ends":                          {file, [][]string{build}, "the ends of the search are missing"},
		"with one end":                          {file, [][]string{build, {"--good", "v0"}}, "the ends of the search are missing"},
		"with ends and a change":                {file, [][]string{build, ends, {"--change", "x"}}, "cannot be combined with --good and --bad"},
		"with a change that is not there":       {file, [][]string{build, {"--change", "x", "--history", t.TempDir()}}, "0 changes match the prefix"},
		"with a commit that is not there":       {file, [][]string{build, {"--good", "v0", "--bad", "v9"}}, `invalid bad "v9"`},
		"the wrong way round":                   {file, [][]string{build, {"--good", "v2", "--bad", "v0"}}, "is not an ancestor of --bad"},
		"with nothing that tells revisions":     {file, [][]string{ends}, "arm \"head\" does not depend on the revision"},
		"with a build and no program":           {file, [][]string{ends, {"--build", "true"}}, "--build and --program require each other"},
		"with a program outside the checkout":   {file, [][]string{ends, {"--build", "true", "--program", "/bin/echo"}}, "use a path in the checkout"},
		"with identical programs":               {file, [][]string{ends, {"--programs", "/bin/echo"}}, "all 3 revisions would have the same program"},
		"with two ways to a program":            {file, [][]string{ends, build, {"--programs", "x/{revision}"}}, "mutually exclusive"},
		"with an image and a build":             {file, [][]string{ends, build, {"--image", "a/b:{revision}"}}, "--image cannot be combined"},
		"with one image for all":                {file, [][]string{ends, {"--image", "a/b:main"}}, "the placeholder {revision} is missing"},
		"with a wait for nothing":               {file, [][]string{ends, build, {"--wait", "1m"}}, "with --image"},
		"with a build of listed revisions":      {file, [][]string{ends, build, {"--revisions", "v0,v1,v2"}}, "mutually exclusive"},
		"with ends that the list does not have": {file, [][]string{{"--good", "a", "--bad", "b", "--revisions", "b,a", "--programs", "x/{revision}"}}, "the good revision before the bad one"},
		"with a list that names one twice":      {file, [][]string{{"--good", "a", "--bad", "c", "--revisions", "a,b,b,c", "--programs", "x/{revision}"}}, "twice"},
		"of several metrics":                    {twice, [][]string{ends, build}, "choose one with --metric"},
		"of a metric that no gate judges":       {twice, [][]string{ends, build, {"--metric", "speed.mean"}}, `invalid --metric "speed.mean"`},
		"with an invalid certainty":             {file, [][]string{ends, build, {"--certain", "1.5"}}, "certain: found 1.5"},
		"with an invalid layout":                {file, [][]string{ends, build, {"--layout", "-1"}}, "invalid --layout -1"},
		"with one block":                        {file, [][]string{ends, build, {"--blocks", "1"}}, "1 blocks give no interval"},
		"with no wave":                          {file, [][]string{ends, build, {"--waves", "0"}}, "waves: found 0"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{
				"bisect", tc.file, "--repository", s.repository, "--state", filepath.Join(t.TempDir(), "state"), "--bin-dir", s.bin,
			}, slices.Concat(tc.args...)...)
			_, stderr, err := assay(t, args...)
			if err == nil || !strings.Contains(err.Error(), tc.says) || cli.ExitCode(err) != cli.ExitUsage || strings.Contains(stderr, "wave ") {
				t.Errorf("%v\n%s", err, stderr)
			}
		})
	}
}
