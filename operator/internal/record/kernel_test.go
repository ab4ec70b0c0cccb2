package record

import (
	"encoding/json"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/records"
)

// kernelAttempt returns the bytes of an attempt that succeeded, with further fields.
func kernelAttempt(t *testing.T, fields map[string]any) []byte {
	t.Helper()
	document := map[string]any{}
	if err := json.Unmarshal(records.All(t, "valid")["attempt-succeeded.json"], &document); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		document[name] = value
	}
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseAttempt_KernelEventIsNoSuccess(t *testing.T) {
	type kernel = map[string]any
	timedOut := map[string]any{"outcome": "TimedOut", "message": "late"}
	failed := map[string]any{"outcome": "Failed", "message": "own words"}
	notStarted := map[string]any{"outcome": "NotStarted", "message": "no fork"}
	undecided := kernel{"oomEvents": 3, "memoryLimitHits": 9, "memoryHighEvents": 9, "hugetlbLimitHits": 9}
	segfault := kernel{"deaths": []kernel{{"process": "worker", "signal": 11}}}
	for name, tc := range map[string]struct {
		kernel  kernel
		fields  map[string]any
		outcome Outcome
		says    string
	}{
		"no event":                           {kernel{"oomKills": 0, "pidLimitHits": 0}, nil, Succeeded, ""},
		"unknown counters":                   {kernel{"unknown": kernel{"oomKills": "absent"}}, nil, Succeeded, ""},
		"counters that decide nothing":       {undecided, nil, Succeeded, ""},
		"another container of the machine":   {kernel{"machineOomKills": 2}, nil, Succeeded, ""},
		"an OOM kill":                        {kernel{"oomKills": 1}, nil, Failed, KilledForMemory},
		"the limit of processes":             {kernel{"pidLimitHits": 4}, nil, Failed, "pids.max"},
		"a death":                            {segfault, nil, Failed, `("worker") was terminated by signal 11`},
		"a death without a name":             {kernel{"deaths": []kernel{{"signal": 9}}}, nil, Failed, "signal 9"},
		"a timeout, which is no lower bound": {kernel{"oomKills": 1}, timedOut, Failed, KilledForMemory + ": late"},
		"a failure keeps its message":        {kernel{"oomKills": 1}, failed, Failed, "own words"},
		"a trial that did not start":         {kernel{"pidLimitHits": 1}, notStarted, NotStarted, "no fork"},
		"the execution ended, and the machine killed": {
			kernel{"machineOomKills": 1}, map[string]any{"endedExecution": true}, Failed, KilledForMemory,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]any{"kernel": tc.kernel}
			for field, value := range tc.fields {
				fields[field] = value
			}
			attempt, err := NewSharing().ParseAttempt(kernelAttempt(t, fields))
			if err != nil {
				t.Fatal(err)
			}
			if attempt.Outcome != tc.outcome || !strings.Contains(attempt.Message, tc.says) {
				t.Errorf("outcome %s, message %q; want %s that says %q", attempt.Outcome, attempt.Message, tc.outcome, tc.says)
			}
			if tc.outcome == Failed && tc.fields == nil && attempt.Result != nil {
				t.Error("its result is kept")
			}
		})
	}
}

func TestUnknownOOMKill_NeedsKillOfMachineAndUnknownCounter(t *testing.T) {
	count := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		kernel *Kernel
		want   bool
	}{
		"nothing was recorded":              {nil, false},
		"both are unknown":                  {&Kernel{}, false},
		"the machine killed none":           {&Kernel{MachineOOMKills: count(0)}, false},
		"the machine killed one":            {&Kernel{MachineOOMKills: count(1)}, true},
		"the machine killed one of another": {&Kernel{MachineOOMKills: count(1), OOMKills: count(0)}, false},
	} {
		if got := (&Attempt{Kernel: tc.kernel}).UnknownOOMKill(); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestParseAttempt_EqualKernelsAreShared(t *testing.T) {
	sharing := NewSharing()
	var read [2]*Attempt
	for i := range read {
		var err error
		if read[i], err = sharing.ParseAttempt(kernelAttempt(t, map[string]any{"kernel": map[string]any{"oomKills": 0}})); err != nil {
			t.Fatal(err)
		}
	}
	if read[0].Kernel == nil || read[0].Kernel != read[1].Kernel {
		t.Errorf("got %p and %p", read[0].Kernel, read[1].Kernel)
	}
}
