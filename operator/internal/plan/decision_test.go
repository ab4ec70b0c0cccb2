package plan

import "testing"

func TestBegins_OnlyActionsThatStartARun(t *testing.T) {
	for name, test := range map[string]struct {
		action Action
		want   bool
	}{
		"no action":             {nil, false},
		"a lease is acquired":   {AcquireLeases{}, true},
		"the run is terminated": {Terminate{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Begins(test.action); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
