package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/test/attacks"
)

func TestOutcome_OfTestOutput(t *testing.T) {
	of := suites[attacks.API]
	const name = "160,000 cells"
	for says, tc := range map[string]struct {
		output string
		want   outcome
	}{
		"its test fails": {"=== RUN   TestAPI_AttacksFail\n    --- FAIL: TestAPI_AttacksFail/160,000_cells (0.1s)\nFAIL", succeeded},
		"its test passes, and others fail": {"--- FAIL: TestAPI_AttacksFail (1s)\n    --- PASS: TestAPI_AttacksFail/160,000_cells (0.1s)\n" +
			"    --- FAIL: TestAPI_AttacksFail/160,000_cells_more (0.1s)\nFAIL", failed},
		"it does not compile":      {"FAIL assay.dev/assay/operator/test/integration [build failed]", untried},
		"there is no such test":    {"testing: warning: no tests to run\nPASS", untried},
		"it ends before its turn":  {"--- FAIL: TestAPI_AttacksFail (1s)\n    world_test.go:80: no such role\nFAIL", untried},
		"another test of its name": {"--- FAIL: TestAttacks/160,000_cells (0.1s)", untried},
	} {
		t.Run(says, func(t *testing.T) {
			if got := of.judge(name, tc.output); got != tc.want {
				t.Errorf("it %s, want that it %s", got, tc.want)
			}
		})
	}
}

// go test splits a pattern at slashes and treats each part as a regular expression.
func TestName_SelectsOneAttack(t *testing.T) {
	for _, attack := range attacks.All {
		test, sub, ok := strings.Cut(suites[attack.Needs].pattern(attack.Name), "/")
		if !ok || strings.Contains(sub, "/") || test == "" {
			t.Errorf("%q has the pattern %s/%s", attack.Name, test, sub)
		}
		picked := 0
		for _, other := range attacks.All {
			if regexp.MustCompile(sub).MatchString(subtest(other.Name)) {
				picked++
			}
		}
		if picked != 1 {
			t.Errorf("the pattern of %q picks %d attacks", attack.Name, picked)
		}
	}
}

func TestWithout_RestoresGuard(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "guard.txt")
	if err := os.WriteFile(file, []byte("stands"), 0o644); err != nil {
		t.Fatal(err)
	}
	attack := attacks.Attack{Name: "nothing", Needs: attacks.API}
	// There is no Go module, so no test runs.
	out := func(what string) attacks.Guard {
		return attacks.Guard{Edits: []attacks.Edit{{File: "guard.txt", Old: what, New: "is out"}}}
	}
	_, _, err := tree(folder).without(t.Context(), attack, out("stands"))
	if err == nil || !strings.Contains(err.Error(), "was not tried") {
		t.Errorf("error %v", err)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "stands" {
		t.Errorf("the guard %q (%v)", raw, err)
	}
	_, _, err = tree(folder).without(t.Context(), attack, out("stood"))
	if err == nil || !strings.Contains(err.Error(), `does not have "stood" once`) {
		t.Errorf("a guard that is not there: %v", err)
	}
}
