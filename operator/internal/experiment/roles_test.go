package experiment

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

// served is a template of a server and a client.
func served() assayv1alpha1.BenchmarkTemplateSpec {
	template := testTemplate()
	template.Command = nil
	template.Roles = []assayv1alpha1.Role{
		{
			Name: "server", Command: []string{"/kv", "serve", "--listen=127.0.0.1:$(port.server)", "--ratio=$(ratio)"}, CPUs: 1,
			Readiness: &assayv1alpha1.Readiness{Port: true},
		},
		{Name: "client", Command: []string{"/kv", "bench", "--server=127.0.0.1:$(port.server)/$(note)"}, CPUs: 1, Result: true},
	}
	return template
}

func TestFreeze_InvalidRolesAreRejected(t *testing.T) {
	type roles = []assayv1alpha1.Role
	cases := map[string]struct {
		edit        func(roles) roles
		field, says string
	}{
		"a port is that of no role": {
			func(r roles) roles { r[1].Command[2] = "$(port.cache)"; return r }, "template.roles[1].command[2]", "allowed are server, client",
		},
		"a parameter does not exist": {
			func(r roles) roles { r[0].Command[3] = "$(rows)"; return r }, "template.roles[0].command[3]", `$(rows): the template has no parameter "rows"`,
		},
		"a role names no program": {
			func(r roles) roles { r[0].Command = nil; return r }, "template.roles[0].command", "the command is empty: name a program",
		},
		"a line has a line break": {
			func(r roles) roles { r[0].Readiness = &assayv1alpha1.Readiness{Line: "a\nb"}; return r }, "template.roles[0].readiness.line",
			"line break",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := served()
			template.Roles = tc.edit(template.Roles)
			_, err := freezeAndCheck(t, testSpec(), template)
			expectProblem(t, err, tc.field, tc.says)
		})
	}
	t.Run("a single process names a port", func(t *testing.T) {
		template := testTemplate()
		template.Command = []string{"/kv", "$(port.server)"}
		_, err := freezeAndCheck(t, testSpec(), template)
		expectProblem(t, err, "template.command[1]", "there are none")
	})
	t.Run("a value looks like a port where ports are filled in", func(t *testing.T) {
		spec := testSpec()
		spec.Parameters = values{"note": "x$(port.client)"}
		_, err := freezeAndCheck(t, spec, served())
		expectProblem(t, err, "spec.parameters.note", "where ports are filled in")
	})
}

func TestFreeze_ArgumentsOfRoles(t *testing.T) {
	spec := testSpec()
	// Where no port is filled in, a value may look like one.
	spec.Parameters = values{"ratio": "0.25", "note": "n"}
	frozen, err := freezeAndCheck(t, spec, served())
	if err != nil {
		t.Fatal(err)
	}
	cell := frozen.Cells[1]
	want := []string{
		"/kv", "bench", "--server=127.0.0.1:$(port.server)/n", "--batch-size=1", "--strategy=fused", "--ceilings=true", "--iterations=30",
	}
	if diff := cmp.Diff(want, cell.Argv); diff != "" {
		t.Errorf("arguments of the client: a parameter named by a role must not be appended (-want +got):\n%s", diff)
	}
	roles := []record.RoleCommand{{Argv: []string{"/kv", "serve", "--listen=127.0.0.1:$(port.server)", "--ratio=0.25"}, Ports: []int{2}}}
	if diff := cmp.Diff(roles, cell.Roles); diff != "" {
		t.Errorf("arguments of the server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{2}, cell.Ports); diff != "" {
		t.Errorf("elements of the client with ports (-want +got):\n%s", diff)
	}
	if ready := frozen.Plan.Workload.Roles[0].Readiness.TimeoutSeconds; ready != 30 {
		t.Errorf("readiness waits %g s by default, want 30s", ready)
	}
}

func TestFreeze_InvalidImagesAreRejected(t *testing.T) {
	type edit func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec)
	cases := map[string]struct {
		edit        edit
		field, says string
	}{
		"the program has no absolute path": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Command[0] = "scan"
			},
			"template.command[0]", `invalid program "scan"`,
		},
		"the program's path is roundabout": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Command[0] = "/app/../scan"
			},
			"template.command[0]", "must be absolute",
		},
		"the program is not among the files": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Files = []string{"/app", "/scanner"}
			},
			"template.command[0]", "/scan is not among template.files",
		},
		"a file has no absolute path": {
			func(_ *assayv1alpha1.BenchmarkRunSpec, tpl *assayv1alpha1.BenchmarkTemplateSpec) {
				tpl.Files = []string{"/scan", "/app/../etc"}
			},
			"template.files[1]", "without ..",
		},
		"an invalid image reference": {
			func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Arms[1].Image = "{{workflow.name}}"
			},
			"spec.arms[1].image", "invalid image",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, template := testSpec(), testTemplate()
			spec.Arms[1].Image = "example/scan:2"
			tc.edit(&spec, &template)
			_, err := freezeAndCheck(t, spec, template)
			expectProblem(t, err, tc.field, tc.says)
		})
	}
}

func TestFreeze_OneImageAppliesToAllArms(t *testing.T) {
	spec, template := testSpec(), testTemplate()
	spec.Design.NullArm = true
	spec.Arms[1].Image = "example/scan:2"
	template.Parameters = append(template.Parameters,
		assayv1alpha1.Parameter{Name: "tool", Default: ptr.To("scan"), Enum: []string{"scan", "scan-fast"}})
	template.Command = []string{"/$(tool)", "run"}
	spec.Arms[1].Parameters["tool"] = "scan-fast"
	frozen, err := freezeAndCheck(t, spec, template)
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, arm := range frozen.Arms {
		images = append(images, arm.Image)
	}
	if diff := cmp.Diff([]string{"example/scan:1", "example/scan:2", "example/scan:1"}, images); diff != "" {
		t.Errorf("images of baseline, candidate and null arm (-want +got):\n%s", diff)
	}
	if got := frozen.ImageNames(); got != "loop: example/scan:1, fused: example/scan:2" {
		t.Errorf("for people the images are %q", got)
	}
	// Without files, the programs of the arms with that image are copied.
	if diff := cmp.Diff([]string{"/scan-fast"}, frozen.Files("example/scan:2")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	frozen.Plan.Files = []string{"/"}
	if diff := cmp.Diff([]string{"/"}, frozen.Files("example/scan:1")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// expectProblem requires exactly one problem, at the field and with the text.
func expectProblem(t *testing.T, err error, field, says string) {
	t.Helper()
	var invalid *Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want a problem at %s", err, field)
	}
	got := 0
	for _, p := range invalid.Problems {
		if p.Field == field && strings.Contains(p.Message, says) {
			got++
		}
	}
	if got != 1 {
		t.Errorf("want exactly one problem at %s that says %q, got:\n%s", field, says, strings.ReplaceAll(err.Error(), "; ", "\n"))
	}
}
