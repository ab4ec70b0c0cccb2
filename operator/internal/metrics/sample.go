package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"assay.dev/assay/operator/internal/metrics/catalog"
)

// descriptions are those of all gauges that are made anew for a scrape.
var descriptions = func() map[string]*prometheus.Desc {
	out := map[string]*prometheus.Desc{}
	for _, group := range catalog.Groups {
		for _, metric := range group.Metrics {
			if metric.Type == catalog.Gauge {
				out[metric.Name] = prometheus.NewDesc(metric.Name, metric.Help, metric.Labels, nil)
			}
		}
	}
	return out
}()

// sample is a gauge's value. Samples of the same labels share them: results have many, and most of a series is its labels.
type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc is part of prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write is part of prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}

// gauge is a sample with labels of its own, given in the order of the catalog.
func gauge(name string, value float64, values ...string) *sample {
	return &sample{description(name), labels(name, values...), value}
}

func description(name string) *prometheus.Desc {
	desc := descriptions[name]
	if desc == nil {
		panic("gauge " + name + " is not in the catalog")
	}
	return desc
}

// labels are those of a metric with their values, by name as a scrape wants them.
func labels(name string, values ...string) []*dto.LabelPair {
	names := catalog.Find(name).Labels
	if len(names) != len(values) {
		panic("gauge " + name + " has another number of labels")
	}
	out := make([]*dto.LabelPair, len(names))
	for i := range names {
		out[i] = &dto.LabelPair{Name: &names[i], Value: &values[i]}
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

func truth(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
