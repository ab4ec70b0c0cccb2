package judge_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/analyzed"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/record"
)

// noCondition are the fields of an attempt, with all below them, that do not say how it was measured, and why not. Every other field, and
// one that an attempt gains, takes the decision from a gate whose arms differ in it.
var noCondition = map[string]string{
	"schema": "the format, of which there is one",
	"id":     "where it belongs", "trial": "where it belongs", "run": "where it belongs", "experiment": "where it belongs",
	"wave": "where it belongs", "block": "where it belongs", "slot": "its place, which the order of the block gives to all arms",
	"point": "where it belongs", "arm": "the treatment", "build": "the treatment", "warmup": "its place",
	"startedAt": "its place, held against the slots", "durationSeconds": "a figure",
	"outcome": "the outcome", "exitCode": "the outcome", "signal": "the outcome", "message": "the outcome",
	"leftBehind": "the outcome", "endedExecution": "the outcome", "stderrTail": "the outcome",
	"kernel": "the outcome: an event fails the trial when the attempt is read, and an unknown kill is a cap",
	"argv":   "the treatment, checked against the plan", "parameters": "the treatment, checked against the plan",
	"result": "the output of the program", "output": "the output of the program",
	"noise":            "interference, judged by the noise limits",
	"resources":        "figures",
	"kept":             "the keeper's clock and lease, judged by the rule of stale leases",
	"isolation.reason": "the level, in words",
	"roles.name":       "held against the plan", "roles.result": "held against the plan", "roles.port": "drawn for every trial",
	"roles.programDigest": "the treatment", "roles.readySeconds": "a figure", "roles.exitCode": "the outcome",
	"roles.signal": "the outcome", "roles.killed": "the outcome", "roles.outputTail": "the output of the program",
	"roles.resources":        "figures",
	"environment.soft.image": "the treatment", "environment.soft.imageFilesDigest": "the treatment",
	"environment.soft.programDigest": "the treatment", "environment.soft.nullProgram": "where the null arm's copy lies",
	"environment.soft.layoutPadBytes": "drawn for every trial",
	"environment.soft.loadAverage1":   "never stands still", "environment.soft.memoryAvailableBytes": "never stands still",
	"environment.soft.swapUsedBytes": "never stands still", "environment.soft.uptimeSeconds": "never stands still",
}

// recorded are the fields of an attempt that say how it was measured, each with two values that it could have.
func recorded() map[string][2]any {
	out, exempt := map[string][2]any{}, map[string]bool{}
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		if noCondition[path] != "" {
			exempt[path] = true
			return
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(path, of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "-" {
					walk(strings.TrimPrefix(path+"."+name, "."), of.Field(i).Type)
				}
			}
		case reflect.Map:
			names := map[string][]string{
				"environment.hard": slices.Concat(record.HardKeys, []string{"ofAnotherRunner"}), "environment.soft": record.SoftKeys,
			}[path]
			for _, key := range names {
				walk(path+"."+key, reflect.TypeFor[string]())
			}
			if names == nil {
				out[path] = [2]any{}
			}
		case reflect.Bool:
			out[path] = [2]any{false, true}
		case reflect.String:
			out[path] = [2]any{"one", "other"}
		default:
			out[path] = [2]any{1, 2}
		}
	}
	walk("", reflect.TypeFor[record.Attempt]())
	for path := range noCondition {
		if !exempt[path] {
			out[path+" is exempt and no field"] = [2]any{}
		}
	}
	return out
}

// Arms that were measured under different conditions are not compared. This holds for every field with a condition, if one arm has another
// value in all of its trials or in half of them. Equal arms, and differences between blocks only, change nothing.
func TestConditions_DifferentArmsAreInconclusive(t *testing.T) {
	t.Parallel()
	fields := recorded()
	if len(fields) < len(record.HardKeys)+10 {
		t.Fatalf("only %d fields", len(fields))
	}
	decisions := map[float64]experiment.Verdict{0.94: fixture.Go, 1.07: fixture.NoGo}
	if testing.Short() {
		delete(decisions, 1.07)
	}
	for i, path := range slices.Sorted(maps.Keys(fields)) {
		values := fields[path]
		if testing.Short() && i%4 != 0 && values[0] != nil {
			continue
		}
		if values[0] == nil {
			t.Errorf("%s: of no known kind", path)
			continue
		}
		for name, c := range map[string]struct {
			other func(a *record.Attempt) bool
			apart bool
		}{
			"a candidate": {func(a *record.Attempt) bool { return a.Arm == "new" }, true},
			"a baseline":  {func(a *record.Attempt) bool { return a.Arm == "old" }, true},
			"half of the candidate's trials": {
				func(a *record.Attempt) bool { return a.Arm == "new" && a.Slot%2 == 0 }, true,
			},
			"half of the blocks": {func(a *record.Attempt) bool { return fixture.BlockNumber(t, a)%2 == 0 }, false},
			"none":               {func(*record.Attempt) bool { return false }, false},
		} {
			t.Run(path+" of "+name, func(t *testing.T) {
				for factor, decided := range decisions {
					l := analyzed.SimulatePair(t, factor, nil)
					for i := range l.Attempts {
						value := values[0]
						if c.other(&l.Attempts[i]) {
							value = values[1]
						}
						fixture.SetPath(t, &l.Attempts[i], path, value)
					}
					got := l.Analyze()
					reason := got.Candidates[0].Reason
					if c.apart && (got.Verdict == fixture.Go || got.Verdict == fixture.NoGo) || !c.apart && got.Verdict != decided {
						t.Errorf("%s: %s", got.Verdict, reason)
					}
					if c.apart && got.Verdict == fixture.Inconclusive {
						for _, want := range []string{path[strings.LastIndex(path, ".")+1:], fmt.Sprint(values[0]), fmt.Sprint(values[1])} {
							if !strings.Contains(reason, want) && values[0] != false {
								t.Errorf("%s does not name %q", reason, want)
							}
						}
					}
					said := strings.Contains(strings.Join(got.Warnings, "\n"), "blocks were measured differently: "+path+" is ")
					if want := name == "half of the blocks" && !slices.Contains(changes, path); !c.apart && said != want {
						t.Errorf("blocks that differ are named: %v, want %v", said, want)
					}
					fixture.CheckInvariants(t, got)
				}
			})
		}
	}
}

// changes lists the conditions that normally differ between blocks or trials.
var changes = []string{"lease.node", "lease.token", "environment.soft.bootId", "environment.soft.hostname", "environment.soft.nodeName",
	"isolation.level", "isolation.cpusAllowed", "roles.cpus", "roles.shared", "environment.soft.roleCpus", "environment.hard.ofAnotherRunner"}

// A verdict is not that of the environment that most trials happened to have: where more than a tenth of the blocks had another one, it
// holds in both or it does not stand.
func TestEnvironment_MajorityDoesNotDecide(t *testing.T) {
	t.Parallel()
	ratio := func(*fixture.RunSpec) {}
	level := func(spec *fixture.RunSpec) {
		spec.Gates = []assayv1alpha1.Gate{{Name: "fast", Metric: "time", Op: assayv1alpha1.AtMost, Bound: "1.05s"}}
	}
	for name, c := range map[string]struct {
		edit          func(*fixture.RunSpec)
		elsewhere     int
		factor, there float64
		want          experiment.Verdict
	}{
		"faster in all blocks of one environment":              {ratio, 0, 0.94, 1, fixture.Go},
		"faster in both of two":                                {ratio, 5, 0.94, 0.94, fixture.Go},
		"slower in both of two":                                {ratio, 5, 1.07, 1.07, fixture.NoGo},
		"faster in one half and slower in the other":           {ratio, 5, 0.94, 1.07, fixture.Inconclusive},
		"slower in one half and faster in the other":           {ratio, 5, 1.07, 0.94, fixture.Inconclusive},
		"faster in six blocks and slower in four":              {ratio, 4, 0.94, 1.07, fixture.Inconclusive},
		"faster in seven blocks and slower in three":           {ratio, 3, 0.94, 1.07, fixture.Inconclusive},
		"faster in eight blocks and slower in two":             {ratio, 2, 0.94, 1.07, fixture.Inconclusive},
		"faster in nine blocks of ten":                         {ratio, 1, 0.94, 1.07, fixture.Go},
		"fast enough in all blocks of one environment":         {level, 0, 0.94, 1, fixture.Go},
		"fast enough in one half and too slow in the other":    {level, 5, 0.94, 1.2, fixture.Inconclusive},
		"fast enough in eight blocks and too slow in the rest": {level, 2, 0.94, 1.2, fixture.Inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyzed.SimulatePair(t, 1, c.edit)
			for i := range l.Attempts {
				a := &l.Attempts[i]
				by := c.factor
				if fixture.BlockNumber(t, a) < c.elsewhere {
					by = c.there
					fixture.SetPath(t, a, "environment.hard.governor", "powersave")
				}
				if a.Arm == "new" {
					fixture.ScaleTime(a, by)
				}
			}
			got := l.Analyze()
			if got.Verdict != c.want {
				t.Errorf("%s: %s", got.Verdict, got.Candidates[0].Reason)
			}
			if reason := got.Candidates[0].Reason; c.want == fixture.Inconclusive && !strings.Contains(reason, `governor is `) {
				t.Errorf("%s does not name the environments", reason)
			}
			fixture.CheckInvariants(t, got)
		})
	}
}
