// Package history documents the packages for the performance of a program over its revisions. It has no code. Each package below is
// independent, and only archive and scheduled access a cluster, a clock or a disk.
//
// series    stored records: paired log ratios to a pinned anchor, assembled into series
// detect    change detection: online for the newest point, offline with an interval for every date
// change    life cycle of a change: suspicion, confirming run, history, alerts
// points    records that an analyzed run adds to its series
// watch     policy: suspicions after a point, and decisions of confirming runs
// archive   storage of histories
// scheduled adds the runs of schedules on a cluster
// locate    finds the revision that caused a change: bisection under noise
// bisect    runs, budget and answer of such a search
// rehearse  simulated years with a known truth, to measure the error rates of the parts above
//
// docs/history.md describes histories, docs/decisions/histories.md explains the design.
package history
