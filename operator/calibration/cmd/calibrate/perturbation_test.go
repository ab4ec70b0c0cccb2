package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// standIn is a kubectl that records its arguments, and whose exec reports twice the latency of the program on this machine.
const standIn = `#!/bin/sh
echo "$*" >> "$CALLS"
case "$3" in
create) cat >> "$CALLS" ;;
exec) echo '{"metrics":{"latency":{"samples":[2,2,2]}}}' ;;
esac
`

func TestPerturbation_RatioOfPodToHost(t *testing.T) {
	folder := t.TempDir()
	calls := filepath.Join(folder, "calls")
	for name, text := range map[string]string{
		"kubectl": standIn,
		"taskset": "#!/bin/sh\necho '{\"metrics\":{\"latency\":{\"samples\":[1,1,1]}}}'\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("CALLS", calls)
	p := perturbation{blocks: 3, pairs: 2, program: "bin/scan-pir", image: "scan:1", cpu: "1", namespace: "team", arguments: []string{"run"}}
	figure, err := p.measure(t.Context(), io.Discard)
	if err != nil || figure.Samples != 3 || figure.Value < 1.999 || figure.Value > 2.001 {
		t.Errorf("%+v (%v), want a ratio of 2 over 3 blocks", figure, err)
	}
	raw, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	said := string(raw)
	for text, want := range map[string]int{
		"--namespace team create -f -": 3, `"key":"assay.dev/leased"`: 3, "--for=condition=Ready": 3, "delete pod assay-perturbation-": 3,
		"--container=main -- /scan-pir run": 6,
	} {
		if got := strings.Count(said, text); got != want {
			t.Errorf("%d times %q, want %d:\n%s", got, text, want, said)
		}
	}
}
