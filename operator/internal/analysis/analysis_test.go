package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnalysis_Fingerprint(t *testing.T) {
	a := &Analysis{Environment: map[string]any{"cpuModel": "AMD EPYC", "smt": false, "onlineCpus": 2.0}}
	same := &Analysis{Environment: map[string]any{"onlineCpus": 2.0, "smt": false, "cpuModel": "AMD EPYC"}}
	other := &Analysis{Environment: map[string]any{"onlineCpus": 4.0, "smt": false, "cpuModel": "AMD EPYC"}}
	if len(a.Fingerprint()) != 12 || a.Fingerprint() != same.Fingerprint() || a.Fingerprint() == other.Fingerprint() {
		t.Errorf("%q, %q, %q", a.Fingerprint(), same.Fingerprint(), other.Fingerprint())
	}
	if diff := cmp.Diff("", (&Analysis{}).Fingerprint()); diff != "" {
		t.Errorf("an environment that is not known has a fingerprint: %s", diff)
	}
}
