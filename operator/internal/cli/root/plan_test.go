package root

import (
	"encoding/json"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/runs"
)

func TestPlan_LossesOfPilotAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		run   string
		code  int
		lines []string
	}{
		"a pilot that loses nothing": {"gate", cli.ExitDone, nil},
		"trials that fail":           {"broken", cli.ExitError, []string{"lost     3 trials of arm new: ", "it exited with 3"}},
		"trials without a metric":    {"wordless", cli.ExitError, []string{"lost     3 trials of arm new: ", "latency"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"plan", gateFile(t, "name: gate}", "name: "+tc.run+"}"), "--measure", "--pilot-blocks", "1", "--bin-dir", simulated}
			stdout, _, err := assay(t, args...)
			if cli.ExitCode(err) != tc.code {
				t.Fatalf("exit code %d (%v), want %d", cli.ExitCode(err), err, tc.code)
			}
			for _, line := range tc.lines {
				if !strings.Contains(stdout, line) || !strings.Contains(err.Error(), strings.TrimPrefix(line, "lost     ")) {
					t.Errorf("want %q in\n%s\nand in %v", line, stdout, err)
				}
			}
			if len(tc.lines) == 0 && strings.Contains(stdout, "lost") {
				t.Error(stdout)
			}
			stdout, _, err = assay(t, append(args, "-o", "json")...)
			var got runs.Planned
			if jsonErr := json.Unmarshal([]byte(stdout), &got); jsonErr != nil || cli.ExitCode(err) != tc.code {
				t.Fatalf("%v, %v: %s", jsonErr, err, stdout)
			}
			if (len(got.Lost) == 1 && got.Lost[0].Trials == 3 && got.Lost[0].Arm == "new") != (tc.code == cli.ExitError) {
				t.Errorf("lost are %+v", got.Lost)
			}
		})
	}
}
