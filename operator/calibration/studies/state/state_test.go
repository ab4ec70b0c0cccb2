package state

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/calibration/studies/reference"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/manifest"
	"assay.dev/assay/operator/internal/record"
)

const root = "../../../.."

func TestClaims_OfAllDocumentsHaveAnAnswer(t *testing.T) {
	library := reference.NewLibrary(root)
	files, err := filepath.Glob(filepath.Join(root, "workflows", "studies", "*", "document", "claims.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of claims (%v)", len(files), err)
	}
	claims, elsewhere := 0, 0
	for _, file := range files {
		study, err := filepath.Rel(root, filepath.Dir(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		answered, err := ReadClaims(root, study, library)
		if err != nil {
			t.Fatal(err)
		}
		for _, mistake := range answered.Invalid {
			t.Error(mistake)
		}
		claims += answered.Claims
		elsewhere += answered.Elsewhere
	}
	if claims < 80 || 10*elsewhere > claims {
		t.Errorf("%d claims, of which %d lack a resource here: at least 80 are listed, and at most a tenth of them lacks one", claims, elsewhere)
	}
}

func TestReadClaims_EachHasOneAnswer(t *testing.T) {
	const head = "- {id: c, at: here, says: it, when: always, "
	for name, tc := range map[string]struct {
		claim               string
		invalid, unanswered string
		elsewhere           int
	}{
		"a decided gate":              {claim: head + "run: run.yaml, gate: gain, arm: b, where: {size: \"1\"}, answer: No.}"},
		"a gate that is not decided":  {claim: head + "run: run.yaml, gate: gain, arm: c, answer: No.}", unanswered: "is Inconclusive"},
		"a gate without a result":     {claim: head + "run: new.yaml, gate: gain, answer: No.}", unanswered: "new.yaml has no result yet"},
		"a gate without words":        {claim: head + "run: run.yaml, gate: gain, arm: b}"},
		"a condition that holds":      {claim: head + "asks: [\"run: time (us), b below 3\"]}"},
		"a condition that fails":      {claim: head + "asks: [\"run: time (us), b below 1\"]}"},
		"one of several that fails":   {claim: head + "asks: [\"run: ratio, b below 1\", \"run: time (us), b below 1\"]}"},
		"a condition not decided":     {claim: head + "asks: [\"run: ratio, b below 1\"]}", unanswered: "is not decided"},
		"a condition without a limit": {claim: head + "asks: [\"run: ratio, b\"]}", invalid: "has no condition"},
		"a condition of no result":    {claim: head + "asks: [\"new: ratio, b below 1\"]}", unanswered: "new has no result yet"},
		"a condition of no run":       {claim: head + "asks: [\"old: ratio, b below 1\"], where: {size: \"1\"}}", invalid: "old.yaml"},
		"a condition at no setting":   {claim: head + "asks: [\"run: ratio, b below 1\"], where: {size: \"3\"}}", invalid: "the condition is 3"},
		"an unknown gate":             {claim: head + "run: run.yaml, gate: loss, answer: No.}", invalid: "has no gate"},
		"another condition":           {claim: head + "run: run.yaml, gate: gain, where: {size: \"3\"}, answer: No.}", invalid: "the condition is 3"},
		"a gate at another point":     {claim: head + "run: run.yaml, gate: gain, where: {size: \"2\"}, answer: No.}", invalid: "the condition is 2"},
		"a cell":                      {claim: head + "shown: [\"run: time (us), b below 3\"], answer: Yes.}"},
		"a cell that says otherwise":  {claim: head + "shown: [\"run: time (us), b below 1\"], answer: Yes.}", invalid: "does not hold"},
		"a cell without a condition":  {claim: head + "shown: [\"run: time (us), b\"], answer: Yes.}", invalid: "has no condition"},
		"a cell of another condition": {claim: head + "shown: [\"run: time (us), b below 3\"], where: {size: \"3\"}, answer: Yes.}", invalid: "the condition is 3"},
		"a test":                      {claim: head + "test: known, answer: Yes.}"},
		"an unknown test":             {claim: head + "test: other, answer: Yes.}", invalid: "no workload"},
		"no answer in words":          {claim: head + "test: known}", invalid: "no answer"},
		"no answer":                   {claim: head + "answer: Yes.}", invalid: "it has 0 of"},
		"two answers":                 {claim: head + "test: known, open: a run, answer: Yes.}", invalid: "it has 2 of"},
		"a missing run":               {claim: head + "open: a run}", unanswered: "a run"},
		"a missing resource":          {claim: head + "elsewhere: its source}", elsewhere: 1},
		"a claim without a condition": {claim: "- {id: c, at: here, says: it, open: a run}", invalid: "needs a unique id", unanswered: "a run"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, content string) {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			const run = "spec:\n  sweep: {axes: [{name: size, values: [\"1\", \"2\"]}]}\n  gates: [{name: gain, at: {size: \"1\"}}]\n"
			write("s/run.yaml", run)
			write("s/new.yaml", run)
			write("s/results/local/run/t.csv", "arm,time (us),ratio,ratio low,ratio high\nb,2,0.9,0.8,1.1\n")
			write("s/results/local/run/report.md", "## Gates\n\n| outcome | gate | candidate | point |\n| --- | --- | --- | --- |\n"+
				"| NoGo | gain | b | size=1 |\n| Inconclusive | gain | c | size=1 |\n")
			write("workloads/a/b/src/lib.rs", "fn known() {}")
			write("s/document/claims.yaml", "document: d\nclaims:\n"+tc.claim+"\n")
			got, err := ReadClaims(dir, "s", reference.NewLibrary(dir))
			if err != nil {
				t.Fatal(err)
			}
			for what, pair := range map[string][2]string{
				"invalid":    {strings.Join(got.Invalid, "\n"), tc.invalid},
				"unanswered": {strings.Join(got.Unanswered, "\n"), tc.unanswered},
			} {
				if pair[1] == "" && pair[0] != "" || !strings.Contains(pair[0], pair[1]) {
					t.Errorf("%s: got %q, want %q", what, pair[0], pair[1])
				}
			}
			if got.Claims != 1 || got.Elsewhere != tc.elsewhere {
				t.Errorf("%d claims, %d elsewhere", got.Claims, got.Elsewhere)
			}
		})
	}
}

func TestChanged_NamesTheParts(t *testing.T) {
	templates, err := manifest.Read(filepath.Join(root, "charts", "assay", "files", "benchmarktemplates"))
	if err != nil {
		t.Fatal(err)
	}
	tree := current{root: root, templates: templates}
	study := filepath.Join(root, "workflows", "studies", "pir-batch-scan")
	runs, err := manifest.Read(filepath.Join(study, "run-aes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		result string
		change func(*experiment.Experiment)
		want   string
	}{
		"the same":                           {"run-aes", func(*experiment.Experiment) {}, ""},
		"another description of a parameter": {"run-aes", func(e *experiment.Experiment) { replace(&e.Template, `"description":"`, `"description":"old `) }, ""},
		"another default of a parameter":     {"run-aes", func(e *experiment.Experiment) { replace(&e.Template, `"default":"`, `"default":"1`) }, "the template has changed"},
		"another number of blocks":           {"run-aes", func(e *experiment.Experiment) { replace(&e.Spec, `"seed":`, `"seed":1`) }, "the run file has changed"},
		"the run file of another run":        {"run-keys", func(*experiment.Experiment) {}, "the run file has changed"},
		"a run file that is gone":            {"run-gone", func(*experiment.Experiment) {}, "missing or invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := templates.Template(&runs.Runs[0])
			if err != nil {
				t.Fatal(err)
			}
			frozen, err := experiment.Freeze(record.Run{Namespace: "local", Name: runs.Runs[0].Name}, runs.Runs[0].Spec, *template)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(frozen)
			got, err := tree.changed(filepath.Join(study, "results", "local", tc.result), frozen)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(got, "; "); tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

func replace[T ~[]byte](raw *T, old, with string) {
	*raw = T(strings.Replace(string(*raw), old, with, 1))
}

func TestPrograms_OtherThanTheCurrentAreNamed(t *testing.T) {
	tree := current{bin: t.TempDir(), digests: map[string]string{}}
	if err := os.WriteFile(filepath.Join(tree.bin, "kernel"), []byte("abc"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The digest of "abc", from the test vectors of BLAKE3.
	const digest = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
	for name, tc := range map[string]struct {
		program, digest string
		want            []string
	}{
		"the same":                     {"/bin/kernel", digest, nil},
		"another":                      {"/bin/kernel", "blake3:00", []string{"the program kernel has changed"}},
		"one that is no longer built":  {"/bin/old", digest, []string{"the current build has no old"}},
		"an attempt without a digest":  {"/bin/kernel", "", []string{"no digest of its program is recorded"}},
		"an attempt without a program": {"", digest, []string{"no digest of its program is recorded"}},
	} {
		t.Run(name, func(t *testing.T) {
			attempt := record.Attempt{Environment: record.Environment{Soft: map[string]any{"programDigest": tc.digest}}}
			if tc.program != "" {
				attempt.Argv = []string{tc.program}
			}
			if got := tree.programs([]record.Attempt{attempt}); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadResults_WithoutALedgerIsStale(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads all ledgers")
	}
	results, err := ReadResults(context.Background(), root, filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if !result.Archived && len(result.Stale) == 0 {
			t.Errorf("%s has no ledger and counts as current", result.Folder)
		}
	}
}

// large are archives of more than 128 KiB, which were stored before that was the limit. No other may be added.
var large = []string{
	"workflows/studies/diskann-insert/results/local/run-25k", "workflows/studies/diskann-insert/results/local/run-lazy",
	"workflows/studies/diskann-insert/results/local/run-pushed-out", "workflows/studies/diskann-insert/results/local/run-seek",
	"workflows/studies/diskann-insert/results/local/run-together", "workflows/studies/mork-serialisation/results/cluster/run",
	"workflows/studies/mork-serialisation/results/local/run", "workflows/studies/mork-serialisation/results/local/run-pages",
	"workflows/studies/rms24-batching/results/cluster/run", "workflows/studies/rms24-batching/results/local/run",
}

func TestReadResults_ArchivesAreWithinTheirLimits(t *testing.T) {
	const most, mostLarge, mostInAll = 128 << 10, 256 << 10, 8 << 20
	files, err := filepath.Glob(filepath.Join(root, "workflows", "studies", "*", "results", "*", "*", "ledger.tar.zst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archive (%v)", err)
	}
	var all int64
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		all += info.Size()
		limit := int64(most)
		if slices.Contains(large, folder) {
			limit = mostLarge
		}
		if info.Size() > limit {
			t.Errorf("the archive of %s has %d bytes, and %d are allowed: report fewer samples or measure fewer blocks", folder, info.Size(), limit)
		}
	}
	if all > mostInAll {
		t.Errorf("the archives have %d bytes together, and %d are allowed", all, mostInAll)
	}
}

func TestPeriod_FromTheFirstBeginToTheLastEnd(t *testing.T) {
	at := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	begin, took := period([]record.Attempt{
		{StartedAt: at.Add(time.Minute), DurationSeconds: 600}, {StartedAt: at, DurationSeconds: 1}, {StartedAt: at.Add(2 * time.Minute)},
	})
	if !begin.Equal(at) || took != 11*time.Minute {
		t.Errorf("it begins at %s and takes %s", begin, took)
	}
}
