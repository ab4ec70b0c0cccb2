package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/steps"
)

// threeCells has a setup and a cleanup for each of three arms.
func threeCells() *steps.Document {
	out := &steps.Document{Schema: steps.Schema, TimeoutSeconds: 1}
	for _, arm := range []string{"a", "b", "c"} {
		out.Cells = append(out.Cells, steps.Cell{Arm: arm, Env: map[string]string{}, Setup: []string{"s"}, Cleanup: []string{"c"}})
	}
	return out
}

func TestSteps_CleanupFollowsEverySetupThatBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		begun  string
		broken bool
	}{
		"all setups succeed":                  {"true", "0s 1s 2s 2c 1c 0c", false},
		"the second setup fails":              {`test "$3 $5" = "1 setup" && { echo noise >&2; echo "the setup is broken: it failed" >&2; exit 3; }`, "0s 1s 1c 0c", true},
		"a cleanup fails, and others run too": {`test "$3 $5" = "1 cleanup" && { echo "the setup is broken: it failed" >&2; exit 3; }`, "0s 1s 2s 2c 1c 0c", false},
		"the runner fails otherwise":          {`test "$3 $5" = "0 setup" && exit 1`, "0s 0c", false},
	} {
		t.Run(name, func(t *testing.T) {
			notes := filepath.Join(t.TempDir(), "notes")
			runner := fakeRunner(t, `printf '%s%.1s ' "$3" "$5" >> `+notes+"\ncat /dev/fd/${7#fd:} > "+notes+".steps\n"+tc.script+"\nexit 0\n")
			around := &Steps{Executor: &Executor{Runner: runner, Log: &bytes.Buffer{}, Steps: threeCells()}}
			err := around.Setup(context.Background())
			var broken *BrokenSetup
			if errors.As(err, &broken) != tc.broken || broken != nil && broken.Reason != "it failed" {
				t.Errorf("setup: %v", err)
			}
			cancelled, cancel := context.WithCancel(context.Background())
			cancel()
			err = around.Cleanup(cancelled)
			if strings.HasPrefix(name, "a cleanup fails") != (err != nil) {
				t.Errorf("cleanup: %v", err)
			}
			if err := around.Cleanup(cancelled); err != nil {
				t.Errorf("a second cleanup: %v", err)
			}
			got, err := os.ReadFile(notes)
			if err != nil || strings.TrimSpace(string(got)) != tc.begun {
				t.Errorf("steps %q (%v), want %q", got, err, tc.begun)
			}
			passed, err := os.ReadFile(notes + ".steps")
			if err != nil || !strings.Contains(string(passed), `"arm":"c"`) {
				t.Errorf("the runner read %q (%v)", passed, err)
			}
		})
	}
}

func TestRun_FailedStepIsABrokenSetup(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'the setup is broken: prepare of new failed' >&2; exit 3": "prepare of new failed",
		"echo 'the setup is broken: printed by a trial' >&2; exit 1":    "",
		"exit 3": "",
	} {
		executor := &Executor{Runner: fakeRunner(t, script), Folder: ledgerFolder(t), Name: "here", Log: &bytes.Buffer{}, Steps: threeCells()}
		err := executor.Run(context.Background(), &record.Wave{Blocks: []record.Block{{ID: "w000-b0000"}}}, nil)
		var broken *BrokenSetup
		if errors.As(err, &broken) != (want != "") || broken != nil && broken.Reason != want {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

func TestRun_RunnerReadsStepsThatTrialsCannotWrite(t *testing.T) {
	var log bytes.Buffer
	document := threeCells()
	document.Cells[0].Prepare = []string{strings.Repeat("x", 200_000)} // More than a pipe holds.
	runner := fakeRunner(t, `echo "$@"; wc -c < /dev/fd/4`)
	executor := &Executor{Runner: runner, Folder: ledgerFolder(t), Name: "here", Log: &log, Steps: document}
	if err := executor.Run(context.Background(), &record.Wave{Blocks: []record.Block{{ID: "w000-b0000"}}}, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "--finish-seconds 0 --steps fd:4\n200") {
		t.Errorf("the call and the size are %q", log.String())
	}
	document.Cells[1].Conclude = []string{"x"}
	if executor.concludes() != time.Second {
		t.Errorf("a runner that concludes has %s more", executor.concludes())
	}
}
