package noise

// defaults are the limits of a run that names none. They come from the readings of quiet trials and of those beside a neighbour, in
// docs/methodology/noise.md: each is above what nearly all quiet trials show and below what a neighbour does. `make
// calibrate` reads them again.
var defaults = Limits{
	// Two ticks in a second; a guest that is left alone reads 0.
	Steal: 0.02,
	// What the runner, too, takes as the end of exclusive CPUs.
	OtherWork: 0.05,
	// One period of a hundred; with exclusive CPUs none is allowed.
	Throttled: 0.01,
	// Canary and Spin are relative to the run's own best. Quiet and disturbed canaries overlap: quiet ones have a second mode a quarter
	// above the first, and this lies beyond it.
	Canary: 0.35,
	Spin:   0.15,
	// The pressures are beyond what the cell's own trials have at their quietest.
	PressureMemory: 0.05,
	PressureIO:     0.20,
}
