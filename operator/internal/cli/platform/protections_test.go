package platform

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestDoctor_DisabledProtectionsAreListed(t *testing.T) {
	const everything = "{default: {maxWallClock: 24h, maxRuns: 10, maxWaiting: 100, maxTrials: 20000, maxMemory: 64Gi, maxStored: 40Gi}}"
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "assay-runs"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/benchmarkruns.assay.dev": resource.MustParse("5000")}}}
	for name, tc := range map[string]struct {
		policy  string
		objects []client.Object
		// says are parts of the two findings; empty when the protection is there.
		says [2]string
	}{
		"everything is limited":    {everything, []client.Object{quota}, [2]string{}},
		"no policy":                {"", []client.Object{quota}, [2]string{"no limit: maxWallClock, maxRuns, maxWaiting, maxTrials, maxMemory, maxStored", ""}},
		"one limit is missing":     {strings.Replace(everything, "maxWaiting: 100, ", "", 1), []client.Object{quota}, [2]string{"no limit: maxWaiting", ""}},
		"no quota":                 {everything, nil, [2]string{"", "none limits"}},
		"a limit of the namespace": {strings.Replace(everything, "maxRuns: 10, ", "", 1)[:len(everything)-len("maxRuns: 10, }")] + ", namespaces: {team: {maxRuns: 1}}}", []client.Object{quota}, [2]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			installed := setup{present: true, flags: map[string]string{}}
			if tc.policy != "" {
				installed.flags["policy"] = tc.policy
			}
			got := installed.protections(t.Context(), fake.NewClientBuilder().WithObjects(tc.objects...).Build(), "team")
			if len(got) != 2 {
				t.Fatalf("findings %+v", got)
			}
			for i, says := range tc.says {
				if !got[i].OK || (got[i].Remedy != "") != (says != "") || !strings.Contains(got[i].Found, says) {
					t.Errorf("found %+v, want one that says %q", got[i], says)
				}
			}
		})
	}
	if got := (setup{}).protections(t.Context(), fake.NewClientBuilder().Build(), "team"); got != nil {
		t.Errorf("without an operator: %+v", got)
	}
}
