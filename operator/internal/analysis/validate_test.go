package analysis

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

func TestValidate_ImpossibleAnalysisIsRejected(t *testing.T) {
	gate := func(rest string) string {
		return `{"gates": [{"gate": "g", "candidate": "a", "severity": "Blocking"` + rest + `}]}`
	}
	list := func(name, element string, count int) string {
		var out []string
		for i := range count {
			out = append(out, fmt.Sprintf(element, i))
		}
		return fmt.Sprintf(`{%q: [%s]}`, name, strings.Join(out, ","))
	}
	cases := map[string]struct{ raw, says string }{
		"an unknown verdict":           {`{"verdict": "Banana"}`, `verdict is "Banana"; allowed values are Go, NoGo, Inconclusive, Invalid`},
		"no verdict, as without gates": {`{"candidates": [{"name": "a"}]}`, ""},
		"a word of another case":       {`{"screened": "go"}`, `screened is "go"; allowed values are`},
		"a candidate's verdict":        {`{"candidates": [{"name": "a", "verdict": "Best"}]}`, `candidates[0].verdict is "Best"`},
		"a gate's severity": {
			gate(`, "outcome": "Go", "severity": "Grave"`),
			`gates[0].severity is "Grave"; allowed values are Blocking, Advisory`,
		},
		"a gate's outcome":             {gate(`, "outcome": "Perhaps"`), `gates[0].outcome is "Perhaps"`},
		"a gate without an outcome":    {gate(""), "gates[0].outcome is absent, and every gate has one"},
		"a gate that was judged":       {gate(`, "outcome": "Go"`), ""},
		"a gate that was judged twice": {gate(`, "outcome": "Go", "everywhere": {"outcome": "x"}`), `gates[0].everywhere.outcome is "x"`},
		"a gate of the screening":      {`{"screening": [{"severity": "Advisory"}]}`, "screening[0].outcome is absent"},
		"an outcome of a search at a load": {
			`{"search": [{"arm": "a", "levels": [{}, {"fresh": {"outcome": "x"}}]}]}`,
			`search[0].levels[1].fresh.outcome is "x"; allowed values are Feasible,`,
		},
		"a candidate twice": {
			`{"candidates": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}`,
			`candidates[2].name is "a", which is a duplicate of candidates[0]`,
		},
		"an arm that searched twice": {`{"search": [{"arm": "a"}, {"arm": "a"}]}`, `search[1].arm is "a", which is a duplicate of search[0]`},
		"a node twice": {
			`{"usage": {"nodes": [{"node": "a"}, {"node": "a"}]}}`,
			`usage.nodes[1].node is "a", which is a duplicate of usage.nodes[0]`,
		},
		"fewer than no trials":            {`{"trials": {"used": -1}}`, "trials.used is -1, and a count is between 0 and 2147483647"},
		"more trials than can be counted": {`{"trials": {"failed": 3000000000}}`, "trials.failed is 3000000000"},
		"more samples than that":          {`{"arms": [{"estimate": {"samples": 3000000000}}]}`, ""},
		"a count by name":                 {`{"usage": {"excluded": {"noise": 3, "failed": -4}}}`, `usage.excluded["failed"] is -4`},
		"a seed below zero":               {`{"seed": -7}`, ""},
		"more candidates than arms":       {list("candidates", `{"name": "a%d"}`, 17), "candidates has 17 elements, and at most 16 are possible"},
		"as many candidates as arms":      {list("candidates", `{"name": "a%d"}`, 16), ""},
		"more searches than arms":         {list("search", `{"arm": "a%d"}`, 18), "search has 18 elements, and at most 17 are possible"},
		"nodes without end":               {`{"usage": ` + list("nodes", `{"node": "n%d"}`, 10_001) + "}", "usage.nodes has 10001 elements"},
		"a candidate with a long name": {
			`{"candidates": [{"name": "` + strings.Repeat("a", 64) + `"}]}`,
			"candidates[0].name has 64 bytes, and at most 63",
		},
		"a gate with a long name": {gate(`, "outcome": "Go", "gate": "` + strings.Repeat("a", 64) + `"`), "gates[0].gate has 64 bytes"},
		"a gate's candidate with one": {
			gate(`, "outcome": "Go", "candidate": "` + strings.Repeat("a", 64) + `"`),
			"gates[0].candidate has 64 bytes",
		},
		"a node with a long name": {
			`{"usage": {"nodes": [{"node": "` + strings.Repeat("a", 254) + `"}]}}`,
			"usage.nodes[0].node has 254 bytes",
		},
		"a point with a long name":       {`{"arms": [{"point": "` + strings.Repeat("a", 256<<10+1) + `"}]}`, "arms[0].point has 262145 bytes"},
		"a long key":                     {`{"ratios": [{"perBlock": {"` + strings.Repeat("a", 256<<10+1) + `": 1}}]}`, "has 262145 bytes"},
		"a long word in the message":     {`{"verdict": "` + strings.Repeat("a", 1<<20) + `"}`, "verdict is"},
		"a confidence beyond all":        {`{"gateConfidence": 5}`, "gateConfidence is 5, and a confidence is between 0 and 1"},
		"a gate's confidence":            {gate(`, "outcome": "Go", "confidence": -1`), "gates[0].confidence is -1"},
		"a sentence as long as it likes": {`{"warnings": ["` + strings.Repeat("a", 1<<20) + `"]}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.raw))
			switch {
			case (err == nil) != (tc.says == ""), err != nil && !strings.Contains(err.Error(), tc.says):
				t.Errorf("error %.300v, want %q", err, tc.says)
			case err != nil && len(err.Error()) > 400:
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// JSON has no word for them; an analysis that was made in this process may.
func TestNumber_OnlyFinite(t *testing.T) {
	for _, number := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		a := Analysis{Ratios: []RatioResult{{PerBlock: map[string]float64{"w000-b0000": number}}}, RelativeHalfWidth: ptr.To(0.5)}
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), `ratios[0].perBlock["w000-b0000"] is`) {
			t.Errorf("%v: error %v", number, err)
		}
	}
}

// New fields are checked wherever they are added, because every type is one that the walk enters.
func TestValidate_EveryTypeIsVisited(t *testing.T) {
	skipped := map[reflect.Kind]bool{reflect.Bool: true, reflect.Interface: true, reflect.Int64: true}
	looked := map[reflect.Kind]bool{reflect.String: true, reflect.Int: true, reflect.Float64: true, reflect.Pointer: true,
		reflect.Slice: true, reflect.Map: true, reflect.Struct: true}
	seen := map[reflect.Type]bool{}
	var look func(of reflect.Type, at string)
	look = func(of reflect.Type, at string) {
		if seen[of] {
			return
		}
		seen[of] = true
		switch kind := of.Kind(); {
		case of.String() == "time.Time", skipped[kind]:
		case !looked[kind]:
			t.Errorf("%s is a %s, at which nothing looks", at, kind)
		case kind == reflect.Struct:
			for i := range of.NumField() {
				if fieldsOf(of)[i] == "" {
					t.Errorf("%s.%s has no name in JSON, and nothing looks at it", at, of.Field(i).Name)
				}
				look(of.Field(i).Type, at+"."+of.Field(i).Name)
			}
		case kind == reflect.Map:
			look(of.Key(), at)
			look(of.Elem(), at)
		case kind == reflect.Pointer, kind == reflect.Slice:
			look(of.Elem(), at)
		}
	}
	look(reflect.TypeFor[Analysis](), "analysis")
	if len(seen) < 40 {
		t.Errorf("only %d types", len(seen))
	}
}
