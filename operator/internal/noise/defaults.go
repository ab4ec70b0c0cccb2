package noise

// The limits of a run that names none. They come from the readings of quiet trials and of those beside a neighbour, in
// docs/methodology.md ("Noise limits"): each is above what nearly all quiet trials show and below what a neighbour does. `make
// calibrate` reads them again.
const (
	// defaultSteal is two ticks in a second; a guest that is left alone reads 0.
	defaultSteal = 0.02
	// defaultOtherWork is what the runner, too, takes as the end of exclusive CPUs.
	defaultOtherWork = 0.05
	// defaultThrottled is one period of a hundred; with exclusive CPUs none is allowed.
	defaultThrottled = 0.01
	// defaultCanary and defaultSpin are relative to the run's own best. Quiet and disturbed canaries overlap: quiet ones have
	// a second mode a quarter above the first, and this lies beyond it.
	defaultCanary = 0.35
	defaultSpin   = 0.15
	// defaultPressureMemory and defaultPressureIO are beyond what the cell's own trials have at their quietest.
	defaultPressureMemory = 0.05
	defaultPressureIO     = 0.20
)
