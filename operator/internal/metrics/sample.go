package metrics

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

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

// once knows the series that were there: a scrape in which one is there twice fails as a whole, for everybody, and what tenants wrote into
// their ledgers names most of them.
type once struct {
	seed maphash.Seed
	// seen are the metrics with the hash of their labels, which nobody who does not know the seed can make collide.
	seen map[sampleKey]struct{}
}

type sampleKey struct {
	desc   *prometheus.Desc
	labels uint64
}

func newOnce() once { return once{maphash.MakeSeed(), map[sampleKey]struct{}{}} }

// first reports whether the series was not there before.
func (o once) first(one *sample) bool {
	var hash maphash.Hash
	hash.SetSeed(o.seed)
	for _, label := range one.labels {
		_, _ = hash.WriteString(label.GetValue())
		_ = hash.WriteByte(0xff) // Which is in no text.
	}
	key := sampleKey{one.desc, hash.Sum64()}
	_, there := o.seen[key]
	o.seen[key] = struct{}{}
	return !there
}

// scrape is the only way out of the collector for a gauge, which lets each series through once.
type scrape struct {
	out  chan<- prometheus.Metric
	once once
}

func newScrape(out chan<- prometheus.Metric) *scrape { return &scrape{out, newOnce()} }

func (s *scrape) send(one *sample) {
	if s.once.first(one) {
		s.out <- one
	}
}

// gauge sends a sample with labels of its own.
func (s *scrape) gauge(name string, value float64, values ...string) {
	s.send(gauge(name, value, values...))
}

// failed fails the scrape as a whole and says why: half of it would look like runs that are gone.
func (s *scrape) failed(name string, err error) {
	s.out <- prometheus.NewInvalidMetric(description(name), err)
}

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
		values[i] = short(values[i])
		out[i] = &dto.LabelPair{Name: &names[i], Value: &values[i]}
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// mostLabel bounds the bytes of a label's value: an analysis may hold names of megabytes, and every scrape would.
const mostLabel = 256

// short is the beginning and the end of a text that is longer than a label, with what tells it from others between them, and any text as
// Prometheus takes it.
func short(text string) string {
	const end = 48
	if len(text) > mostLabel {
		digest := sha256.Sum256([]byte(text))
		middle := fmt.Sprintf("…%x…", digest[:8])
		text = text[:mostLabel-len(middle)-end] + middle + text[len(text)-end:]
	}
	return strings.ToValidUTF8(text, "")
}

func truth(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
