package selection

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// Environments are the environments that the attempts ran in.
type Environments struct {
	// Hard is the environment of the attempts used.
	Hard map[string]any
	// Elsewhere maps the attempts of other environments to a number for each of these.
	Elsewhere map[*record.Attempt]int
	// OtherKeys describes how the first of them differs.
	OtherKeys string
}

// rejectOtherEnvironments rejects the attempts whose environment is not the most common one. Between equals it is the one whose JSON text
// sorts first.
func rejectOtherEnvironments(attempts []*record.Attempt) (ruling, Environments) {
	type group struct {
		hard          map[string]any
		count, number int
	}
	groups, of := map[string]*group{}, make(map[*record.Attempt]*group, len(attempts))
	for _, attempt := range attempts {
		raw, _ := json.Marshal(attempt.Environment.Hard) // Cannot fail: it was read as JSON.
		text := string(raw)
		if groups[text] == nil {
			groups[text] = &group{hard: attempt.Environment.Hard, number: len(groups) + 1}
		}
		of[attempt] = groups[text]
		groups[text].count++
	}
	found := Environments{Elsewhere: map[*record.Attempt]int{}}
	if len(groups) == 0 {
		return ruling{}, found
	}
	majority := groups[slices.MinFunc(slices.Sorted(maps.Keys(groups)), func(a, b string) int {
		return cmp.Or(cmp.Compare(groups[b].count, groups[a].count), cmp.Compare(a, b))
	})]
	found.Hard = majority.hard
	how := func(attempt *record.Attempt) string {
		return strings.Join(differences(attempt.Environment.Hard, majority.hard, hardKey), "; ")
	}
	out := rule(attempts, environment, func(attempt *record.Attempt) string {
		if of[attempt] == majority {
			return ""
		}
		return "its environment cannot be compared with that of most attempts: " + how(attempt)
	})
	for i, rejected := range out.rejected {
		found.Elsewhere[rejected.of] = of[rejected.of].number
		if i == 0 {
			found.OtherKeys = how(rejected.of)
		}
	}
	return out, found
}

// Everywhere returns the attempts used and those of other environments, in the order of their trials.
func (s *Selection) Everywhere() []*record.Attempt {
	out := slices.AppendSeq(slices.Clone(s.Used), maps.Keys(s.Elsewhere))
	slices.SortFunc(out, func(a, b *record.Attempt) int { return record.CompareNames(a.Trial, b.Trial) })
	return out
}
