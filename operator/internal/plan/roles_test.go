package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/record"
)

func TestAWaveCarriesRolesAndImages(t *testing.T) {
	exp := testExperiment(1, 3, assayv1alpha1.OrderABBA, 0)
	exp.Template.Command = nil
	exp.Template.Output.Format, exp.Template.TrialTimeout = assayv1alpha1.AssayResult, metav1.Duration{Duration: time.Minute}
	exp.Template.Roles = []assayv1alpha1.Role{
		{Name: "server", CPUs: 1, StopGracePeriod: metav1.Duration{Duration: 2 * time.Second}, Readiness: &assayv1alpha1.Readiness{Port: true, Timeout: metav1.Duration{Duration: time.Minute}}},
		{Name: "cache", Readiness: &assayv1alpha1.Readiness{File: "/tmp/up", Timeout: metav1.Duration{Duration: time.Second}}},
		{Name: "logger", Readiness: &assayv1alpha1.Readiness{Line: "up", Timeout: metav1.Duration{Duration: time.Second}}},
		{Name: "client", CPUs: 1, Result: true},
	}
	for i, image := range []string{"lab/kv:1", "lab/kv:2", "lab/kv:1"} {
		exp.Arms[i].Image = image
	}
	for i := range exp.Cells {
		exp.Cells[i].Env, exp.Cells[i].Parameters = map[string]string{}, map[string]string{}
		exp.Cells[i].Roles = []record.RoleCommand{{Argv: []string{"/kv", "$(port.server)"}, Ports: []int{1}}, {Argv: []string{"/cache"}}, {Argv: []string{"/log"}}}
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
		t.Fatalf("what is planned is no wave: %v", err)
	}
	grace, none := 2.0, 0.0
	roles := []record.Role{
		{Name: "server", CPUs: 1, StopGraceSeconds: &grace, Readiness: &record.RoleReadiness{On: "Port", TimeoutSeconds: 60}},
		{Name: "cache", StopGraceSeconds: &none, Readiness: &record.RoleReadiness{On: "File", Text: "/tmp/up", TimeoutSeconds: 1}},
		{Name: "logger", StopGraceSeconds: &none, Readiness: &record.RoleReadiness{On: "Line", Text: "up", TimeoutSeconds: 1}},
		{Name: "client", Result: true, CPUs: 1},
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
