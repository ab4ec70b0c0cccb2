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

// What an analysis may hold, all of it beyond what any experiment gives that the API server admits. What reads one relies on it: a status
// that the API server refuses is never written, a counter that is asked to count backwards panics, and two series of one name take the
// metrics of everybody.
const (
	// mostArms are those of a run, with the null arm, and mostArmName the bytes of the name of an arm or a gate.
	mostArms    = 17
	mostArmName = 63
	// mostCandidates are the arms but the baseline.
	mostCandidates = 16
	// mostNodes that trials ran on, and mostNodeName the bytes of the name of one.
	mostNodes    = 10_000
	mostNodeName = 253
	// mostName is of every other text that names something. A point names the values of eight axes, of 4,096 characters each. Sentences may
	// be as long as the analysis.
	mostName = 256 << 10
	// mostCount bounds every count, and mostSamples the samples of trials.
	mostCount   = math.MaxInt32
	mostSamples = 1 << 53
)

// words are those of the types whose values decide or label something; the empty one is no answer.
var words = map[reflect.Type][]string{
	reflect.TypeFor[experiment.Verdict](): {"", string(experiment.VerdictGo), string(experiment.VerdictNoGo),
		string(experiment.VerdictInconclusive), string(experiment.VerdictInvalid)},
	reflect.TypeFor[experiment.Severity](): {string(experiment.Blocking), string(experiment.Advisory)},
	reflect.TypeFor[search.Outcome](): {"", string(search.Feasible), string(search.Infeasible), string(search.Failed),
		string(search.Uncertain)},
}

// sentences are the fields with texts that people read.
var sentences = map[string]bool{"message": true, "reason": true, "detail": true, "layout": true, "warnings": true, "unseen": true,
	"ceiling": true}

// confidences are the fields that quantiles are taken at.
var confidences = map[string]bool{"confidence": true, "gateConfidence": true}

// unsound is a property that no analysis written by Assay has.
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
	} {
		if found != nil {
			return found
		}
	}
	if a.Usage != nil {
		name := func(n *NodeUsage) string { return n.Node }
		if found := unique("usage.nodes", "node", a.Usage.Nodes, mostNodes, mostNodeName, name); found != nil {
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
			return &unsound{at, fmt.Sprintf("is %q, as that of %s[%d] is: each is there once", own, list, before)}
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

// walk visits everything in a value, each with the name of its field, until something is found; where that is it adds.
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

// sound demands that a word is known, a name not too long, a count one and a number finite. It knows fields by their types, so that new
// ones are looked at too.
func sound(value reflect.Value, field string) *unsound {
	switch value.Kind() {
	case reflect.String:
		text := value.String()
		if known, ok := words[value.Type()]; ok && !slices.Contains(known, text) {
			return &unsound{"", fmt.Sprintf("is %.60q, which is none of %s", text, strings.TrimPrefix(strings.Join(known, ", "), ", "))}
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
			return &unsound{"", fmt.Sprintf("is %v: it has to be finite", number)}
		case confidences[field] && (number < 0 || number > 1):
			return &unsound{"", fmt.Sprintf("is %v, and a confidence is between 0 and 1", number)}
		}
	}
	return nil // What is of no other kind labels and decides nothing.
}

// fieldNames remembers those of each type: asking for them takes longer than looking at their values.
var fieldNames sync.Map

// fieldsOf are the names of the fields of a type in JSON, empty for those that are not there.
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
