package pullrequests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// weakened returns the files without the guards of an attack, as replacements for go test -overlay.
func weakened(t *testing.T, one attack) (overlay string) {
	t.Helper()
	folder := t.TempDir()
	texts, replaced := map[string]string{}, map[string]string{}
	for i, g := range one.guards {
		file, err := filepath.Abs(filepath.Join("..", "..", filepath.FromSlash(g.file)))
		if err != nil {
			t.Fatal(err)
		}
		if texts[file] == "" {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(raw)
		}
		if strings.Count(texts[file], g.old) == 0 {
			t.Fatalf("guard %d: %s has no %q any more", i, g.file, g.old)
		}
		texts[file] = strings.Replace(texts[file], g.old, g.weak, 1)
		replaced[file] = filepath.Join(folder, strings.ReplaceAll(g.file, "/", "_"))
	}
	for file, text := range texts {
		if err := os.WriteFile(replaced[file], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// In short form each guard has to be where its attack says.
func TestGuards_AreInTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, one := range attacks() {
		if len(one.guards) == 0 || names[one.name] {
			t.Errorf("attack %q has no guard, or its name is used twice", one.name)
		}
		names[one.name] = true
		weakened(t, one)
	}
	if len(names) < 25 {
		t.Errorf("%d attacks, want at least 25", len(names))
	}
}

// Without its guard an attack succeeds: it fails for its guard, and for nothing else.
func TestGuards_TakenOutLetTheAttackSucceed(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the commands once for each attack")
	}
	for _, one := range attacks() {
		t.Run(one.name, func(t *testing.T) {
			if one.live {
				sandboxed(t)
			}
			pattern := "^TestAttacks_Fail$/^" + regexp.QuoteMeta(strings.ReplaceAll(one.name, " ", "_")) + "$"
			command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", weakened(t, one), "-run", pattern, ".")
			out, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "the attack succeeded: "+one.name) {
				t.Errorf("it does not succeed without its guard: %v\n%s", err, out)
			}
		})
	}
}
