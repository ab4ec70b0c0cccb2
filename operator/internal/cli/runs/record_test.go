package runs

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/schedule"
)

func TestRecord_RevisionIsRecordedOnce(t *testing.T) {
	digest := func(letter string) string { return "ghcr.io/acme/scan@sha256:" + strings.Repeat(letter, 64) }
	record := func(t *testing.T, cluster *cli.Cluster, series, revision, image, form string) (string, error) {
		t.Helper()
		r := recording{
			series: series, revision: assayv1alpha1.Revision{Revision: revision, Image: image}, form: form,
			now: func() time.Time { return time.Date(2026, 11, 23, 2, 0, 0, 5000, time.UTC) },
			resolve: func(_ context.Context, reference string) schedule.Image {
				if strings.HasSuffix(reference, ":main") {
					return schedule.Image{Revision: assayv1alpha1.Revision{Revision: "label", Image: digest("a")}}
				}
				return schedule.Image{Vanished: reference + " is gone"}
			},
		}
		var out bytes.Buffer
		err := r.record(t.Context(), cluster, &out)
		return out.String(), err
	}
	cluster := fakeCluster(t, interceptor.Funcs{})
	// The cases depend on the objects of the preceding ones.
	for _, tc := range []struct{ name, series, revision, image, form, want, err string }{
		{"a tag is recorded by its digest", "scan", "c0ffee", "ghcr.io/acme/scan:main", "text", "revision c0ffee of series scan recorded: " + digest("a"), ""},
		{"the same again changes nothing", "scan", "c0ffee", digest("a"), "text", "was recorded before", ""},
		{"and says so to programs", "scan", "c0ffee", digest("a"), "json", `"already": true`, ""},
		{"another image under it is refused", "scan", "c0ffee", digest("b"), "text", "", "revisions are immutable"},
		{"another revision is another", "scan", "decaf", digest("b"), "text", "revision decaf", ""},
		{"another series has its own", "sort", "c0ffee", digest("b"), "text", "series sort recorded", ""},
		{"a tag that is gone records nothing", "scan", "f00", "ghcr.io/acme/scan:gone", "text", "", "is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := record(t, cluster, tc.series, tc.revision, tc.image, tc.form)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || !strings.Contains(out, tc.want) {
				t.Errorf("%q (%v) does not contain %q", out, err, tc.want)
			}
		})
	}
	var list assayv1alpha1.BenchmarkRevisionList
	if err := cluster.List(t.Context(), &list, client.InNamespace("default")); err != nil || len(list.Items) != 3 {
		t.Fatalf("%d revisions, %v", len(list.Items), err)
	}
	for _, r := range list.Items {
		if r.Spec.ReportedAt == nil || r.Spec.ReportedAt.Nanosecond() != 5000 {
			t.Errorf("%s was reported at %v", r.Name, r.Spec.ReportedAt)
		}
	}
}
