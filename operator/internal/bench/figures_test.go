package bench

import (
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestFigures_UnitAndDirectionOfTool(t *testing.T) {
	cases := map[string]struct {
		figures Figures
		name    string
		unit    string
		rises   bool
	}{
		"the usual figure of hyperfine is a time": {Figures{Format: assayv1alpha1.HyperfineOutput}, "time", "s", false},
		"JMH measures the average time by itself": {Figures{Format: assayv1alpha1.JMHOutput}, "time", "s", false},
		"JMH measures a throughput":               {Figures{Format: assayv1alpha1.JMHOutput, HigherIsBetter: true}, "rate", "operations/s", true},
		"JMH's profiler counts bytes":             {Figures{Format: assayv1alpha1.JMHOutput, Metric: "gc.alloc.rate.norm"}, "gcAllocRateNorm", "By", false},
		"BenchmarkDotNet measures a time":         {Figures{Format: assayv1alpha1.BenchmarkDotNetOutput}, "time", "s", false},
		"fio counts operations":                   {Figures{Format: assayv1alpha1.FioOutput}, "rate", "operations/s", true},
		"a latency of fio":                        {Figures{Format: assayv1alpha1.FioOutput, Metric: "clat_ns.mean"}, "clatNsMean", "s", false},
		"a count of latencies of fio has no unit": {Figures{Format: assayv1alpha1.FioOutput, Metric: "clat_ns.N"}, "clatNsN", "1", false},
		"the bandwidth of fio":                    {Figures{Format: assayv1alpha1.FioOutput, Metric: "bw_bytes"}, "bwBytes", "By/s", true},
		"wrk counts requests":                     {Figures{Format: assayv1alpha1.WrkOutput}, "rate", "requests/s", true},
		"a percentile of wrk":                     {Figures{Format: assayv1alpha1.WrkOutput, Metric: "Latency 99%"}, "latency99", "s", false},
		"a share of wrk":                          {Figures{Format: assayv1alpha1.WrkOutput, Metric: "Latency +/- Stdev"}, "latencyStdev", "1", false},
		"sysbench counts events":                  {Figures{Format: assayv1alpha1.SysbenchOutput, Metric: "events per second"}, "eventsPerSecond", "events/s", true},
		"a percentile of sysbench":                {Figures{Format: assayv1alpha1.SysbenchOutput, Metric: "95th percentile"}, "figure95thPercentile", "s", false},
		"divan measures a time":                   {Figures{Format: assayv1alpha1.DivanOutput}, "time", "s", false},
		"Catch2 measures a time":                  {Figures{Format: assayv1alpha1.Catch2Output}, "time", "s", false},
		"iperf3 counts bits":                      {Figures{Format: assayv1alpha1.Iperf3Output, Metric: "sum_received.bits_per_second"}, "sumReceivedBitsPerSecond", "By/s", true},
		"pgbench counts transactions":             {Figures{Format: assayv1alpha1.PgbenchOutput}, "rate", "transactions/s", true},
		"vegeta measures a time":                  {Figures{Format: assayv1alpha1.VegetaOutput}, "time", "s", false},
		"oha counts requests":                     {Figures{Format: assayv1alpha1.OhaOutput}, "rate", "requests/s", true},
		"a percentile of oha":                     {Figures{Format: assayv1alpha1.OhaOutput, Metric: "latencyPercentiles.p99"}, "latencyPercentilesP99", "s", false},
		"a path of a document has no unit":        {Figures{Format: assayv1alpha1.JSONOutput, Metric: "$.p99"}, "p99", "1", false},
		"the mean of a table has no unit":         {Figures{Format: assayv1alpha1.CSVOutput, Metric: "mean"}, "mean", "1", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.figures.check(); err != nil {
				t.Fatal(err)
			}
			metric := tc.figures.metric()
			if metric.Name != tc.name || metric.Unit != tc.unit || (metric.Direction == assayv1alpha1.HigherIsBetter) != tc.rises {
				t.Errorf("got %s in %s, %s; want %s in %s, rises %v", metric.Name, metric.Unit, metric.Direction, tc.name, tc.unit, tc.rises)
			}
		})
	}
}
