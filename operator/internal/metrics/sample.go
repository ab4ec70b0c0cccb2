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

// descriptions contains the descriptions of all gauges that are created for each scrape.
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

// once detects duplicate series. A duplicate fails the whole scrape, and most label values come from untrusted ledgers.
type once struct {
	seed maphash.Seed
	// seen contains metrics with the hash of their labels. The seed is secret, so that collisions cannot be constructed.
	seen map[sampleKey]struct{}
}

type sampleKey struct {
	desc   *prometheus.Desc
	labels uint64
}

func newOnce() once { return once{maphash.MakeSeed(), map[sampleKey]struct{}{}} }

// first reports whether the series is new.
func (o once) first(one *sample) bool {
	var hash maphash.Hash
	hash.SetSeed(o.seed)
	for _, label := range one.labels {
		_, _ = hash.WriteString(label.GetValue())
		_ = hash.WriteByte(0xff) // A byte that occurs in no UTF-8 text.
	}
	key := sampleKey{one.desc, hash.Sum64()}
	_, there := o.seen[key]
	o.seen[key] = struct{}{}
	return !there
}

// scrape sends gauges, and drops duplicates.
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

// gauge sends a sample with separate labels.
func (s *scrape) gauge(name string, value float64, values ...string) {
	s.send(gauge(name, value, values...))
}

// failed fails the whole scrape with the reason, because a partial scrape would look like deleted runs.
func (s *scrape) failed(name string, err error) {
	s.out <- prometheus.NewInvalidMetric(description(name), err)
}

// sample is a gauge's value. Samples with equal labels share them, because labels take most of the memory.
type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}

// gauge creates a sample with separate labels, given in the order of the catalog.
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

// labels returns the labels of a metric with their values, sorted by name as a scrape requires.
func labels(name string, values ...string) []*dto.LabelPair {
	names := catalog.Find(name).Labels
	if len(names) != len(values) {
		panic("gauge " + name + " has a different number of labels")
	}
	out := make([]*dto.LabelPair, len(names))
	for i := range names {
		values[i] = short(values[i])
		out[i] = &dto.LabelPair{Name: &names[i], Value: &values[i]}
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// mostLabel bounds the bytes of a label value, because an analysis may contain names of megabytes, which every scrape would repeat.
const mostLabel = 256

// short replaces the middle of a text that exceeds the limit by a hash, and invalid UTF-8, which Prometheus rejects.
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
