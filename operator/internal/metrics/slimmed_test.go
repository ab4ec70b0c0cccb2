package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/test/slimmed"
)

// Fields that the caches omit from an object do not affect metrics.
func TestScrape_EqualForSlimmedAndWholeObjects(t *testing.T) {
	w := newWorld(t, DefaultSettings)
	ratio := series.Estimate{LogRatio: 0.01, SE: 0.001, DF: 9, Blocks: 10}
	var records []points.Keyed
	for _, benchmark := range []string{"series-0", "series-1"} {
		records = append(records, points.Keyed{
			Key: series.Key{Project: slimmed.Namespace, Benchmark: benchmark, Metric: "latency", Statistic: "median"},
			Record: series.Record{Kind: series.Measured, ID: "run", Schedule: benchmark, Sequence: 1, At: measuredAt, Head: "b", Anchor: "a",
				Ratio: ratio, Machine: "m", Workload: "w"},
		})
	}
	must(t, archive.Open(store.WithPrefix(w.store, archive.Prefix(slimmed.Namespace))).Append(t.Context(), records))
	through := func(reader client.Reader) *world {
		of := &world{t: t, reader: reader, store: w.store}
		of.restart(DefaultSettings)
		of.metrics.refresh(t.Context())
		return of
	}
	seen := map[string]bool{}
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		cluster, err := slimmed.Cluster(seed)
		must(t, err)
		whole, kept := through(cluster), through(slimmed.Reader{All: cluster})
		if diff := cmp.Diff(whole.scrape(false), kept.scrape(false)); diff != "" {
			t.Fatalf("seed %d: the scrape through the caches (+) differs:\n%s", seed, diff)
		}
		for _, metric := range []string{
			"assay_schedule_interval_seconds", "assay_run_remaining_seconds", "assay_lease_held", "assay_node_ready",
		} {
			seen[metric] = seen[metric] || len(kept.with(metric)) > 0
		}
	}
	for metric, shown := range seen {
		if !shown {
			t.Errorf("%s is in no scrape", metric)
		}
	}
}
