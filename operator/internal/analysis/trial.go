package analysis

import (
	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// TrialStatistic is one statistic of one trial.
type TrialStatistic struct {
	Statistic assayv1alpha1.Statistic
	Value     float64
}

// TrialStatistics are all statistics that one trial has of a metric, and how many samples they rest on. Percentiles are not
// among them: they are of all trials of an arm, merged.
func TrialStatistics(metric record.Metric) (statistics []TrialStatistic, samples int64, err error) {
	of := func(statistic assayv1alpha1.Statistic) (float64, bool) {
		return sampleStatistic(metric.Samples, statistic)
	}
	switch {
	case metric.Value != nil:
		return []TrialStatistic{{assayv1alpha1.StatisticValue, *metric.Value}}, 1, nil
	case metric.Histogram != nil:
		bars, err := decodeHistogram(metric.Histogram)
		if err != nil {
			return nil, 0, err
		}
		samples = metric.Histogram.Count
		of = func(statistic assayv1alpha1.Statistic) (float64, bool) { return barStatistic(bars, statistic) }
	default:
		samples = int64(len(metric.Samples))
	}
	for _, statistic := range []assayv1alpha1.Statistic{
		assayv1alpha1.StatisticValue, assayv1alpha1.StatisticMedian, assayv1alpha1.StatisticMean, assayv1alpha1.StatisticMin, assayv1alpha1.StatisticMax,
	} {
		if value, ok := of(statistic); ok {
			statistics = append(statistics, TrialStatistic{statistic, value})
		}
	}
	return statistics, samples, nil
}
