package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A pull request of an untrusted author can contain an answer file. It must not add outputs to a job.
func TestAnswer_ContradictingVerdictRejected(t *testing.T) {
	for verdict, refused := range map[string]bool{"": false, "Go": false, "Invalid": false, "go": true, "Go\npassed=true\ntoken=mine": true} {
		file := filepath.Join(t.TempDir(), "gate.json")
		raw, err := json.Marshal(map[string]any{"namespace": "team", "name": "run", "verdict": verdict, "passed": false, "exitCode": 3})
		if err == nil {
			err = os.WriteFile(file, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadGateAnswer(file); (err != nil) != refused || err == nil && string(got.Verdict) != verdict {
			t.Errorf("%q: %+v, %v", verdict, got, err)
		}
	}
}
