package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/test/clitest"
)

func TestRunName_UnknownSuggestsSimilarNames(t *testing.T) {
	objects := []client.Object{clitest.Run("default", "pir-scan"), clitest.Run("default", "pir-scan-smoke"), clitest.Run("default", "mork"),
		clitest.Run("team-a", "elsewhere")}
	for name, tc := range map[string]struct{ asked, want string }{
		"a letter is wrong":         {"pir-scam", `no BenchmarkRun "pir-scam" in namespace "default"; did you mean pir-scan?`},
		"the end is missing":        {"pir", `did you mean pir-scan or pir-scan-smoke?`},
		"it is in another place":    {"elsewhere", `it exists with -n team-a`},
		"nothing is near":           {"something-else", `list all runs with assay get -A`},
		"two letters, two meanings": {"morc", `did you mean mork?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := GetRun(context.Background(), fakeCluster(t, interceptor.Funcs{}, objects...), tc.asked)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestRunName_UnknownWithoutRightToList(t *testing.T) {
	forbidden := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "assay.dev", Resource: "benchmarkruns"}, "", errors.New("no"))
	}}
	_, err := GetRun(context.Background(), fakeCluster(t, forbidden), "x")
	if err == nil || err.Error() != `no BenchmarkRun "x" in namespace "default"` {
		t.Errorf("error %v", err)
	}
}

func TestRunName_Completion(t *testing.T) {
	cluster := fakeCluster(t, interceptor.Funcs{}, clitest.Run("default", "one", clitest.Complete(assayv1alpha1.VerdictGo)),
		clitest.Run("default", "two"),
		clitest.Run("team-a", "three"))
	got := runCompletions(t.Context(), cluster, []string{"two"})
	if len(got) != 1 || got[0] != cobra.CompletionWithDesc("one", "Succeeded Go") {
		t.Errorf("completions %q", got)
	}
}
