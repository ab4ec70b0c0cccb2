package analysis

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/search"
)

// Limits of an analysis, all above the values of any experiment that the API server admits. Readers depend on them: the API server rejects
// a status with invalid values, a counter panics on a negative value, and two series with one name disable the metrics of all runs.
const (
	// mostArms are those of a run, with the null arm, and mostArmName the bytes of the name of an arm or a gate.
	mostArms    = 17
	mostArmName = 63
	// mostCandidates are the arms but the baseline.
	mostCandidates = 16
	// mostNodes that trials ran on, and mostNodeName the bytes of the name of one.
	mostNodes    = 10_000
	mostNodeName = 253
	// mostName bounds every other name. A point has the values of eight axes, of 4,096 characters each. Sentences are not bounded.
	mostName = 256 << 10
	// mostCount bounds every count, and mostSamples the samples of trials.
	mostCount   = math.MaxInt32
	mostSamples = 1 << 53
)

// words lists the allowed values of each enumeration; "" means no outcome.
var words = map[reflect.Type][]string{
	reflect.TypeFor[experiment.Verdict](): {"", string(experiment.VerdictGo), string(experiment.VerdictNoGo),
		string(experiment.VerdictInconclusive), string(experiment.VerdictInvalid)},
	reflect.TypeFor[experiment.Severity](): {string(experiment.Blocking), string(experiment.Advisory)},
	reflect.TypeFor[search.Outcome](): {"", string(search.Feasible), string(search.Infeasible), string(search.Failed),
		string(search.Uncertain)},
}

// sentences are the fields with texts that people read.
var sentences = map[string]bool{"message": true, "reason": true, "detail": true, "layout": true, "warnings": true, "notes": true,
	"unseen": true, "ceiling": true, "text": true}

// confidences are the fields that quantiles are taken at.
var confidences = map[string]bool{"confidence": true, "gateConfidence": true}

// unsound is the error for a property that no analysis written by Assay has.
type unsound struct{ at, says string }

func (u *unsound) Error() string { return strings.TrimPrefix(u.at, ".") + " " + u.says }

// Validate returns an error for a property that no analysis written by Assay has, because any holder of a key of the namespace can
// write one.
func (a *Analysis) Validate() error {
	if found := walk(reflect.ValueOf(a), "", sound); found != nil {
		return found
	}
	for _, found := range []*unsound{
		unique("candidates", "name", a.Candidates, mostCandidates, mostArmName, func(c *Candidate) string { return c.Name }),
		unique("search", "arm", a.Search, mostArms, mostArmName, func(s *SearchResult) string { return s.Arm }),
		soundGates("gates", a.Gates), soundGates("screening", a.Screening),
		unique("usage.nodes", "node", a.Usage.Nodes, mostNodes, mostNodeName, func(n *NodeUsage) string { return n.Node }),
	} {
		if found != nil {
			return found
		}
	}
	return nil
}

// unique checks the number of a list's elements, and that each is named once.
func unique[T any](list, field string, elements []T, most, longest int, name func(*T) string) *unsound {
	if len(elements) > most {
		return &unsound{list, fmt.Sprintf("has %d elements, and at most %d are possible", len(elements), most)}
	}
	first := make(map[string]int, len(elements))
	for i := range elements {
		at, own := fmt.Sprintf("%s[%d].%s", list, i, field), name(&elements[i])
		if found := short(at, own, longest); found != nil {
			return found
		}
		if before, ok := first[own]; ok {
			return &unsound{at, fmt.Sprintf("is %q, which is a duplicate of %s[%d]", own, list, before)}
		}
		first[own] = i
	}
	return nil
}

func short(at, name string, longest int) *unsound {
	if len(name) > longest {
		return &unsound{at, fmt.Sprintf("has %d bytes, and at most %d are possible", len(name), longest)}
	}
	return nil
}

// soundGates checks the fields that every judged gate has.
func soundGates(list string, gates []GateResult) *unsound {
	for i := range gates {
		for _, name := range []struct{ field, value string }{{"gate", gates[i].Gate}, {"candidate", gates[i].Candidate}} {
			if len(name.value) > mostArmName {
				return short(fmt.Sprintf("%s[%d].%s", list, i, name.field), name.value, mostArmName)
			}
		}
		if gates[i].Outcome == "" {
			return &unsound{fmt.Sprintf("%s[%d].outcome", list, i), "is absent, and every gate has one"}
		}
	}
	return nil
}

// walk visits all scalars in a value with the names of their fields, until visit returns an error, and adds the path to it.
func walk(value reflect.Value, field string, visit func(value reflect.Value, field string) *unsound) *unsound {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			return walk(value.Elem(), field, visit)
		}
	case reflect.Slice:
		for i := range value.Len() {
			if found := walk(value.Index(i), field, visit); found != nil {
				found.at = fmt.Sprintf("[%d]%s", i, found.at)
				return found
			}
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			key := entries.Key()
			for _, part := range []reflect.Value{key, entries.Value()} {
				if found := walk(part, field, visit); found != nil {
					found.at = fmt.Sprintf("[%.60q]%s", key.String(), found.at)
					return found
				}
			}
		}
	case reflect.Struct:
		for i, name := range fieldsOf(value.Type()) {
			if name == "" {
				continue
			}
			if found := walk(value.Field(i), name, visit); found != nil {
				found.at = "." + name + found.at
				return found
			}
		}
	default:
		return visit(value, field)
	}
	return nil
}

// sound checks that a word is known, a name not too long, a count in its range and a number finite. It selects fields by type, so that it
// covers new fields.
func sound(value reflect.Value, field string) *unsound {
	switch value.Kind() {
	case reflect.String:
		text := value.String()
		if known, ok := words[value.Type()]; ok && !slices.Contains(known, text) {
			return &unsound{"", fmt.Sprintf("is %.60q; allowed values are %s", text, strings.TrimPrefix(strings.Join(known, ", "), ", "))}
		}
		if !sentences[field] {
			return short("", text, mostName)
		}
	case reflect.Int:
		most := int64(mostCount)
		if field == "samples" {
			most = mostSamples
		}
		if count := value.Int(); count < 0 || count > most {
			return &unsound{"", fmt.Sprintf("is %d, and a count is between 0 and %d", count, most)}
		}
	case reflect.Float64:
		switch number := value.Float(); {
		case math.IsNaN(number) || math.IsInf(number, 0):
			return &unsound{"", fmt.Sprintf("is %v, and only finite numbers are allowed", number)}
		case confidences[field] && (number < 0 || number > 1):
			return &unsound{"", fmt.Sprintf("is %v, and a confidence is between 0 and 1", number)}
		}
	}
	return nil // Other kinds, such as booleans, have no invalid value.
}

// fieldNames caches the field names of each type, because reflection takes longer than the checks.
var fieldNames sync.Map

// fieldsOf returns the JSON names of the fields of a type, "" for fields that are not in the JSON.
func fieldsOf(of reflect.Type) []string {
	if known, ok := fieldNames.Load(of); ok {
		return known.([]string)
	}
	names := make([]string, of.NumField())
	for i := range names {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names[i] = strings.TrimPrefix(name, "-")
	}
	fieldNames.Store(of, names)
	return names
}
