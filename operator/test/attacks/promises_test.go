package attacks

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var repository = filepath.Join("..", "..", "..")

// promise is a row of the table in docs/threat-model.md.
type promise struct {
	text           string
	tests, attacks []string
	// excuse is the reason why a promise has no attack.
	excuse string
}

var testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")

func promises(t *testing.T) []promise {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(raw), "| promise | against | shown by | attacks |\n|---|---|---|---|\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !ok || !ended {
		t.Fatal("docs/threat-model.md has no table of promises with their attacks")
	}
	var out []promise
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 {
			t.Fatalf("a row with %d cells: %s", len(cells), line)
		}
		row := promise{text: strings.TrimSpace(cells[0])}
		for _, match := range testName.FindAllStringSubmatch(cells[2], -1) {
			row.tests = append(row.tests, match[1])
		}
		if why, none := strings.CutPrefix(strings.TrimSpace(cells[3]), "none: "); none {
			row.excuse = why
		} else {
			row.attacks = strings.Split(strings.TrimSpace(cells[3]), "; ")
		}
		out = append(out, row)
	}
	return out
}

// written returns the names of all tests in every module.
func written(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
	out := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != repository || entry.Name() == "target" ||
			entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		for _, match := range function.FindAllStringSubmatch(string(raw), -1) {
			out[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPromises_AreTestedAndAttacked(t *testing.T) {
	exists, named := written(t), map[string][]string{}
	for _, row := range promises(t) {
		if len(row.tests) == 0 {
			t.Errorf("%q names no test", row.text)
		}
		for _, name := range row.tests {
			if !exists[name] {
				t.Errorf("%q names the test %s, which does not exist", row.text, name)
			}
		}
		if (row.excuse == "") == (len(row.attacks) == 0) {
			t.Errorf("%q names no attack: name one, or write none: and why", row.text)
		}
		for _, name := range row.attacks {
			if !slices.ContainsFunc(All, func(a Attack) bool { return a.Name == name }) {
				t.Errorf("%q names the attack %q, which does not exist", row.text, name)
			}
			named[name] = append(named[name], row.text)
		}
	}
	seen := map[string]bool{}
	for _, a := range All {
		if seen[a.Name] {
			t.Errorf("two attacks are called %q", a.Name)
		}
		seen[a.Name] = true
		if !slices.Contains(named[a.Name], a.Promise) {
			t.Errorf("docs/threat-model.md does not name the attack %q under its promise %q", a.Name, a.Promise)
		}
		if a.Guard == "" {
			t.Errorf("%q names no guard", a.Name)
		}
	}
}

// An attack without a function here has one in test/e2e, and test/e2e has no others.
func TestAttacks_AreCarriedOut(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "test", "e2e", "attack_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var listed string
	for start, end := range map[string]string{"\nvar tests = ": "\n}\n", "\tbyName := ": "\n\t}\n"} {
		_, rest, begins := strings.Cut(string(raw), start)
		body, _, ends := strings.Cut(rest, end)
		if !begins || !ends {
			t.Fatalf("test/e2e/attack_test.go has no attacks after %q", start)
		}
		listed += body + "\n"
	}
	there := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^\t+"(.+)": +[A-Za-z_]+[,(]`).FindAllStringSubmatch(listed, -1) {
		there[match[1]] = true
	}
	for _, a := range All {
		if there[a.Name] == (a.Try != nil) {
			t.Errorf("attack %q: test/e2e carries it out: %v, this package: %v", a.Name, there[a.Name], a.Try != nil)
		}
		if a.Try == nil && a.Needs != Cluster {
			t.Errorf("attack %q has no function, and does not say that it takes a cluster", a.Name)
		}
		delete(there, a.Name)
	}
	for name := range there {
		t.Errorf("test/e2e has %q, which is no attack", name)
	}
}

// The figure is a count with the exact limits of Clopper and Pearson: of n attacks without a success at most n(1 - 0.025^(1/n)).
func TestFigure_HasItsLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		succeeded, tried int
		low, high        float64
	}{
		"none of 20":  {0, 20, 0, 3.3687},
		"one of 20":   {1, 20, 0.0253, 4.9747},
		"all of 20":   {20, 20, 16.6313, 20},
		"none of one": {0, 1, 0, 0.975},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct {
				Figure, Unit     string
				Value, Low, High float64
				Samples          int
			}
			if err := json.Unmarshal([]byte(Figure(tc.succeeded, tc.tried)), &got); err != nil {
				t.Fatal(err)
			}
			near := func(a, b float64) bool { return a-b < 1e-3 && b-a < 1e-3 }
			if got.Figure != "security.tenant_attacks_succeeded" || got.Unit != "1" || got.Value != float64(tc.succeeded) ||
				got.Samples != tc.tried ||
				!near(got.Low, tc.low) || !near(got.High, tc.high) {
				t.Errorf("%+v, want %+v", got, tc)
			}
		})
	}
}

// The edits that remove a guard must match the tree.
func TestGuards_CanBeRemoved(t *testing.T) {
	for _, a := range All {
		guard, there := Guards[a.Name]
		ways := 0
		for _, way := range []bool{len(guard.Edits) > 0, guard.Values != "", guard.Kept != ""} {
			if way {
				ways++
			}
		}
		if !there || ways != 1 {
			t.Errorf("attack %q: its guard is taken out in %d ways, want one, or why it stays", a.Name, ways)
		}
		if guard.Values != "" && a.Needs != Cluster {
			t.Errorf("attack %q needs no release, and its guard is in the values of one", a.Name)
		}
		for _, edit := range guard.Edits {
			raw, err := os.ReadFile(filepath.Join(repository, edit.File))
			if count := strings.Count(string(raw), edit.Old); err != nil || count != 1 || edit.Old == edit.New {
				t.Errorf("attack %q: %q is in %s %d times, want once (%v)", a.Name, edit.Old, edit.File, count, err)
			}
		}
	}
	for name := range Guards {
		if !slices.ContainsFunc(All, func(a Attack) bool { return a.Name == name }) {
			t.Errorf("a guard is for %q, which is no attack", name)
		}
	}
}

// The document lists the guard of each attack, in the order of All.
func TestGuards_AreInTheDocument(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(raw), "| attack | guard |\n|---|---|\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !ok || !ended {
		t.Fatal("docs/threat-model.md has no table of attacks with their guards")
	}
	var want strings.Builder
	for _, a := range All {
		fmt.Fprintf(&want, "| %s | %s |\n", a.Name, a.Guard)
	}
	if table+"\n" != want.String() {
		t.Errorf("docs/threat-model.md has the guards\n%s\nwant\n%s", table, want.String())
	}
}
