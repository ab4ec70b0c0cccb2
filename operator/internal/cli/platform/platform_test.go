package platform

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/preflight"
	"assay.dev/assay/operator/test/clitest"
)

func TestPlatform_UnsupportedRunIsReported(t *testing.T) {
	fine, missing := []finding{{OK: true}}, []finding{{OK: true}, {Check: "ledger"}}
	for name, tc := range map[string]struct {
		unmet     []string
		installed []finding
		want      string
	}{
		"nothing is missing":           {nil, fine, ""},
		"the operator was not queried": {nil, nil, ""},
		"the ledger is missing":        {nil, missing, "the installation is incomplete for run.yaml"},
		"no node is good enough":       {[]string{"a"}, fine, "run.yaml has 1 unmet requirement"},
		"both":                         {[]string{"a"}, missing, "and the installation is incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			err := cannotRun("run.yaml", &preflight.Answer{Unmet: tc.unmet}, tc.installed)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFindings_PrintedWithRemedies(t *testing.T) {
	var out bytes.Buffer
	if err := printFindings(&out, "table", []finding{
		{Check: "ledger", Found: "gone", Remedy: "start it"}, {Check: "Argo", OK: true, Found: "there"}, {Check: "Prometheus", OK: true, Found: "absent", Remedy: "bundled"},
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"MISSING ledger gone", "-> start it", "ok Argo there", "note Prometheus absent", "-> bundled"}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if got := strings.Join(strings.Fields(line), " "); got != want[i] {
			t.Errorf("line %d is %q, want %q", i, got, want[i])
		}
	}
}

func TestDoctor_HostileTextIsEscaped(t *testing.T) {
	for name, print := range map[string]func(io.Writer) error{
		"findings of doctor": func(out io.Writer) error {
			return printFindings(out, "table", []finding{{Check: clitest.Hostile, Found: clitest.Hostile, Remedy: clitest.Hostile}})
		},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckPrintable(t, print, false) })
	}
}
