package experiment

import "slices"

// Statistic is the function that makes one number of the samples of one trial or, for percentiles, of all trials of an arm.
type Statistic string

// Statistics. Their behaviour is in the table statistics; package trial computes them.
const (
	StatisticValue  Statistic = "value"
	StatisticMean   Statistic = "mean"
	StatisticMedian Statistic = "median"
	StatisticMin    Statistic = "min"
	StatisticMax    Statistic = "max"
	StatisticP50    Statistic = "p50"
	StatisticP90    Statistic = "p90"
	StatisticP95    Statistic = "p95"
	StatisticP99    Statistic = "p99"
	StatisticP999   Statistic = "p99.9"
	StatisticP9999  Statistic = "p99.99"
)

// statistics lists all statistics, in the order of the API reference. The enumeration of the API, its documentation, validation and the
// number of samples that a percentile needs derive from it.
var statistics = []struct {
	name Statistic
	// percentile is the share of the merged samples that are not above it; 0 for a statistic of each trial's own samples.
	percentile float64
	// doc follows the name in the API reference.
	doc string
}{
	{StatisticValue, 0, "takes a metric that is one number per trial as it is."},
	{StatisticMean, 0, "is the mean of a trial's samples."},
	{StatisticMedian, 0, "is the median of a trial's samples."},
	{StatisticMin, 0, "is the smallest sample of a trial."},
	{StatisticMax, 0, "is the largest sample of a trial."},
	{StatisticP50, 0.50, "is the median of the samples of all trials."},
	{StatisticP90, 0.90, "is the 90th percentile of the samples of all trials."},
	{StatisticP95, 0.95, "is the 95th percentile of the samples of all trials."},
	{StatisticP99, 0.99, "is the 99th percentile of the samples of all trials."},
	{StatisticP999, 0.999, "is the 99.9th percentile of the samples of all trials."},
	{StatisticP9999, 0.9999, "is the 99.99th percentile of the samples of all trials."},
}

// Statistics lists all statistics.
func Statistics() []Statistic {
	out := make([]Statistic, len(statistics))
	for i := range statistics {
		out[i] = statistics[i].name
	}
	return out
}

// Doc returns the sentence that follows the statistic's name in the API reference.
func (s Statistic) Doc() string {
	i := slices.Index(Statistics(), s)
	return statistics[i].doc
}

// Percentiles are the statistics of merged samples, as shares.
var Percentiles = func() map[Statistic]float64 {
	out := map[Statistic]float64{}
	for _, of := range statistics {
		if of.percentile > 0 {
			out[of.name] = of.percentile
		}
	}
	return out
}()
