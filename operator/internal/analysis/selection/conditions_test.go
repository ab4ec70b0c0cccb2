package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestConditions_CountsOnlyThoseOfSingleTrials(t *testing.T) {
	one := record.RoleSeen{Name: "server", CPUs: "2"}
	shared := record.RoleSeen{Name: "client", Shared: true}
	attempts := []*record.Attempt{
		{Isolation: record.Isolation{Level: "ExclusiveCPUs", CPUsAllowed: "1", CPUQuota: ptr.To(1.5)}, Roles: []record.RoleSeen{one, shared}},
		{Isolation: record.Isolation{Level: "ExclusiveCPUs", CPUsAllowed: "2"}, Environment: record.Environment{Soft: map[string]any{"roleCpus": 2.0}}},
		{Isolation: record.Isolation{Level: "ExclusiveCPUs", CPUsAllowed: "2"}},
	}
	want := map[string]map[string]int{
		"isolation.cpusAllowed":     {`"1"`: 1, `"2"`: 2},
		"isolation.level":           {`"ExclusiveCPUs"`: 3},
		"roles[].cpus":              {`"server=2, client=any shared"`: 1, "absent": 2},
		"environment.soft.roleCpus": {"2": 1, "absent": 2},
	}
	if diff := cmp.Diff(want, Conditions(attempts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMeasuredApart_NamesTheFirstConditionOfABlock(t *testing.T) {
	leased := func(token int64) *record.Attempt {
		return &record.Attempt{Slot: int(token), Lease: &record.Lease{Node: "a", Token: token}}
	}
	for name, c := range map[string]struct {
		a, b *record.Attempt
		want string
	}{
		"the same lease":             {leased(1), leased(1), ""},
		"another lease":              {leased(1), leased(2), "lease is token 1 of node a in slot 1 and token 2 of node a in slot 2"},
		"a lease and none":           {leased(1), &record.Attempt{}, "lease is token 1 of node a in slot 1 and absent in slot 0"},
		"a condition of each trial":  {&record.Attempt{Isolation: record.Isolation{Level: "x"}}, &record.Attempt{}, ""},
		"an unknown hard key":        {&record.Attempt{Environment: record.Environment{Hard: map[string]any{"moon": "full"}}}, &record.Attempt{}, `environment.hard is "moon=\"full\"" in slot 0 and absent in slot 0`},
		"a hard key that is a list":  {&record.Attempt{Environment: record.Environment{Hard: map[string]any{"cpuModel": []any{"x"}}}}, &record.Attempt{}, `environment.hard.cpuModel is "[]interface {}{\"x\"}" in slot 0 and absent in slot 0`},
		"a soft key that is empty":   {&record.Attempt{Environment: record.Environment{Soft: map[string]any{"bootId": ""}}}, &record.Attempt{}, ""},
		"another CPU quota":          {&record.Attempt{Isolation: record.Isolation{CPUQuota: ptr.To(1.5)}}, &record.Attempt{}, "isolation.cpuQuota is 1.5 in slot 0 and absent in slot 0"},
		"another limit of the bytes": {&record.Attempt{Isolation: record.Isolation{MemoryLimitBytes: ptr.To(int64(9))}}, &record.Attempt{}, "isolation.memoryLimitBytes is 9 in slot 0 and absent in slot 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := measuredApart(c.a, c.b); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestMadeOf_NamesTheSourceOfTheFigure(t *testing.T) {
	value := record.Metric{Value: ptr.To(1.0)}
	two := record.Metric{Samples: []float64{1, 2}}
	bars := record.Metric{Histogram: &record.Histogram{Count: 2}}
	for name, c := range map[string]struct {
		metric  record.Metric
		from, n string
		counted bool
		want    string
	}{
		"one value":                             {value, "", "", false, "one value"},
		"one value in place of several samples": {value, "n", "2", false, "one value"},
		"one value in place of one sample":      {value, "n", "1", false, AllSamples},
		"one value, counted":                    {value, "n", "2", true, "one value"},
		"samples without a parameter":           {two, "", "", false, "samples"},
		"a histogram without a parameter":       {bars, "", "", false, "samples in a histogram"},
		"as many samples as the parameter":      {two, "n", "2", false, AllSamples},
		"as many values in a histogram":         {bars, "n", "2", false, AllSamples + " in a histogram"},
		"fewer samples":                         {two, "n", "3", false, "2 samples of 3"},
		"fewer values in a histogram":           {bars, "n", "3", false, "2 samples of 3 in a histogram"},
		"a parameter that is not a number":      {two, "n", "many", false, "samples of no number"},
		"samples, counted":                      {two, "n", "2", true, "2 samples"},
	} {
		t.Run(name, func(t *testing.T) {
			attempt := &record.Attempt{
				Parameters: map[string]string{"n": c.n}, Result: &record.Result{Metrics: map[string]*record.Metric{"latency": &c.metric}},
			}
			attempts := []*record.Attempt{attempt, attempt, {Result: &record.Result{}}}
			got := MadeOf(attempts, &experiment.Metric{Name: "latency", SamplesFrom: c.from}, c.counted)
			if diff := cmp.Diff(map[string]int{c.want: 2}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlocksApart_NamesConditionsThatDifferBetweenBlocks(t *testing.T) {
	of := func(block, kernel, boot string) *record.Attempt {
		return &record.Attempt{Block: block, Environment: record.Environment{Soft: map[string]any{"kernelVersion": kernel, "bootId": boot}}}
	}
	attempts := []*record.Attempt{of("b0", "6.1", "a"), of("b0", "6.9", "a"), of("b1", "6.1", "b"), of("b2", "6.2", "c")}
	want := []string{`environment.soft.kernelVersion is "6.1" in 2 blocks and "6.2" in 1 block`}
	if diff := cmp.Diff(want, BlocksApart(attempts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := BlocksApart(attempts[:3]); got != nil {
		t.Errorf("blocks under the same conditions differ: %q", got)
	}
}
