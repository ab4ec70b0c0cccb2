package noise

// rejecting are the kinds that leave a trial out; the others are counted by arm and warned of. This table is the policy.
//
// A reading may take a trial out of the comparison only if it is direct evidence of somebody else inside the trial's own window: time
// that the hypervisor took, and work on its CPUs that was not its container's. What a trial can do to itself must not excuse it,
// or a candidate buys the exclusion of its slow trials: its quota stops it, it waits for memory or a disk that it fills itself,
// and a pressure file cannot tell its waiting from another's. The probes say what the machine was like before and after a trial,
// when it was also just used by it and by the trial before; on a quiet machine they are what is beyond a limit most often.
var rejecting = map[Kind]bool{Steal: true, OtherWork: true}

// Rejects reports whether a trial beyond the kind's limit is left out, as far as environment.onViolation asks for it.
func (k Kind) Rejects() bool { return rejecting[k] }
