// Package schedule decides the next action of a BenchmarkSchedule. It is pure: schedule, observations and time determine one decision, and
// the decision with its outcome determines the status. The caller may crash at any point and restart.
//
// A due time has three possible outcomes. If there is something to measure, it gets a number. The number is stored in the status (next)
// before the run is created under a name derived from the number, so no number is used twice and no due time has two runs. If there is
// nothing to measure, it is skipped with a reason. If the image to measure was deleted, it gets a number, and a gap with a reason in the
// history.
//
// A run that confirms or locates a change has a number but no due time. It starts as soon as no other run of the schedule is active.
//
// A run remains in status.active until it is recorded in the history, and is deleted only after that.
package schedule
