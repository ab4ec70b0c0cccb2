package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// A client with the key of the namespace replaces the analysis and the report all the time: before they are written, between the end of the
// wave and the reading by the operator, and afterwards.
func TestTenant_ReplacedResultsAreNotUsed(t *testing.T) {
	long(t)
	b := bucket(t)
	client, err := minio.New(b.Address, &minio.Options{
		Creds: credentials.NewStaticV4(b.Run.Access, b.Run.Secret, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath,
		Secure: b.Transport != nil, Transport: b.Transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	const page, result = "<script>alert(1)</script>", `{"verdict": "Go", "best": "forged", "candidates": [{"name": "forged", "verdict": "Go"}]}`
	forge := func(ctx context.Context, run *assayv1alpha1.BenchmarkRun) {
		prefix := "runs/" + namespace + "/" + run.Name + "/" + string(run.UID) + "/analysis/000/"
		for name, content := range map[string]string{"analysis.json": result, "report.html": page} {
			// The store may be busy. The next round replaces the object.
			_, _ = client.PutObject(ctx, b.Name, prefix+name, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
		}
	}
	run := smallScan("replaced", 3)
	apply(t, run)
	run = getRun(t, run.Name)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			forge(ctx, run)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	untilCondition(t, run.Name, assayv1alpha1.ConditionProgressing, "True", "analyses wave 0 again", 5*time.Minute)
	if status := getRun(t, run.Name).Status; status.Verdict != "" || status.Best != "" {
		t.Errorf("the status has the verdict %q of %q", status.Verdict, status.Best)
	}
	stop()
	<-ended
	done := untilComplete(t, run.Name, 4*time.Minute)
	if done.Status.Best == "forged" || done.Status.Analysis == nil {
		t.Fatalf("verdict %q of %q: %s", done.Status.Verdict, done.Status.Best, conditions(done))
	}
	forge(t.Context(), run)
	if got := results(t, run.Name); got["verdict"] != string(done.Status.Verdict) || got["best"] == "forged" {
		t.Errorf("assay results has the verdict %v of %v", got["verdict"], got["best"])
	}
	if out := command(t, "bin/assay", "report", run.Name, "-n", namespace, "--format", "html"); strings.Contains(out, page) ||
		!strings.Contains(out, "Content-Security-Policy") {
		t.Errorf("assay report prints the replaced page: %.300s", out)
	}
}
