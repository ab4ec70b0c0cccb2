package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/test/clitest"
)

func TestGate_SavesEveryAnswer(t *testing.T) {
	nogo := clitest.Run("default", "x", clitest.Complete(assayv1alpha1.VerdictNoGo), func(run *assayv1alpha1.BenchmarkRun) {
		run.Status.Gates = []assayv1alpha1.GateStatus{
			{Name: "gain", Candidate: "fused", Point: "batchSize=8", Outcome: assayv1alpha1.VerdictNoGo, Severity: assayv1alpha1.Blocking, Message: "1.02x [1.01, 1.03] is below 1.5x"},
			{Name: "hint", Candidate: "fused", Outcome: assayv1alpha1.VerdictNoGo, Severity: assayv1alpha1.Advisory, Message: "advice"},
			{Name: "parity", Candidate: "fused", Outcome: assayv1alpha1.VerdictGo, Severity: assayv1alpha1.Blocking},
		}
	})
	save := filepath.Join(t.TempDir(), "answer.json")
	var out, progress bytes.Buffer
	var kept cli.GateAnswer
	err := gate(t.Context(), fakeCluster(t, interceptor.Funcs{}, nogo), "x", &gateOptions{form: "text"}, &kept, &out, &progress)
	if err := kept.Save(save); err != nil {
		t.Fatal(err)
	}
	const reason = "the verdict is NoGo: gate gain of fused at batchSize=8: 1.02x [1.01, 1.03] is below 1.5x"
	if err == nil || err.Error() != reason || cli.ExitCode(err) != cli.ExitNoGo {
		t.Fatalf("error %v with code %d", err, cli.ExitCode(err))
	}
	raw, err := os.ReadFile(save)
	if err != nil {
		t.Fatal(err)
	}
	var answer cli.GateAnswer
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Passed || answer.Reason != reason ||
		answer.Verdict != assayv1alpha1.VerdictNoGo {
		t.Errorf("saved %s (%v)", raw, err)
	}
	if !strings.Contains(out.String(), "VERDICT  NoGo") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestGate_Timeout(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{}, clitest.Run("default", "x"))
	for wait, says := range map[string]string{"0": "wait for it with --wait", "50ms": "did not end within --wait 50ms"} {
		options := gateOptions{form: "text"}
		if wait != "0" {
			options.wait = 50e6
		}
		err := gate(t.Context(), cluster, "x", &options, &cli.GateAnswer{}, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), says) || cli.ExitCode(err) != cli.ExitError {
			t.Errorf("--wait %s: error %v, want one that says %q", wait, err, says)
		}
	}
}

func TestGate_InvalidNamesTheGateThatIsNotJudged(t *testing.T) {
	status := assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInvalid}
	said := func() string { return gateError(&assayv1alpha1.BenchmarkRun{Status: status}, false).Error() }
	if got := said(); got != "the verdict is Invalid, because too few trials are valid" {
		t.Errorf("without a gate: %s", got)
	}
	status.Gates = []assayv1alpha1.GateStatus{{
		Name: "speed", Candidate: "new", Outcome: assayv1alpha1.VerdictInvalid, Severity: assayv1alpha1.Blocking, Message: "another benchmark",
	}}
	if got := said(); got != "the verdict is Invalid: gate speed of new: another benchmark" {
		t.Errorf("with a gate: %s", got)
	}
}

func TestGate_ExitCodeFollowsVerdict(t *testing.T) {
	failed := []metav1.Condition{{Type: assayv1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "InvalidExperiment",
		Message: "spec.arms: none"}}
	for name, test := range map[string]struct {
		status  assayv1alpha1.BenchmarkRunStatus
		lenient bool
		code    int // 0 passes
	}{
		"Go passes":                               {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictGo}},
		"NoGo has its code":                       {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictNoGo}, code: cli.ExitNoGo},
		"NoGo is never allowed":                   {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictNoGo}, lenient: true, code: cli.ExitNoGo},
		"Inconclusive does not pass":              {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInconclusive}, code: cli.ExitInconclusive},
		"Inconclusive passes when it is allowed":  {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInconclusive}, lenient: true},
		"Invalid does not pass, allowed or not":   {status: assayv1alpha1.BenchmarkRunStatus{Verdict: assayv1alpha1.VerdictInvalid}, lenient: true, code: cli.ExitInconclusive},
		"a run without a verdict does not pass":   {code: cli.ExitInconclusive},
		"a run that failed is an error, not NoGo": {status: assayv1alpha1.BenchmarkRunStatus{Conditions: failed}, code: cli.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			err := gateError(&assayv1alpha1.BenchmarkRun{Status: test.status}, test.lenient)
			code := 0
			var coded *cli.CodedError
			switch {
			case errors.As(err, &coded):
				code = coded.Code
			case err != nil:
				code = cli.ExitError
			}
			if code != test.code {
				t.Errorf("exit code %d (%v), want %d", code, err, test.code)
			}
		})
	}
}

// A gate waits for hours. In that time watches end, API servers are replaced, and others delete and create runs.
func TestGate_APIServerErrorsAreRetried(t *testing.T) {
	const wait = time.Hour
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: syscall.ECONNREFUSED}
	busy := apierrors.NewTooManyRequests("later", 1)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "benchmarkruns"}, "r", errors.New("no"))
	for name, tc := range map[string]struct {
		// answer returns the run as changed when that share of the wait is over.
		answer func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error
		want   string
		within time.Duration
	}{
		"watches that end at once": {func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			if passed > 30*time.Minute {
				clitest.Complete(assayv1alpha1.VerdictGo)(run)
			}
			return nil
		}, "", 31 * time.Minute},
		"an API server that is replaced now and then": {func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			switch minute := passed.Minutes(); {
			case minute > 30:
				clitest.Complete(assayv1alpha1.VerdictGo)(run)
			case int(minute)%10 == 5:
				return refused
			case int(minute)%10 == 7:
				return busy
			}
			return nil
		}, "", 31 * time.Minute},
		"an API server that stays away": {func(passed time.Duration, _ *assayv1alpha1.BenchmarkRun) error {
			if passed > 5*time.Minute {
				return refused
			}
			return nil
		}, "connection refused", 8 * time.Minute},
		"one that was never there": {func(time.Duration, *assayv1alpha1.BenchmarkRun) error { return refused }, "connection refused",
			time.Second},
		"a right that is taken away": {func(passed time.Duration, _ *assayv1alpha1.BenchmarkRun) error {
			if passed > 5*time.Minute {
				return forbidden
			}
			return nil
		}, "forbidden", 6 * time.Minute},
		"another run of the same name": {func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			if passed > 5*time.Minute {
				run.UID = "uid-of-another"
				clitest.Complete(assayv1alpha1.VerdictGo)(run)
			}
			return nil
		}, "replaced by another of the same name", 6 * time.Minute},
		"a run that does not end": {func(time.Duration, *assayv1alpha1.BenchmarkRun) error { return nil }, "did not end within", wait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				cluster := fakeCluster(t, interceptor.Funcs{
					Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
						asked++
						run, _ := into.(*assayv1alpha1.BenchmarkRun)
						*run = *clitest.Run("default", "r")
						return tc.answer(time.Since(began), run)
					},
					Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
						broken := watch.NewFake()
						broken.Stop()
						if asked > 2*int(wait/runs.PollInterval) {
							return nil, errors.New("the API server is asked without a pause")
						}
						return broken, nil
					},
				})
				run, err := waitForEnd(t.Context(), cluster, "r", wait, io.Discard)
				if took := time.Since(began); took > tc.within {
					t.Errorf("it took %s", took)
				}
				switch {
				case tc.want == "" && (err != nil || run.Status.Verdict != assayv1alpha1.VerdictGo):
					t.Errorf("it ended with %v", err)
				case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("it ended with %v, want %s", err, tc.want)
				}
			})
		})
	}
}
