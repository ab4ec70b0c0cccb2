package selection

import "testing"

func TestReason_EveryRejectionHasOne(t *testing.T) {
	for _, kind := range []Rejection{foreign, altered, unreadable, staleLease, superseded, Failed, notStarted, Unusable, environment, Noisy} {
		if kind.Reason() == "" {
			t.Errorf("rejection %q has no word", kind)
		}
	}
}
