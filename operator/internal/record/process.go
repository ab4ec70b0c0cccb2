package record

import (
	"slices"
	"strings"
)

// ProcessPrefix is the prefix of the names of the quantities that the runner reads of every process. Programs and templates cannot define
// metrics with it.
const ProcessPrefix = "process."

// ProcessQuantity is a quantity that the runner measures of every process without its cooperation.
type ProcessQuantity struct {
	// Name follows the prefix. For a role other than the one with the result, the role's name and a dot precede it.
	Name, Unit string
	// OfRoles and OfResult state of which processes it is recorded.
	OfRoles, OfResult bool
	of                func(process) *float64
	// Counted quantities are recorded only by a runner that was asked for them, on machines that have them.
	Counted bool
}

// process holds the recorded readings of a process.
type process struct {
	wall, ready *float64
	used        *Resources
}

// ProcessQuantities lists all quantities in display order.
var ProcessQuantities = []ProcessQuantity{
	// From the launch of the process to its end, by the runner's clock.
	{"wallTime", "s", false, true, func(p process) *float64 { return p.wall }, false},
	// From the launch of the role until it was ready.
	{"readyTime", "s", true, false, func(p process) *float64 { return p.ready }, false},
	// CPU time of the process and its children, in user mode and in the kernel.
	{"cpuTime", "s", true, true, func(p process) *float64 {
		if p.used.UserSeconds == nil || p.used.SystemSeconds == nil {
			return nil // Half of the sum would look like a fast program.
		}
		sum := *p.used.UserSeconds + *p.used.SystemSeconds
		return &sum
	}, false},
	// CPU time in user mode.
	{"userTime", "s", true, true, func(p process) *float64 { return p.used.UserSeconds }, false},
	// CPU time in the kernel.
	{"systemTime", "s", true, true, func(p process) *float64 { return p.used.SystemSeconds }, false},
	// The maximum resident memory.
	{"peakMemory", "By", true, true, func(p process) *float64 { return count(p.used.MaxRSSBytes) }, false},
	// Page faults without a disk.
	{"minorFaults", "faults", true, true, func(p process) *float64 { return count(p.used.MinorFaults) }, false},
	// Page faults that read from a disk.
	{"majorFaults", "faults", true, true, func(p process) *float64 { return count(p.used.MajorFaults) }, false},
	// The number of voluntary context switches, in which the process waited.
	{"voluntaryContextSwitches", "switches", true, true, func(p process) *float64 { return count(p.used.VoluntaryContextSwitches) }, false},
	// The number of involuntary context switches, in which the process was preempted.
	{"involuntaryContextSwitches", "switches", true, true, func(p process) *float64 {
		return count(p.used.InvoluntaryContextSwitches)
	}, false},
	// Counters of the processor in user mode, of the process and all that it started.
	{"instructions", "instructions", false, true, func(p process) *float64 { return count(p.used.Instructions) }, true},
	{"cycles", "cycles", false, true, func(p process) *float64 { return count(p.used.Cycles) }, true},
	{"cacheMisses", "misses", false, true, func(p process) *float64 { return count(p.used.CacheMisses) }, true},
	{"branchMisses", "misses", false, true, func(p process) *float64 { return count(p.used.BranchMisses) }, true},
	// The energy of all processor packages meanwhile, with that of other programs.
	{"packageEnergy", "J", false, true, func(p process) *float64 { return p.used.PackageJoules }, true},
}

// IsCounted reports whether a metric is a counted quantity.
func IsCounted(metric string) bool {
	_, quantity := FindProcessQuantity(metric)
	return quantity != nil && quantity.Counted
}

func count(of *int64) *float64 {
	if of == nil {
		return nil
	}
	value := float64(*of)
	return &value
}

// FindProcessQuantity splits the name of a process metric: process.cpuTime is of the process with the result, and process.server.cpuTime of
// the role called server.
func FindProcessQuantity(metric string) (role string, quantity *ProcessQuantity) {
	name, ok := strings.CutPrefix(metric, ProcessPrefix)
	if !ok {
		return "", nil
	}
	if i := strings.LastIndex(name, "."); i >= 0 {
		role, name = name[:i], name[i+1:]
	}
	for i := range ProcessQuantities {
		q := &ProcessQuantities[i]
		if q.Name == name && (role == "" && q.OfResult || role != "" && q.OfRoles) {
			return role, q
		}
	}
	return "", nil
}

// Metric returns a metric of an attempt, as reported by its program or read from a process by the runner. It returns false if the metric
// was not reported or could not be read, because absent is not zero.
func (a *Attempt) Metric(name string) (Metric, bool) {
	if a.Result != nil {
		if reported, ok := a.Result.Metrics[name]; ok {
			return *reported, true
		}
	}
	role, quantity := FindProcessQuantity(name)
	if quantity == nil || a.Outcome == NotStarted {
		return Metric{}, false
	}
	seen := process{wall: &a.DurationSeconds, used: &a.Resources}
	if role != "" {
		at := slices.IndexFunc(a.Roles, func(r RoleSeen) bool { return r.Name == role && !r.Result })
		if at < 0 || a.Roles[at].Resources == nil {
			return Metric{}, false
		}
		seen = process{ready: a.Roles[at].ReadySeconds, used: a.Roles[at].Resources}
	}
	value := quantity.of(seen)
	return Metric{Unit: quantity.Unit, Value: value}, value != nil
}

// EachRead visits all quantities that the runner read of the attempt's processes, with their metric names. A process that was not started
// has none.
func (a *Attempt) EachRead(visit func(metric, unit string, value float64)) {
	if a.Outcome == NotStarted {
		return
	}
	of := func(role string, seen process) {
		for i := range ProcessQuantities {
			q := &ProcessQuantities[i]
			if role == "" && !q.OfResult || role != "" && !q.OfRoles {
				continue
			}
			if value := q.of(seen); value != nil {
				visit(ProcessPrefix+role+q.Name, q.Unit, *value)
			}
		}
	}
	of("", process{wall: &a.DurationSeconds, used: &a.Resources})
	for i := range a.Roles {
		if role := &a.Roles[i]; !role.Result && role.Resources != nil {
			of(role.Name+".", process{ready: role.ReadySeconds, used: role.Resources})
		}
	}
}

// Reported returns the result that the process reported; empty without one.
func (a *Attempt) Reported() *Result {
	if a.Result == nil {
		return &Result{}
	}
	return a.Result
}
