package bench

import (
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Follow executes waves as the Follow of a course does, and reduces each wave after the first one to the number of blocks that room
// returns. It ends when there is no room for a block. A wave that a time limit interrupted would lose trials, and with them the verdict.
func Follow(course *design.Course, lanes []design.Lane, room func() int, execute design.Execute) (design.Step, error) {
	fits := func(_ *experiment.Experiment, wave *record.Wave, _ []design.Lane) error {
		if left := room(); len(course.Waves) > 0 && left < len(wave.Blocks) {
			return &design.TooLarge{What: "blocks", Found: len(wave.Blocks), Allowed: max(left, 0), Blocks: len(wave.Blocks)}
		}
		return nil
	}
	for stopped := false; ; {
		step := course.Next()
		if stopped || step.Done && len(course.Waves) > 0 {
			return step, nil
		}
		wave, err := course.Lay(step, lanes, fits)
		if _, full := errors.AsType[*design.TooLarge](err); full && len(course.Waves) > 0 {
			step.Done, step.Why = true, budgetUsed(step.Why)
			return step, nil
		}
		if err != nil {
			return step, err
		}
		course.Waves = append(course.Waves, *wave)
		if course.Found, stopped, err = execute(wave, step.Why); err != nil {
			return step, err
		}
	}
}

func budgetUsed(why string) string {
	if why == "" {
		return "the time budget allows no further block"
	}
	return fmt.Sprintf("%s, and the time budget allows no further block", why)
}
