package experiment

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestFreeze_InvalidEnvironmentIsRejected(t *testing.T) {
	require := func(pairs ...string) *assayv1alpha1.Environment {
		out := &assayv1alpha1.Environment{Require: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			out.Require[pairs[i]] = pairs[i+1]
		}
		return out
	}
	limits := func(limits assayv1alpha1.NoiseLimits) *assayv1alpha1.Environment {
		return &assayv1alpha1.Environment{Noise: limits}
	}
	cases := map[string]struct {
		environment *assayv1alpha1.Environment
		placement   assayv1alpha1.Placement
		says        []string
		warns       []string
	}{
		"none at all":                   {},
		"keys that every machine has":   {environment: require("architecture", "x86_64", "hostname", "node-a")},
		"limits and no limits":          {environment: limits(assayv1alpha1.NoiseLimits{Steal: "0.5%", Canary: "off"})},
		"a share of more than the time": {environment: limits(assayv1alpha1.NoiseLimits{Steal: "101%"}), says: []string{"spec.environment.noise.steal", `invalid value "101%"`}},
		"two limits that mean nothing": {
			environment: limits(assayv1alpha1.NoiseLimits{Canary: "0%", PressureIO: "200%"}),
			says:        []string{"spec.environment.noise.canary", "would exceed it", "spec.environment.noise.pressureIo", "at most 100%"},
		},
		"an empty value":  {environment: require("governor", ""), says: []string{"spec.environment.require.governor", "the value is empty"}},
		"an empty key":    {environment: require("", "x"), says: []string{"spec.environment.require", "a key is empty"}},
		"the copy's path": {environment: require("nullProgram", "/tmp/x"), says: []string{"nullProgram", "null arm"}},
		"a key that no runner of this release reports": {
			environment: require("cpuGovernor", "performance", "smt", "false"),
			warns:       []string{"spec.environment.require.cpuGovernor", "governor"},
		},
		"own CPUs demanded of a run that shares them": {
			placement: assayv1alpha1.Placement{Exclusive: assayv1alpha1.ExclusiveNone, RequireStaticCPUManager: true},
			says:      []string{"spec.placement.requireStaticCPUManager", "exclusive: None", "write exclusive: CPUs"},
		},
		"own CPUs demanded and asked for": {
			placement: assayv1alpha1.Placement{Exclusive: assayv1alpha1.ExclusiveNode, RequireStaticCPUManager: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &assayv1alpha1.BenchmarkRunSpec{Environment: tc.environment, Placement: tc.placement}
			problems := &Invalid{}
			read(spec, &assayv1alpha1.BenchmarkTemplateSpec{}, problems)
			problems.Problems = slices.DeleteFunc(problems.Problems, func(p Problem) bool { return strings.HasPrefix(p.Field, "spec.design") })
			checkEnvironment(spec, problems)
			assertSays(t, "error", problems.Error(), tc.says)
			assertSays(t, "warning", strings.Join(EnvironmentWarnings(ptr.Deref(spec.Environment, assayv1alpha1.Environment{}).Require), "\n"),
				tc.warns)
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func assertSays(t *testing.T, what, text string, parts []string) {
	t.Helper()
	if (text == "") != (len(parts) == 0) {
		t.Fatalf("%s is %q, want one that says %q", what, text, parts)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s is %q, want one that says %q", what, text, part)
		}
	}
}
