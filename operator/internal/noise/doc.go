// Package noise judges the noise readings that the runner takes before, during and after every trial. It compares them with the limits of
// the run and describes each violation. It is pure. The runner only reads and never judges, so that a ledger can be analyzed again with
// other limits.
package noise
