// Package noise judges what a trial saw of others: it takes what the runner read around and during every trial, and says in
// words which limit of the run was broken. It is pure. The runner only reads and never judges, so that a ledger can be
// judged again by other limits.
package noise
