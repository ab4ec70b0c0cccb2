package selection

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/record"
)

func TestContradictsArms_NamesTheFirstContradiction(t *testing.T) {
	known := []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}}
	for name, c := range map[string]struct {
		plan []record.Arm
		want string
	}{
		"the same":      {known, ""},
		"fewer":         {known[1:], ""},
		"an unknown":    {[]record.Arm{{Name: "old", Baseline: true}, {Name: "newer"}}, `arms[1] is "newer" and the experiment has old, new`},
		"a null arm":    {[]record.Arm{{Name: "new", Null: true}}, `arms[0], "new", has baseline false and null true`},
		"two baselines": {[]record.Arm{{Name: "old", Baseline: true}, {Name: "new", Baseline: true}}, `arms[1], "new", has baseline true`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contradictsArms(known, c.plan); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
