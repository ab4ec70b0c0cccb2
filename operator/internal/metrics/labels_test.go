package metrics

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

// A run's analysis is written by whoever measures, and a scrape with one series twice fails as a whole.
func TestALabelIsNeverLongerThanItsBound(t *testing.T) {
	long := strings.Repeat("é", 5<<20)
	b := &builder{namespace: "team", run: "scan", limit: 100, seen: map[string]bool{}, texts: map[string]string{}, findings: &findings{}}
	for _, phase := range []string{long, long + "x", "x" + long + "x", long + "y" + long} {
		b.row([]part{{"assay_phase_seconds", ptr.To(0.5)}}, "point", "arm", phase)
	}
	if len(b.results) != 3 {
		t.Errorf("%d series, want those of the three texts that differ at their beginning or end", len(b.results))
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
