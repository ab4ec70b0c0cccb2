// Package instrument observes the processes of a block: each rung of the ladder is a file with an Instrument. An instrument that a machine
// cannot use returns the reason from Check, so that its absence is never a zero.
package instrument

import (
	"errors"

	"assay.dev/assay/operator/internal/why/recording"
)

// Instrument is one rung.
type Instrument interface {
	// Name is its name in plans, explanations and file names.
	Name() string
	// Check returns the reason why this machine cannot use it, or limits of its use.
	Check() (limits []string, err error)
	// Start calls start, which starts the runner of a block on the calling thread, and observes it and all its descendants. start returns
	// the process of the runner, whose children are trials.
	Start(start func() (pid int, err error)) (Session, error)
	// Read computes the readings of trials from a recording. It reads no process, and trusts no byte of the recording.
	Read(raw []byte, windows []recording.Window) (*recording.Readings, error)
}

// Session is the observation of one block.
type Session interface {
	// Stop ends the observation after the runner has exited, and returns the raw recording; nil if the instrument makes none.
	Stop() ([]byte, error)
}

// ErrTooLarge means that a block has more events than a recording can hold.
var ErrTooLarge = errors.New("the recording of the block is too large")

// All returns the instruments of the ladder, cheap ones first. Programs are the programs of arms on this machine.
func All(programs []string) []Instrument { return []Instrument{&Usage{}, NewProfiler(programs)} }
