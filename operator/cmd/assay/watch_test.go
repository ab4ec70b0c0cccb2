package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/fake"
)

// A gate waits for hours. In that time watches end, API servers are replaced, and others delete and create runs.
func TestAGateWaitsForItsOwnRunWhateverBecomesOfTheAPIServer(t *testing.T) {
	const wait = time.Hour
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: syscall.ECONNREFUSED}
	busy := apierrors.NewTooManyRequests("later", 1)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "benchmarkruns"}, "r", errors.New("no"))
	for name, tc := range map[string]struct {
		// answer changes what is read of the run when that much of the wait is over.
		answer func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error
		want   string
		within time.Duration
	}{
		"watches that end at once": {func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			if passed > 30*time.Minute {
				complete(assayv1alpha1.VerdictGo)(run)
			}
			return nil
		}, "", 31 * time.Minute},
		"an API server that is replaced now and then": {func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			switch minute := passed.Minutes(); {
			case minute > 30:
				complete(assayv1alpha1.VerdictGo)(run)
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
				complete(assayv1alpha1.VerdictGo)(run)
			}
			return nil
		}, "another has its name", 6 * time.Minute},
		"a run that does not end": {func(time.Duration, *assayv1alpha1.BenchmarkRun) error { return nil }, "did not end within", wait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				cluster := fakeCluster(t, interceptor.Funcs{
					Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
						asked++
						run, _ := into.(*assayv1alpha1.BenchmarkRun)
						*run = *aRun("default", "r")
						return tc.answer(time.Since(began), run)
					},
					Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
						broken := watch.NewFake()
						broken.Stop()
						if asked > 2*int(wait/lookAgain) {
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

// A list that is watched stands in a corner of a screen for days.
func TestAListIsWatchedUntilItIsInterruptedWhateverBecomesOfTheAPIServer(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: syscall.ECONNREFUSED}
	for name, tc := range map[string]struct {
		answer func(passed time.Duration) error
		want   string
	}{
		"watches that end at once": {func(time.Duration) error { return nil }, ""},
		"an API server that is replaced now and then": {func(passed time.Duration) error {
			if int(passed.Minutes())%10 == 5 {
				return refused
			}
			return nil
		}, ""},
		"an API server that stays away": {func(passed time.Duration) error {
			if passed > 5*time.Minute {
				return refused
			}
			return nil
		}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began, asked, out := time.Now(), 0, &bytes.Buffer{}
				cluster := fakeCluster(t, interceptor.Funcs{
					Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
						if asked++; asked > 2*int(time.Hour/lookAgain) {
							return nil, errors.New("the API server is asked without a pause")
						}
						if err := tc.answer(time.Since(began)); err != nil {
							return nil, err
						}
						told := watch.NewFakeWithChanSize(2, false)
						told.Add(aRun("default", "r", func(run *assayv1alpha1.BenchmarkRun) { run.ResourceVersion = "7" }))
						told.Stop()
						return told, nil
					},
				}, aRun("default", "r"))
				err := watchRuns(ctx, cluster, nil, labels.Everything(), "name", out)
				if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("after %s it ended with %v", time.Since(began), err)
				}
				if err == nil && time.Since(began) < time.Hour {
					t.Errorf("it ended after %s", time.Since(began))
				}
				if got := strings.Count(out.String(), "benchmarkrun.assay.dev/r"); got != 1 {
					t.Errorf("the run is told of %d times", got)
				}
			})
		})
	}
}

func TestLogsAreFollowedUntilTheirOwnRunEndsWhateverBecomesOfTheAPIServer(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: syscall.ECONNREFUSED}
	for name, tc := range map[string]struct {
		answer func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error
		fails  bool
		within time.Duration
	}{
		"an API server that is replaced": {func(passed time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			if passed < 10*time.Minute {
				return nil
			}
			complete(assayv1alpha1.VerdictGo)(run)
			if passed < 11*time.Minute {
				return refused
			}
			return nil
		}, false, 12 * time.Minute},
		"one that stays away": {func(time.Duration, *assayv1alpha1.BenchmarkRun) error { return refused }, true, 3 * time.Minute},
		"another run of the same name": {func(_ time.Duration, run *assayv1alpha1.BenchmarkRun) error {
			run.UID = "uid-of-another"
			return nil
		}, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := &logReader{engine: fake.New(), run: aRun("default", "r"), out: io.Discard, stderr: io.Discard}
				l.cluster = fakeCluster(t, interceptor.Funcs{
					Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
						run, _ := into.(*assayv1alpha1.BenchmarkRun)
						*run = *aRun("default", "r")
						return tc.answer(time.Since(began), run)
					},
				})
				// Of a test that hangs the clock runs on all the same.
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := l.follow(ctx)
				if took := time.Since(began); (err != nil) != tc.fails || took > tc.within {
					t.Errorf("after %s it ended with %v", took, err)
				}
			})
		})
	}
}
