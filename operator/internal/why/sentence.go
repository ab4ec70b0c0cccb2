package why

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/quantity"
)

// Name is the cause as a noun phrase.
func (c Cause) Name() string {
	if c.Kind == Unexplained {
		return string(Unexplained)
	}
	class := c.Path[0]
	text := map[Kind]string{Allocation: "allocation of memory", Copying: "copying of memory", GarbageCollection: "garbage collection",
		PageFaults: "page faults"}[c.Kind]
	switch {
	case class == WaitPage:
		text = WaitPage
	case text != "":
	case class == UserCode:
		text = "computation"
	case class == CallEntry:
		text = class
	case strings.HasPrefix(class, callPrefix):
		text = "CPU time of the " + class
	default:
		text = class
	}
	if c.Function != "" {
		text += " in " + c.Function
		if c.Spread {
			text += " and its callees"
		}
	}
	if len(c.Replaces) > 0 {
		text += " (in place of " + strings.Join(c.Replaces, ", ") + ")"
	}
	return text
}

func ratioText(of Interval) string {
	return quantity.Interval(of.Value, &of.Low, &of.High, quantity.Times)
}

// percentOf formats a share with its interval.
func percentOf(of Interval) string {
	if math.IsInf(of.Low, 0) || math.IsInf(of.High, 0) {
		return quantity.PercentTo(of.Value, 0)
	}
	return quantity.PercentTo(of.Value, 0) + " [" + quantity.Decimals(100*of.Low, 0) + ", " + quantity.Decimals(100*of.High, 0) + "]"
}

// sentence is the answer in one sentence.
func sentence(e *Explanation) string {
	if e.Blocks < 2 {
		return "No cause is named: " + e.Withheld + "."
	}
	size := fmt.Sprintf("%s takes %s %s per operation than %s", e.Candidate, quantity.Format(math.Abs(e.Difference.Value), "s"),
		direction(e.Difference.Value), e.Baseline)
	switch {
	case e.Withheld != "":
		return "The explanation is withheld: " + e.Withheld + "."
	case len(e.Causes) == 0 && !e.Difference.Excludes(0):
		return fmt.Sprintf("The instruments show no difference between %s and %s, and name no cause.", e.Candidate, e.Baseline)
	case len(e.Causes) == 0:
		return size + ", and no cause covers a share of it that the instruments can show."
	}
	if opposed(e.Causes) {
		var parts []string
		for _, cause := range e.Causes {
			parts = append(parts, cause.Name()+" costs "+quantity.Format(math.Abs(cause.Difference.Value), "s")+" "+
				direction(cause.Difference.Value))
		}
		return fmt.Sprintf("Changes of %s against %s oppose each other: %s.", e.Candidate, e.Baseline, strings.Join(parts, "; "))
	}
	text := size + "; " + percentOf(e.Causes[0].Share) + " of that is " + e.Causes[0].Name()
	if evidence := e.Causes[0].Evidence; len(evidence) > 0 && e.Causes[0].Kind != MoreComputation {
		text += " (" + evidence[0] + ")"
	}
	if more := len(e.Causes) - 1; more > 0 {
		text += ", and " + quantity.Count(more, "further cause") + " is named below"
		if more > 1 {
			text = strings.TrimSuffix(text, " is named below") + " are named below"
		}
	}
	return text + "."
}

func direction(of float64) string {
	if of < 0 {
		return "less"
	}
	return "more"
}

func opposed(causes []Cause) bool {
	for _, cause := range causes {
		if cause.Difference.Value*causes[0].Difference.Value < 0 {
			return true
		}
	}
	return false
}

// evidenceOf names the counts that belong to a kind of causes.
var evidenceOf = map[Kind][]string{
	PageFaults: {MinorFaults, MajorFaults},
	Sleep:      {VoluntarySwitches}, Lock: {VoluntarySwitches}, Peer: {VoluntarySwitches}, Storage: {VoluntarySwitches},
	Events:        {VoluntarySwitches},
	CPUContention: {InvoluntarySwitches},
}

// Names of counts.
const (
	MinorFaults         = "minor page faults"
	MajorFaults         = "major page faults"
	VoluntarySwitches   = "voluntary context switches"
	InvoluntarySwitches = "involuntary context switches"
	CallsPrefix         = "calls of "
)

// addEvidence attaches the counts that differ to the causes they belong to.
func addEvidence(e *Explanation) {
	byName := map[string]Count{}
	for _, count := range e.Counts {
		byName[count.Name] = count
	}
	for i := range e.Causes {
		cause := &e.Causes[i]
		names := evidenceOf[cause.Kind]
		switch call, ok := strings.CutPrefix(cause.Path[0], callPrefix); {
		case cause.Path[0] == CallEntry:
			names = calls(e.Counts)
		case ok:
			names = []string{CallsPrefix + call}
		}
		for _, name := range names {
			if count, ok := byName[name]; ok && count.Differs {
				cause.Evidence = append(cause.Evidence, name+": "+quantity.Digits(count.Baseline)+" to "+quantity.Digits(count.Candidate))
			}
		}
		if cause.Kind == MoreComputation {
			cause.Evidence = append(cause.Evidence, "more instructions, cache misses and branch misses are not told apart without counters")
		}
	}
}

// calls returns the names of the counts of system calls, those with the largest difference first.
func calls(counts []Count) (names []string) {
	of := slices.DeleteFunc(slices.Clone(counts), func(count Count) bool { return !strings.HasPrefix(count.Name, CallsPrefix) })
	slices.SortStableFunc(of, func(a, b Count) int {
		return -cmp.Compare(math.Abs(a.Difference.Value), math.Abs(b.Difference.Value))
	})
	const most = 3
	for _, count := range of[:min(most, len(of))] {
		names = append(names, count.Name)
	}
	return names
}
