package calibrate

import (
	"slices"
)

// Figures of suites.
const (
	SuiteShareFigure = "suite.time_share"
	SuiteRightFigure = "suite.right_verdicts_over_alone"
	SuiteFalseFigure = "suite.false_rate"
)

// The mixes of simulated suites: as in a pull request, where most benchmarks are equal, and as many of each difference.
var (
	MostlyEqual = SuiteMix{70, 10, 10, 10}
	Quarters    = SuiteMix{25, 25, 25, 25}
)

// AloneBlocks is the number of blocks of a benchmark alone: those of a Go benchmark of 50 ms in the default budget of assay bench, one
// minute, of which a trial takes 91 ms (measured), and of which 95 % are used.
const AloneBlocks = 104

// SuiteCode returns the digest of the sources that plan and judge suites.
func SuiteCode(root string) (string, error) { return CodeDigest(root, "internal/suite") }

// ReadSuiteCounts reads the counts of a code. Those of other code are discarded, as are those of a file that does not exist.
func ReadSuiteCounts(path, code string) (*SuiteCounts, error) {
	return readCounts(path, &SuiteCounts{Code: code}, func(found *SuiteCounts) bool { return found.Code == code })
}

// Write writes the counts.
func (c *SuiteCounts) Write(path string) error { return writeCounts(path, c) }

// Simulate adds simulated suites of equal builds with the next seed.
func (c *SuiteCounts) Simulate(runs, workers int) error {
	seed := uint64(1)
	if len(c.Seeds) > 0 {
		seed += slices.Max(c.Seeds)
	}
	found, err := SimulateEqualSuites(runs, seed, workers)
	if err != nil {
		return err
	}
	c.Equal.sum(found)
	c.Seeds = append(c.Seeds, seed)
	return nil
}

// Mix adds a suite of a mix beside each of its benchmarks alone, with the next seed.
func (c *SuiteCounts) Mix(mix SuiteMix, workers int) error {
	at := slices.IndexFunc(c.Mixed, func(m SuiteAgainstAlone) bool { return m.Mix == mix })
	if at < 0 {
		at = len(c.Mixed)
		c.Mixed = append(c.Mixed, SuiteAgainstAlone{Mix: mix})
	}
	m := &c.Mixed[at]
	found, err := SimulateMixedSuite(mix, AloneBlocks, uint64(len(m.Seeds)+1), workers)
	if err != nil {
		return err
	}
	m.Seeds = append(m.Seeds, found.Seeds...)
	m.Shares, m.Ratios = append(m.Shares, found.Shares...), append(m.Ratios, found.Ratios...)
	m.False, m.Covered = m.False+found.False, m.Covered+found.Covered
	return nil
}

// Figures returns the figures of the counts, without those of no suite. Those of a mix other than the equal one have its name.
func (c *SuiteCounts) Figures() []Figure {
	var out []Figure
	for _, m := range c.Mixed {
		suffix := ""
		if m.Mix != Quarters {
			suffix = ".mostly-equal"
		}
		out = append(out, meanFigure(SuiteShareFigure+suffix, m.Shares), meanFigure(SuiteRightFigure+suffix, m.Ratios))
	}
	if c.Equal.Runs > 0 {
		out = append(out, NewShare(c.Equal.Wrong+c.Real.Wrong, c.Equal.Runs+c.Real.Runs).Figure(SuiteFalseFigure))
	}
	return out
}

// meanFigure is the mean of the values of several suites, with its interval.
func meanFigure(name string, values []float64) Figure {
	mean, half := values[0], 0.0
	if len(values) > 1 {
		mean, half = student(values, 0)
	}
	return Figure{Figure: name, Value: mean, Unit: "1", Low: mean - half, High: mean + half, Samples: len(values)}
}
