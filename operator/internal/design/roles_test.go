package design

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

func TestBuildWave_HasRolesAndImages(t *testing.T) {
	exp := testExperiment(1, 3, experiment.OrderABBA, 0)
	exp.Plan.Workload.Output.Format, exp.Plan.Workload.TimeoutSeconds = "AssayResult", 60
	grace, none := 2.0, 0.0
	roles := []record.Role{
		{Name: "server", CPUs: 1, StopGraceSeconds: &grace, Readiness: &record.RoleReadiness{On: "Port", TimeoutSeconds: 60}},
		{Name: "cache", StopGraceSeconds: &none, Readiness: &record.RoleReadiness{On: "File", Text: "/tmp/up", TimeoutSeconds: 1}},
		{Name: "logger", StopGraceSeconds: &none, Readiness: &record.RoleReadiness{On: "Line", Text: "up", TimeoutSeconds: 1}},
		{Name: "client", Result: true, CPUs: 1},
	}
	exp.Plan.Workload.Roles = roles
	for i, image := range []string{"lab/kv:1", "lab/kv:2", "lab/kv:1"} {
		exp.Arms[i].Image = image
	}
	for i := range exp.Cells {
		exp.Cells[i].Env, exp.Cells[i].Parameters = map[string]string{}, map[string]string{}
		exp.Cells[i].Roles = []record.RoleCommand{{Argv: []string{"/kv", "$(port.server)"}, Ports: []int{1}}, {Argv: []string{"/cache"}},
			{Argv: []string{"/log"}}}
	}
	exp.Points[0].Parameters = map[string]string{}
	wave, err := BuildWave(exp, 0, 0, 1, []Lane{{}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(wave)
	if err != nil {
		t.Fatal(err)
	}
	read, err := record.ParseWave(raw)
	if err != nil {
		t.Fatalf("the planned wave is invalid: %v", err)
	}
	if diff := cmp.Diff(roles, read.Workload.Roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	files := []string{"/cache", "/kv", "/log", "/scan"}
	images := []record.Image{
		{Reference: "lab/kv:1", Root: "/assay/images/0", Files: files}, {Reference: "lab/kv:2", Root: "/assay/images/1", Files: files},
	}
	if diff := cmp.Diff(images, read.Images); diff != "" {
		t.Errorf("images, each once (-want +got):\n%s", diff)
	}
}
