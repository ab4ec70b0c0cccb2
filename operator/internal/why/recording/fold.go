package recording

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/why"
)

// Symbols names addresses.
type Symbols interface {
	// Function returns the function at an offset of a file, or a name for the file if it has no symbols.
	Function(file string, offset uint64) string
	// Compiled returns the function that a just-in-time compiler of a process placed at an address; empty if unknown.
	Compiled(pid uint32, address uint64) string
	// Kernel returns the function of the kernel at an address; empty if unknown.
	Kernel(address uint64) string
}

// Window is the time of a trial by the wall clock, in nanoseconds since 1970.
type Window struct {
	ID    string
	Start int64
	End   int64
}

// Folded has the costs of a trial.
type Folded struct {
	ID string
	// Wall is the time between the start and the exit of the trial's first process, CPU the CPU time of all its processes, in seconds.
	Wall, CPU float64
	// WallCosts partition Wall: an instant belongs to the threads that run then, in equal parts, or to the wait that ends next.
	WallCosts []why.Cost
	// CPUCosts partition CPU.
	CPUCosts []why.Cost
	// Samples is the number of samples of the CPU clock.
	Samples int
}

// slack is the time by which the runner's clock reading may precede the fork or follow the exit.
const slack = 5_000_000

// Fold computes the costs of each trial that the recording contains.
func (r *Recording) Fold(windows []Window, symbols Symbols) []Folded {
	var out []Folded
	trials := r.locate(windows)
	spaces := newSpaces(symbols)
	next := 0
	for _, trial := range trials {
		// Mappings before the trial are those of the runner, which its children inherit.
		for next < trial.first {
			spaces.observe(&r.Records[next])
			next++
		}
		folder := newFolder(spaces, trial, float64(r.Period))
		for next < trial.last {
			record := &r.Records[next]
			spaces.observe(record)
			folder.observe(record)
			next++
		}
		out = append(out, folder.finish())
	}
	return out
}

// located is a trial in the records.
type located struct {
	id          string
	runner      uint32
	first, last int
	start, end  uint64
}

// locate finds the child of the runner that lived longest in each window.
func (r *Recording) locate(windows []Window) (out []located) {
	windows = slices.Clone(windows)
	slices.SortFunc(windows, func(a, b Window) int { return cmp.Compare(a.Start, b.Start) })
	from := 0
	for _, window := range windows {
		start, end := window.Start-r.RealtimeOffset-slack, window.End-r.RealtimeOffset+slack
		children := map[uint32]*located{}
		var longest *located
		for i := from; i < len(r.Records); i++ {
			record := &r.Records[i]
			if at := int64(record.Time); at > end {
				break
			} else if at < start {
				continue
			}
			child := children[record.Pid]
			switch {
			case record.Type == Fork && record.Parent == r.Runner && record.Pid != r.Runner:
				children[record.Pid] = &located{id: window.ID, runner: r.Runner, first: i, start: record.Time}
			case record.Type == Exit && child != nil:
				child.last, child.end = i+1, record.Time
				if longest == nil || child.end-child.start > longest.end-longest.start {
					longest = child
				}
			}
		}
		if longest != nil {
			out, from = append(out, *longest), longest.last
		}
	}
	return out
}

// thread is the state of a thread of a trial.
type thread struct {
	running bool
	since   uint64
	// wait is the place at which it stopped running.
	wait []string
}

// folder adds up the costs of one trial.
type folder struct {
	spaces  *spaces
	trial   located
	period  float64
	members map[uint32]bool
	threads map[uint32]*thread
	running int
	last    uint64
	// idle is the time without a running thread since the last one stopped.
	idle                float64
	busy, cpu           float64
	samples             int
	sampled, sampledCPU map[string]float64
	waited              map[string]float64
}

func newFolder(spaces *spaces, trial located, period float64) *folder {
	return &folder{
		spaces: spaces, trial: trial, period: period, members: map[uint32]bool{}, threads: map[uint32]*thread{}, last: trial.start,
		sampled: map[string]float64{}, sampledCPU: map[string]float64{}, waited: map[string]float64{},
	}
}

func (f *folder) observe(record *Record) {
	if record.Type == Fork && (f.members[record.Parent] || record.Parent == f.trial.runner && record.Pid != f.trial.runner) {
		f.members[record.Pid] = true
		f.threads[record.Tid] = &thread{wait: []string{why.WaitCPU}}
		return
	}
	if !f.members[record.Pid] {
		return
	}
	of := f.threads[record.Tid]
	if of == nil {
		return
	}
	f.advance(record.Time)
	switch record.Type {
	case SwitchIn:
		f.start(of, record.Time)
	case SwitchOut, Preempted:
		f.stop(of, record.Time)
		if record.Type == Preempted {
			of.wait = []string{why.WaitCPU}
		}
	case Switched:
		of.wait = f.spaces.waitPlace(record)
	case Sample:
		f.start(of, record.Time) // Its switch record may have been lost.
		f.samples++
		at := key(f.spaces.busyPlace(record))
		f.sampled[at] += f.period / float64(f.running)
		f.sampledCPU[at] += f.period
	case Exit:
		f.stop(of, record.Time)
		delete(f.threads, record.Tid)
	case Map, Exec, Fork: // They belong to the address space.
	}
}

// advance adds the time since the last event to the running threads, or to the idle time.
func (f *folder) advance(now uint64) {
	if now <= f.last {
		return
	}
	passed := float64(now - f.last)
	if f.running > 0 {
		f.busy += passed
		f.cpu += passed * float64(f.running)
	} else {
		f.idle += passed
	}
	f.last = now
}

// isHelper reports whether a function belongs to a thread that wakes up periodically and ends no wait of the program.
func isHelper(function string) bool { return function == "runtime.sysmon" }

func (f *folder) start(of *thread, now uint64) {
	if of.running {
		return
	}
	if f.idle > 0 && !slices.ContainsFunc(of.wait, isHelper) {
		// Everything waited until this thread could run again.
		f.waited[key(of.wait)] += f.idle
		f.idle = 0
	}
	of.running, of.since = true, now
	f.running++
}

func (f *folder) stop(of *thread, _ uint64) {
	if of.running {
		of.running = false
		f.running--
	}
	if len(of.wait) == 0 {
		of.wait = []string{why.WaitOther}
	}
}

const separator = "\x00"

func key(stack []string) string { return strings.Join(stack, separator) }

// finish scales the samples to the measured times, because their number is random and the time of a CPU is not.
func (f *folder) finish() Folded {
	if f.trial.end > f.last {
		f.advance(f.trial.end)
	}
	if f.idle > 0 {
		f.waited[why.WaitOther] += f.idle
	}
	out := Folded{ID: f.trial.id, Wall: float64(f.trial.end-f.trial.start) / 1e9, CPU: f.cpu / 1e9, Samples: f.samples}
	out.CPUCosts = scaled(f.sampledCPU, f.cpu)
	out.WallCosts = scaled(f.sampled, f.busy)
	for _, at := range slices.Sorted(maps.Keys(f.waited)) {
		out.WallCosts = append(out.WallCosts, why.Cost{Stack: strings.Split(at, separator), Seconds: f.waited[at] / 1e9})
	}
	return out
}

func scaled(samples map[string]float64, nanoseconds float64) (out []why.Cost) {
	var sum float64
	for _, weight := range samples {
		sum += weight
	}
	if sum == 0 {
		if nanoseconds == 0 {
			return nil
		}
		return []why.Cost{{Stack: []string{why.UserCode, Unsampled}, Seconds: nanoseconds / 1e9}}
	}
	for _, at := range slices.Sorted(maps.Keys(samples)) {
		out = append(out, why.Cost{Stack: strings.Split(at, separator), Seconds: samples[at] / sum * nanoseconds / 1e9})
	}
	return out
}

// Unsampled is the place of CPU time of trials that are too short for a sample.
const Unsampled = "(shorter than one sample)"
