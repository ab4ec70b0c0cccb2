package instrument

import (
	"bytes"

	"assay.dev/assay/operator/internal/why/recording"
)

// Profiler samples the stacks of a block's processes by a software clock, and records their context switches with the stack of the wait.
type Profiler struct {
	// programs of the arms.
	programs []string
}

// ProfilerName is the name of the rung.
const ProfilerName = "profile"

// NewProfiler returns a profiler. Programs are the programs of arms on this machine.
func NewProfiler(programs []string) *Profiler { return &Profiler{programs: programs} }

// Name implements Instrument.
func (*Profiler) Name() string { return ProfilerName }

// SamplePeriod is the CPU time between two samples in nanoseconds. It is no multiple of a timer tick, so that samples do not fall on the
// same phase of a periodic program.
const SamplePeriod = 499_979

// Read implements Instrument.
func (p *Profiler) Read(raw []byte, windows []recording.Window) (*recording.Readings, error) {
	of, err := recording.Read(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	symbols := NewSymbols(p.programs)
	out := &recording.Readings{Lost: int64(min(of.Lost, 1<<62))}
	for _, folded := range of.Fold(windows, symbols) {
		out.Trials = append(out.Trials, recording.Reading{
			Trial: folded.ID, Wall: folded.WallCosts, CPU: folded.CPUCosts, WallSeconds: folded.Wall, CPUSeconds: folded.CPU,
		})
	}
	out.Notes = symbols.Notes()
	if !of.KernelStacks {
		out.Notes = append(out.Notes, kernelHidden)
	}
	return out, nil
}

const kernelHidden = "kernel stacks are not visible, so that system calls, faults and waits have no reasons: this needs CAP_PERFMON, or " +
	"kernel.perf_event_paranoid of at most 1"
