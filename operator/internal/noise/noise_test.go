package noise

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
)

const mebibyte = 1 << 20

// attempt is a trial of one second on a quiet machine.
func attempt(edit func(*record.Attempt)) *record.Attempt {
	probe := func() record.Noise {
		return record.Noise{SpinSeconds: ptr.To(0.001), CanarySeconds: ptr.To(0.002), CanaryBytes: ptr.To(int64(64 * mebibyte))}
	}
	out := &record.Attempt{
		Outcome: record.Succeeded, Arm: "loop", Point: "batchSize=8",
		Environment: record.Environment{Soft: map[string]any{"bootId": "boot-a", "hostname": "pod-1"}},
		Noise: record.NoiseWindows{
			Before: probe(), After: probe(),
			During: record.Noise{
				WindowSeconds: ptr.To(1.0), StealRatio: ptr.To(0.0), OtherWorkRatio: ptr.To(0.01), OtherWorkUncertainty: ptr.To(0.002),
				ThrottledSeconds: ptr.To(0.0), PressureMemorySeconds: ptr.To(0.0), PressureIOSeconds: ptr.To(0.1),
			},
		},
	}
	if edit != nil {
		edit(out)
	}
	return out
}

// quietRun is enough quiet trials to know how fast the machine is.
func quietRun(more ...*record.Attempt) []*record.Attempt {
	out := more
	for range 8 {
		out = append(out, attempt(nil))
	}
	return out
}

func TestJudge_UsesReadingsAroundTheTrial(t *testing.T) {
	cases := map[string]struct {
		edit    func(*record.Attempt)
		says    []string
		unread  []Kind
		without Kind
	}{
		"a quiet trial passes": {},
		"the hypervisor took its time": {
			edit: func(a *record.Attempt) { a.Noise.During.StealRatio = ptr.To(0.05) },
			says: []string{"steal 5 %, limit 2 %"},
		},
		"one tick of stolen time in a short trial may be rounding": {
			edit: func(a *record.Attempt) {
				a.Noise.During.StealRatio, a.Noise.During.WindowSeconds = ptr.To(0.05), ptr.To(0.2)
				a.Noise.During.PressureIOSeconds = ptr.To(0.02)
			},
		},
		"the same over the longer time that a short trial was seen in is not": {
			edit: func(a *record.Attempt) {
				a.Noise.During.StealRatio, a.Noise.During.WindowSeconds, a.Noise.During.SharesWindowSeconds = ptr.To(0.05), ptr.To(0.2), ptr.To(1.0)
				a.Noise.During.PressureIOSeconds = ptr.To(0.02)
			},
			says: []string{"steal 5 %, limit 2 %"},
		},
		"another process used its CPUs": {
			edit: func(a *record.Attempt) { a.Noise.During.OtherWorkRatio = ptr.To(0.124) },
			says: []string{"otherWork 12.4 %, limit 5 %"},
		},
		"other work is let pass as far as the counter may be wrong": {
			edit: func(a *record.Attempt) {
				a.Noise.During.OtherWorkRatio, a.Noise.During.OtherWorkUncertainty = ptr.To(0.06), ptr.To(0.02)
			},
		},
		"a record without its uncertainty is taken to count in ticks": {
			edit: func(a *record.Attempt) {
				a.Noise.During.OtherWorkRatio, a.Noise.During.OtherWorkUncertainty = ptr.To(0.065), nil
			},
		},
		"its quota stopped it": {
			edit: func(a *record.Attempt) { a.Noise.During.ThrottledSeconds = ptr.To(0.03) },
			says: []string{"throttled 3 %, limit 1 %"},
		},
		"the canary right before it was slow": {
			edit: func(a *record.Attempt) { a.Noise.Before.CanarySeconds = ptr.To(0.0028) },
			says: []string{"canary 1.40x its best, limit 1.35x"},
		},
		"the canary right after it was slow, and that is the worse one": {
			edit: func(a *record.Attempt) {
				a.Noise.Before.CanarySeconds, a.Noise.After.CanarySeconds = ptr.To(0.0021), ptr.To(0.003)
			},
			says: []string{"canary 1.50x its best, limit 1.35x"},
		},
		"a canary over other memory is compared with its own kind only": {
			edit: func(a *record.Attempt) {
				a.Noise.Before.CanarySeconds, a.Noise.Before.CanaryBytes = ptr.To(0.009), ptr.To(int64(256*mebibyte))
			},
		},
		"arithmetic was slow: a busy sibling, or a lower clock": {
			edit: func(a *record.Attempt) { a.Noise.After.SpinSeconds = ptr.To(0.0015) },
			says: []string{"spin 1.50x its best, limit 1.15x"},
		},
		"waiting for a disk beyond the time of the reads in the trial": {
			edit: func(a *record.Attempt) { a.Noise.During.PressureIOSeconds = ptr.To(0.5) },
			says: []string{"pressureIo 40 % above that of quiet trials of its arm and point, limit 20 %"},
		},
		"waiting for memory": {
			edit: func(a *record.Attempt) { a.Noise.During.PressureMemorySeconds = ptr.To(0.06) },
			says: []string{"pressureMemory 6 % above"},
		},
		"several at once are all named": {
			edit: func(a *record.Attempt) {
				a.Noise.During.StealRatio, a.Noise.After.SpinSeconds = ptr.To(0.05), ptr.To(0.0015)
			},
			says: []string{"steal", "spin"},
		},
		"a limit that is off lets everything pass": {
			edit:    func(a *record.Attempt) { a.Noise.During.StealRatio = ptr.To(0.5) },
			without: Steal,
		},
		"absent is not zero: a missing reading is not judged": {
			edit: func(a *record.Attempt) {
				a.Noise = record.NoiseWindows{During: record.Noise{StealRatio: ptr.To(0.05)}}
			},
			says:   []string{"steal 5 %"},
			unread: []Kind{OtherWork, Throttled, Canary, Spin, PressureMemory, PressureIO},
		},
		"a limit that is off is not missed": {
			edit:    func(a *record.Attempt) { a.Noise.During.StealRatio = nil },
			without: Steal,
		},
		"on another node its own best counts, and of that nothing is known yet": {
			edit: func(a *record.Attempt) {
				a.Environment.Soft = map[string]any{"bootId": "boot-b"}
				a.Noise.Before.CanarySeconds, a.Noise.Before.SpinSeconds = ptr.To(0.02), ptr.To(0.01)
			},
			unread: []Kind{Canary, Spin, PressureMemory, PressureIO},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			subject := attempt(tc.edit)
			limits, _ := Read(nil, false)
			delete(limits, tc.without)
			violations, unread := NewReference(quietRun(subject)).Judge(limits, subject)
			if len(violations) != len(tc.says) {
				t.Fatalf("violations %v, want %v", violations, tc.says)
			}
			for i, words := range tc.says {
				if !strings.HasPrefix(violations[i].Message, words) {
					t.Errorf("violation %q, want %q", violations[i].Message, words)
				}
			}
			if diff := cmp.Diff(tc.unread, unread); diff != "" {
				t.Errorf("unread (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBest_IgnoresLuckyAndDisturbedReadings(t *testing.T) {
	readings := func(seconds ...float64) []*record.Attempt {
		var out []*record.Attempt
		for _, s := range seconds {
			out = append(out, attempt(func(a *record.Attempt) {
				a.Noise.Before.CanarySeconds, a.Noise.After.CanarySeconds = ptr.To(s), ptr.To(s)
			}))
		}
		return out
	}
	cases := map[string]struct {
		seen []*record.Attempt
		want float64
		ok   bool
	}{
		"a single lucky reading among many":     {readings(0.001, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 0.002), 0.002, true},
		"a neighbour for two thirds of the run": {readings(0.002, 0.002, 0.005, 0.005, 0.005, 0.005), 0.002, true},
		"too few readings to know":              {readings(0.002), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := NewReference(tc.seen).quiet[place{kind: Canary, node: "boot-a", bytes: 64 * mebibyte}]
			if got != tc.want || ok != tc.ok {
				t.Errorf("got %v %v, want %v %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestNode_SameForAllPodsOfANode(t *testing.T) {
	cases := map[string]struct {
		soft  map[string]any
		lease *record.Lease
		want  string
	}{
		"the boot id comes first":         {map[string]any{"bootId": "b", "hostname": "pod-1"}, &record.Lease{Node: "node-a"}, "b"},
		"else the node of the lease":      {map[string]any{"hostname": "pod-1"}, &record.Lease{Node: "node-a"}, "node-a"},
		"else the host name":              {map[string]any{"hostname": "pod-1"}, nil, "pod-1"},
		"a machine that tells nothing":    {nil, nil, ""},
		"a boot id that is not even text": {map[string]any{"bootId": 7.0, "hostname": "h"}, nil, "h"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Node(&record.Attempt{Environment: record.Environment{Soft: tc.soft}, Lease: tc.lease})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRead_LimitsOfARun(t *testing.T) {
	cases := map[string]struct {
		named     map[string]string
		exclusive bool
		kind      Kind
		want      string
	}{
		"none given":          {nil, false, Canary, "0.35"},
		"given":               {map[string]string{"canary": "7.5%"}, false, Canary, "0.075"},
		"another one given":   {map[string]string{"spin": "7.5%"}, false, Canary, "0.35"},
		"off":                 {map[string]string{"canary": "off"}, false, Canary, "none"},
		"throttling, shared":  {nil, false, Throttled, "0.01"},
		"throttling, own CPU": {nil, true, Throttled, "0"},
		"throttling, own CPU, and told to let some pass": {map[string]string{"throttled": "5%"}, true, Throttled, "0.05"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits, wrong := Read(tc.named, tc.exclusive)
			got := "none"
			if limit, ok := limits[tc.kind]; ok {
				got = fmt.Sprint(limit)
			}
			if got != tc.want || len(wrong) > 0 {
				t.Errorf("got %s, want %s (%v)", got, tc.want, wrong)
			}
		})
	}
}

func TestParseLimit_InvalidTextNamesAllowedValues(t *testing.T) {
	cases := map[string]struct {
		limits map[string]string
		says   map[Kind]string
	}{
		"good ones":                    {map[string]string{"steal": "0%", "canary": "10%", "spin": "off", "pressureIo": "100%"}, map[Kind]string{}},
		"a share above the whole":      {map[string]string{"otherWork": "150%"}, map[Kind]string{OtherWork: "at most 100%"}},
		"a slowdown of nothing":        {map[string]string{"canary": "0%"}, map[Kind]string{Canary: "would exceed it"}},
		"a slowdown beyond all bounds": {map[string]string{"spin": "2000%"}, map[Kind]string{Spin: "write off"}},
		"no number at all": {
			map[string]string{"steal": "NaN%", "otherWork": "Inf%", "canary": "NaN%", "spin": "1e999%"},
			map[Kind]string{Steal: `invalid value "NaN%"`, OtherWork: "allowed are shares", Canary: "allowed are shares", Spin: "allowed are shares"},
		},
		"a number without a unit":         {map[string]string{"steal": "2"}, map[Kind]string{Steal: "allowed are shares such as"}},
		"several are reported one by one": {map[string]string{"steal": "-1%", "throttled": "x%"}, map[Kind]string{Steal: `invalid value "-1%"`, Throttled: `invalid value "x%"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got := Read(tc.limits, false)
			if len(got) != len(tc.says) {
				t.Fatalf("got %v, want %v", got, tc.says)
			}
			for kind, words := range tc.says {
				if got[kind] == nil || !strings.Contains(got[kind].Error(), words) {
					t.Errorf("%s: got %v, want %q", kind, got[kind], words)
				}
			}
		})
	}
}
