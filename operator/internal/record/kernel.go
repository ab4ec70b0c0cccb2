package record

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
)

// Kernel has the growth of the kernel's event counters over a trial, and the deaths of its processes. A nil counter could not be read.
type Kernel struct {
	// OOMKills are the processes of the block's own cgroup that the OOM killer killed, and PIDLimitHits the processes and threads that could
	// not start, because the cgroup's limit was reached.
	OOMKills     *int64 `json:"oomKills,omitempty"`
	PIDLimitHits *int64 `json:"pidLimitHits,omitempty"`
	// The next counters decide nothing.
	OOMEvents        *int64 `json:"oomEvents,omitempty"`
	MemoryLimitHits  *int64 `json:"memoryLimitHits,omitempty"`
	MemoryHighEvents *int64 `json:"memoryHighEvents,omitempty"`
	HugetlbLimitHits *int64 `json:"hugetlbLimitHits,omitempty"`
	// MachineOOMKills are the processes of the whole machine that the OOM killer killed.
	MachineOOMKills *int64 `json:"machineOomKills,omitempty"`
	// Deaths are the processes of the trial that the runner reaped and that a signal ended abnormally, except the one with the result and
	// those that the runner killed.
	Deaths []Death `json:"deaths,omitempty"`
	// Unknown has the reason for each counter that fails a trial and could not be read.
	Unknown map[string]string `json:"unknown,omitempty"`
}

// Death is a process that a signal ended.
type Death struct {
	Process    string `json:"process,omitempty"`
	Signal     int    `json:"signal"`
	CoreDumped bool   `json:"coreDumped,omitempty"`
}

// KilledForMemory begins the message of a trial in which the kernel killed a process for lack of memory. The runner uses the same words.
const KilledForMemory = "the kernel killed a process of this trial (out of memory)"

// KernelCause explains why the events of the kernel make the attempt no success; empty without such an event.
func (a *Attempt) KernelCause() string {
	kernel := a.Kernel
	if kernel == nil {
		return ""
	}
	var causes []string
	if ptr.Deref(kernel.OOMKills, 0) > 0 || a.EndedExecution && ptr.Deref(kernel.MachineOOMKills, 0) > 0 {
		causes = append(causes, KilledForMemory)
	}
	if ptr.Deref(kernel.PIDLimitHits, 0) > 0 {
		causes = append(causes, "a process of this trial could not start another process or thread, because its cgroup's limit (pids.max) "+
			"was reached")
	}
	if len(kernel.Deaths) > 0 {
		death := kernel.Deaths[0]
		causes = append(causes, fmt.Sprintf("a process of this trial (%q) was terminated by signal %d", death.Process, death.Signal))
	}
	return strings.Join(causes, "; ")
}

// UnknownOOMKill reports whether the kernel killed a process for lack of memory during the trial that may have belonged to it: the
// cgroup's counter could not be read, and the machine's grew.
func (a *Attempt) UnknownOOMKill() bool {
	return a.Kernel != nil && a.Kernel.OOMKills == nil && ptr.Deref(a.Kernel.MachineOOMKills, 0) > 0
}

// applyKernel makes an attempt with an event of the kernel a failed one. The runner does so itself; a ledger of another writer may not.
func (a *Attempt) applyKernel() {
	cause := a.KernelCause()
	if cause == "" || a.Outcome == Failed || a.Outcome == NotStarted {
		return
	}
	how := cmp.Or(a.Message, fmt.Sprintf("its recorded outcome %s does not count", a.Outcome))
	a.Outcome, a.Result, a.Message = Failed, nil, cause+": "+how
}
