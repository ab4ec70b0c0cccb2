package noise

// The limits of a run that names none. They come from the readings of quiet trials, see docs/methodology.md: each is above
// what nearly all of those show and far below what a neighbour does. To compute them again: Summarize.
const (
	// defaultSteal is two ticks in a second; a guest that is left alone reads 0.
	defaultSteal = 0.02
	// defaultOtherWork is what the runner, too, takes as the end of exclusive CPUs.
	defaultOtherWork = 0.05
	// defaultThrottled is one period of a hundred; with exclusive CPUs none is allowed.
	defaultThrottled = 0.01
	// defaultCanary and defaultSpin are relative to the run's own best.
	defaultCanary = 0.25
	defaultSpin   = 0.15
	// defaultPressureMemory and defaultPressureIO are beyond what the cell's own trials have at their quietest.
	defaultPressureMemory = 0.05
	defaultPressureIO     = 0.20
)
