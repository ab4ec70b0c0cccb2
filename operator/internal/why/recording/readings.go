package recording

import "assay.dev/assay/operator/internal/why"

// Readings are the readings of the trials of one block.
type Readings struct {
	Trials []Reading
	// Lost is the number of events that the kernel dropped.
	Lost int64
	// Notes are limits of this recording, such as programs without symbols.
	Notes []string
}

// Reading is the reading of one trial.
type Reading struct {
	Trial string
	// Wall and CPU are the costs by figure; nil if the instrument only counts.
	Wall, CPU []why.Cost
	// WallSeconds and CPUSeconds are the whole figures.
	WallSeconds, CPUSeconds float64
	// Counts of the trial's processes.
	Counts map[string]float64
}
