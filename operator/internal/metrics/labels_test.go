package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
)

// An analysis is untrusted, and a scrape with a duplicate series fails as a whole.
func TestLabels_LengthIsLimited(t *testing.T) {
	long := strings.Repeat("é", 5<<20)
	b := newBuilder("team", "scan", 100)
	for _, phase := range []string{long, long + "x", "x" + long + "x", long + "y" + long, long} {
		b.row([]part{{"assay_phase_seconds", ptr.To(0.5)}}, "point", "arm", phase)
	}
	if len(b.results) != 4 {
		t.Errorf("%d series, want one for each of the four texts", len(b.results))
	}
	for _, sample := range b.results {
		for _, label := range sample.labels {
			if value := label.GetValue(); len(value) > mostLabel+len("…") || strings.ToValidUTF8(value, "?") != value {
				t.Errorf("label %s has %d bytes: %q", label.GetName(), len(value), value[:10])
			}
		}
	}
	if short("point") != "point" {
		t.Errorf("a short text is %q", short("point"))
	}
}

// onlyThese collects the metrics that a function sends.
type onlyThese func(chan<- prometheus.Metric)

func (onlyThese) Describe(chan<- *prometheus.Desc)       {}
func (c onlyThese) Collect(out chan<- prometheus.Metric) { c(out) }

func TestScrape_ArbitraryUsageStaysWithinLimits(t *testing.T) {
	long := strings.Repeat("n", 10<<20)
	reasons, nodes, cluster := map[analysis.Reason]int{}, []analysis.NodeUsage{}, map[string]bool{"a": true, long: true, short(long): true}
	for i := range 20_000 {
		cluster[fmt.Sprint("node", i)] = i < maxNodes
		reasons[analysis.Reason(fmt.Sprint("reason", i))] = 1
		nodes = append(nodes, analysis.NodeUsage{Node: fmt.Sprint("node", i)})
	}
	value := ptr.To(0.5)
	for name, usage := range map[string]analysis.Usage{
		"reasons that differ in their middle": {Excluded: map[analysis.Reason]int{
			analysis.Reason(long + "x" + long): 1, analysis.Reason(long + "y" + long): 2}},
		"any number of reasons":             {Excluded: reasons},
		"any number of nodes":               {Nodes: nodes},
		"a node with a name of 10 MB":       {Nodes: []analysis.NodeUsage{{Node: long}}},
		"nodes that differ in their middle": {Nodes: []analysis.NodeUsage{{Node: long + "x" + long}, {Node: long + "y" + long}}},
		"a repeated kind of noise": {Nodes: []analysis.NodeUsage{{Node: "a", Noise: []analysis.NodeNoise{
			{Kind: noise.Steal, Newest: value}, {Kind: noise.Steal, Newest: value}}}}},
		"an unknown kind of noise": {Nodes: []analysis.NodeUsage{{Node: "a", Noise: []analysis.NodeNoise{{Kind: noise.Kind(long)}}}}},
	} {
		found := find(&assayv1alpha1.BenchmarkRun{}, &experiment.Experiment{}, &analysis.Analysis{Usage: usage}, 100)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(onlyThese(func(out chan<- prometheus.Metric) {
			s := newScrape(out)
			for _, sample := range found.about {
				s.send(sample)
			}
			collectNoise([]known{{found, nil}}, cluster, began, s)
		}))
		families, err := registry.Gather()
		if err != nil {
			t.Errorf("%s: %.200v", name, err)
		}
		series, longest := 0, 0
		for _, family := range families {
			series += len(family.Metric)
			for _, metric := range family.Metric {
				for _, label := range metric.Label {
					longest = max(longest, len(label.GetValue()))
				}
			}
		}
		if series > 3*maxNodes || longest > mostLabel+len("…") {
			t.Errorf("%s: %d series, and a label of %d bytes", name, series, longest)
		}
	}
}
