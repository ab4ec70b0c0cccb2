package trial

import (
	"testing"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestStatistic_EachKindOfMetric(t *testing.T) {
	histogram := &record.Histogram{}
	decoded := Histograms{histogram: {bars: []bar{{1, 2}, {3, 1}, {8, 1}}}}
	samples := record.Metric{Samples: []float64{8, 1, 3, 1}}
	bars := record.Metric{Histogram: histogram}
	value := record.Metric{Value: ptr.To(5.0)}
	cases := map[string]struct {
		metric    record.Metric
		statistic experiment.Statistic
		want      float64
		none      bool
	}{
		"the mean of samples":                          {samples, "mean", 3.25, false},
		"the median of an even number of samples":      {samples, "median", 2, false},
		"the median of an odd number of samples":       {record.Metric{Samples: []float64{9, 1, 4}}, "median", 4, false},
		"the smallest sample":                          {samples, "min", 1, false},
		"the largest sample":                           {samples, "max", 8, false},
		"many samples are not one value":               {samples, "value", 0, true},
		"one sample is one value":                      {record.Metric{Samples: []float64{7}}, "value", 7, false},
		"a single trial has no percentile":             {samples, "p95", 0, true},
		"one value is its own mean":                    {value, "mean", 5, false},
		"one value as it is":                           {value, "value", 5, false},
		"the mean of a histogram":                      {bars, "mean", 3.25, false},
		"the median of a histogram":                    {bars, "median", 1, false},
		"the smallest of a histogram":                  {bars, "min", 1, false},
		"the largest of a histogram":                   {bars, "max", 8, false},
		"a histogram is not one value":                 {bars, "value", 0, true},
		"a metric without samples has no statistic":    {record.Metric{}, "mean", 0, true},
		"a histogram has no percentile of a trial too": {bars, "p99", 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := decoded.Statistic(c.metric, c.statistic)
			if ok == c.none || ok && got != c.want {
				t.Errorf("%v, %v; want %v, %v", got, ok, c.want, !c.none)
			}
		})
	}
}
