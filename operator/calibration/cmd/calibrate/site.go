package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/site"
)

// siteSize measures the size of a history's pages per series, with years of nightly points and a change in each.
func siteSize(seed uint64) (calibrate.Figure, error) {
	const count, nights = 20, 365
	var all []*series.Series
	var book change.Book
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	for i := range count {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		key := series.Key{
			Project: "default", Benchmark: fmt.Sprintf("benchmark-%d", i/4), Point: fmt.Sprintf("size=%d", i%4), Metric: "latency",
			Statistic: "median",
		}
		revision := func(night int) string {
			return fmt.Sprintf("%040x", rand.New(rand.NewPCG(seed, uint64(night))).Uint64())
		}
		var records []series.Record
		for night := range nights {
			r := series.Record{
				Kind: series.Measured, ID: fmt.Sprintf("%08x-%04d", random.Uint32(), night), Analysis: 1, Schedule: "nightly",
				Sequence: int64(night + 1), At: start.AddDate(0, 0, night), Head: revision(night), Anchor: revision(0),
				Ratio:   series.Estimate{LogRatio: 0.004 * random.NormFloat64(), SE: 0.003, DF: 9, Blocks: 10},
				Machine: "0123456789abcdef", Workload: "fedcba9876543210", Ledger: fmt.Sprintf("s3://assay/runs/default/nightly-%d", night+1),
			}
			if night > 0 {
				step := r.Ratio
				step.LogRatio = 0.004 * random.NormFloat64()
				r.Predecessor, r.Step = revision(night-1), &step
			}
			records = append(records, r)
		}
		s, err := series.Of(key, records)
		if err != nil {
			return calibrate.Figure{}, err
		}
		all = append(all, s)
		book.Changes = append(book.Changes, change.Change{
			ID: fmt.Sprintf("%012x", i), Project: key.Project, From: nights / 2, First: nights / 2, To: nights / 2, State: change.Confirmed,
			Effects: []change.Effect{{Series: key.ID(), LogRatio: 0.02, SE: 0.003, Worse: true}},
			History: []change.Event{{At: start.AddDate(0, 0, nights/2), Who: "nightly", Why: "it moved", To: change.Confirmed}},
		})
	}
	reports := map[string]string{}
	for night := range nights {
		at := fmt.Sprintf("s3://assay/runs/default/nightly-%d", night+1)
		reports[at] = "https://bench.example.org/ledgers/" + at[len("s3://assay/"):] + "/analysis/0000/report.html"
	}
	files, err := site.Pages(all, book, site.Options{
		Title: "Benchmarks", Reports: reports, Commit: "https://git.example.org/commit/" + points.Placeholder,
	})
	if err != nil {
		return calibrate.Figure{}, err
	}
	total, low, high := 0, math.Inf(1), 0.0
	for _, f := range files {
		total += len(f.Content)
		if strings.HasPrefix(f.Name, site.SeriesPrefix) {
			low, high = min(low, float64(len(f.Content))/1024), max(high, float64(len(f.Content))/1024)
		}
	}
	return calibrate.Figure{
		Figure: "history.site_kib_per_series", Value: float64(total) / 1024 / count, Unit: "KiB", Low: low, High: high,
		Samples: count, Note: fmt.Sprintf("all pages over their series, of %d points each; low and high are of a series' own page", nights),
	}, nil
}
