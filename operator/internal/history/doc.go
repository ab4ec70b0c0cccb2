// Package history is the room of what is known of a program over its revisions. It has no code of its own; each part below can be
// understood alone, and none of them but archive and scheduled knows a cluster, a clock or a disk.
//
//	series    what is remembered: paired log ratios to a pinned anchor, and how records become a series
//	detect    when a series changed: online, for the newest point, and offline, with an interval for every date
//	change    what becomes of it: a suspicion, a confirming run, a change with a history, and alerts
//	points    what a run that was analyzed adds to its series
//	watch     the policy: what is suspected after a point, and what a confirming run decides
//	archive   where histories lie
//	scheduled what runs of schedules add, on a cluster
//	locate    which revision did it: bisection under noise
//	bisect    the runs that such a search takes, what it may cost, and its answer
//	rehearse  simulated years with a known truth, to count how often the parts above are wrong
//
// docs/history.md describes histories, docs/decisions/histories.md explains the design.
package history
