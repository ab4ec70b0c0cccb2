package analysis

import (
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// TrialStatistic is one statistic of one trial.
type TrialStatistic struct {
	Statistic experiment.Statistic
	Value     float64
}

// TrialStatistics are all statistics that one trial has of a metric, and how many samples they rest on. Percentiles are not
// among them: they are of all trials of an arm, merged.
func TrialStatistics(metric record.Metric) (statistics []TrialStatistic, samples int64, err error) {
	of := func(statistic experiment.Statistic) (float64, bool) {
		return sampleStatistic(metric.Samples, statistic)
	}
	switch {
	case metric.Value != nil:
		return []TrialStatistic{{experiment.StatisticValue, *metric.Value}}, 1, nil
	case metric.Histogram != nil:
		bars, err := decodeHistogram(metric.Histogram)
		if err != nil {
			return nil, 0, err
		}
		samples = metric.Histogram.Count
		of = func(statistic experiment.Statistic) (float64, bool) { return barStatistic(bars, statistic) }
	default:
		samples = int64(len(metric.Samples))
	}
	for _, statistic := range []experiment.Statistic{
		experiment.StatisticValue, experiment.StatisticMedian, experiment.StatisticMean, experiment.StatisticMin, experiment.StatisticMax,
	} {
		if value, ok := of(statistic); ok {
			statistics = append(statistics, TrialStatistic{statistic, value})
		}
	}
	return statistics, samples, nil
}
