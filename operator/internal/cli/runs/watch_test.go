package runs

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

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/test/clitest"
	"assay.dev/assay/operator/test/fakeexecutor"
)

// A list that is watched stands in a corner of a screen for days.
func TestWatch_ListContinuesAfterAPIServerErrors(t *testing.T) {
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
						if asked++; asked > 2*int(time.Hour/PollInterval) {
							return nil, errors.New("the API server is asked without a pause")
						}
						if err := tc.answer(time.Since(began)); err != nil {
							return nil, err
						}
						told := watch.NewFakeWithChanSize(2, false)
						told.Add(clitest.Run("default", "r", func(run *assayv1alpha1.BenchmarkRun) { run.ResourceVersion = "7" }))
						told.Stop()
						return told, nil
					},
				}, clitest.Run("default", "r"))
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

func TestLogs_FollowContinuesAfterAPIServerErrors(t *testing.T) {
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
			clitest.Complete(assayv1alpha1.VerdictGo)(run)
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
				l := &logReader{engine: fakeexecutor.New(), run: clitest.Run("default", "r"), out: io.Discard, stderr: io.Discard}
				l.cluster = fakeCluster(t, interceptor.Funcs{
					Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
						run, _ := into.(*assayv1alpha1.BenchmarkRun)
						*run = *clitest.Run("default", "r")
						return tc.answer(time.Since(began), run)
					},
				})
				// The clock keeps running if the test blocks.
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
