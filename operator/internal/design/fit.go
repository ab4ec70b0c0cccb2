package design

import (
	"fmt"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// TooLarge is the error of a wave that is too large to be stored or executed. With fewer blocks it may fit.
type TooLarge struct {
	// What names the object; Found and Allowed are its size and its limit in bytes.
	What           string
	Found, Allowed int
	Blocks         int
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%s of %s takes %d KiB and at most %d fit: use fewer points or arms, shorter parameter values, or fewer blocks "+
		"(spec.design.blocks)",
		e.What, quantity.Count(e.Blocks, "block"), e.Found>>10, e.Allowed>>10)
}

// Fits returns an error if a wave cannot be executed: TooLarge if fewer blocks may help, and any other error if not.
type Fits func(exp *experiment.Experiment, wave *record.Wave, lanes []Lane) error
