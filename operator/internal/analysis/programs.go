package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// programKeys are the soft keys that say what a trial executed: two attempts of a cell that differ in one are not attempts of
// the same thing, whatever tag both were pulled by.
var programKeys = []string{"programDigest", "imageFilesDigest", "image"}

// rejectOtherPrograms keeps, in every cell, the attempts that executed what most of them did. A tag that was moved between two
// blocks, or that names another image on another node, shows here. Attempts older than the digests have none and are kept.
func (s *selection) rejectOtherPrograms(attempts []*record.Attempt) []*record.Attempt {
	cells := map[variant]map[string][]*record.Attempt{}
	for _, attempt := range attempts {
		executed := describePrograms(attempt)
		if executed == "" {
			continue
		}
		of := variant{s.cells[attempt], attempt.Build}
		in := cells[of]
		if in == nil {
			in = map[string][]*record.Attempt{}
			cells[of] = in
		}
		in[executed] = append(in[executed], attempt)
	}
	others := map[*record.Attempt]string{}
	for _, in := range cells {
		// With equal numbers the text that sorts first, so that the choice never depends on order.
		most := slices.MinFunc(slices.Sorted(maps.Keys(in)), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(in[b]), len(in[a])), cmp.Compare(a, b))
		})
		for executed, these := range in {
			for _, attempt := range these {
				if executed != most {
					others[attempt] = differentPrograms(attempt, in[most][0])
				}
			}
		}
	}
	out := attempts[:0:0]
	for _, attempt := range attempts {
		if how, ok := others[attempt]; ok {
			s.rejectAttempt(attempt, environment,
				"it executed another program than most attempts of %s at this point: %s; name the arm's image by digest", armBuild(attempt), how)
			continue
		}
		out = append(out, attempt)
	}
	return out
}

// programsOf are the digests of everything a trial executed, by what they are of.
func programsOf(attempt *record.Attempt) map[string]string {
	out := map[string]string{}
	for _, key := range programKeys {
		if value, ok := attempt.Environment.Soft[key].(string); ok {
			out[key] = value
		}
	}
	for _, role := range attempt.Roles {
		// That of the role with the result is the trial's own.
		if role.ProgramDigest != "" && !role.Result {
			out["programDigest of role "+role.Name] = role.ProgramDigest
		}
	}
	return out
}

func describePrograms(attempt *record.Attempt) string {
	return listPrograms(programsOf(attempt))
}

func listPrograms(programs map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(programs)) {
		fmt.Fprintf(&b, "%s=%s\n", key, programs[key])
	}
	return b.String()
}

func differentPrograms(here, there *record.Attempt) string {
	found, most := programsOf(here), programsOf(there)
	keys := maps.Clone(found)
	maps.Copy(keys, most)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if found[key] != most[key] {
			out = append(out, fmt.Sprintf("%s is %s here and %s there", key, cmp.Or(found[key], "absent"), cmp.Or(most[key], "absent")))
		}
	}
	return strings.Join(out, ", ")
}
