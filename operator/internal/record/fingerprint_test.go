package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFingerprintKeys_EqualTheRunners(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(workloadSchemas, "fixtures", "environment-keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	var listed struct{ Hard, Soft []string }
	if err := json.Unmarshal(raw, &listed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed.Hard, HardKeys); diff != "" {
		t.Errorf("hard keys (-runner +here):\n%s", diff)
	}
	if diff := cmp.Diff(listed.Soft, SoftKeys); diff != "" {
		t.Errorf("soft keys (-runner +here):\n%s", diff)
	}
}
