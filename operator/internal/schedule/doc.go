// Package schedule decides what a BenchmarkSchedule does next. It is pure: a schedule, what was observed, and a clock give one decision,
// and the decision with what came of it gives the status. Whoever calls it may die at any point and begin anew.
//
// A due time goes three ways. There is something to measure: it gets a number, the number is written into the status (next) before
// anything is created, and the run is made from it under a name that follows from the number; so no number is given twice and no due time
// has two runs. There is nothing to measure: it is skipped, with the reason. What should be measured has vanished: it gets a number and a
// gap, with the reason, in the history.
//
// A run that confirms or locates a change has a number too, and no due time: it starts as soon as nothing else of the schedule is under
// way.
//
// A run stays in status.active until the history has what it measured, and is deleted only then.
package schedule
