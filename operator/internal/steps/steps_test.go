package steps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// schemas is the folder of the formats that Go and Rust share.
const schemas = "../../../runner/schema"

// measured is an experiment with these arms, of which names that end in -null are copies of the baseline, and points.
func measured(arms []string, points int) *experiment.Experiment {
	exp := &experiment.Experiment{}
	for i, name := range arms {
		exp.Arms = append(exp.Arms, record.Arm{Name: name, Baseline: name == "base", Null: strings.HasSuffix(name, "-null")})
		for p := range points {
			exp.Cells = append(exp.Cells, record.Cell{Arm: i, Point: p, Env: map[string]string{"A": fmt.Sprint(p)}})
		}
	}
	for p := range points {
		exp.Points = append(exp.Points, record.Point{Key: fmt.Sprintf("n=%d", p), Parameters: map[string]string{"n": fmt.Sprint(p)}})
	}
	return exp
}

func resolved(line string, arm int, point map[string]string) ([]string, error) {
	return []string{"/bin/" + line, fmt.Sprint(arm), point["n"]}, nil
}

// For random arms, points and steps, every point and arm has its steps once, and the null arm those of the baseline.
func TestOf_EveryPointAndArmHasItsSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(57, 1))
	for range 200 {
		arms := []string{"old", "new", "base"}[random.IntN(3):]
		random.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
		written := slices.Clone(arms)
		if random.IntN(2) == 0 {
			arms = slices.Insert(slices.Clone(arms), random.IntN(len(arms)+1), "base-null")
		}
		lines := Lines{}
		for _, kind := range Kinds {
			for range []int{0, 1, len(written)}[random.IntN(3)] {
				lines[kind] = append(lines[kind], fmt.Sprintf("%s-%d", kind, len(lines[kind])))
			}
		}
		exp := measured(arms, 1+random.IntN(3))
		got, err := Of(exp, lines, time.Minute, nil, resolved)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Cells) != len(arms)*len(exp.Points) {
			t.Fatalf("%d cells of %d arms and %d points", len(got.Cells), len(arms), len(exp.Points))
		}
		for _, cell := range got.Cells {
			position := slices.Index(written, strings.TrimSuffix(cell.Arm, "-null"))
			for _, kind := range Kinds {
				var want []string
				if given := lines[kind]; len(given) > 0 {
					want = []string{"/bin/" + given[position%len(given)], fmt.Sprint(position), strings.TrimPrefix(cell.Point, "n=")}
				}
				if !slices.Equal(cell.Argv(kind), want) {
					t.Fatalf("%s of %s at %s is %q, want %q", kind, cell.Arm, cell.Point, cell.Argv(kind), want)
				}
			}
		}
	}
}

func TestOf_InvalidStepsAreNamed(t *testing.T) {
	two := measured([]string{"base", "new"}, 1)
	for name, tc := range map[string]struct {
		lines   Lines
		timeout time.Duration
		says    string
	}{
		"three for two arms": {Lines{Prepare: {"a", "b", "c"}}, time.Minute, "invalid --prepare: given 3 times for 2 arms"},
		"no time":            {Lines{Prepare: {"a"}}, 0, "invalid --step-timeout 0s: allowed are"},
		"days":               {Lines{Prepare: {"a"}}, 25 * time.Hour, "invalid --step-timeout 25h0m0s"},
		"an unknown program": {Lines{Cleanup: {"no"}}, time.Minute, `--cleanup "no": not there`},
	} {
		t.Run(name, func(t *testing.T) {
			missing := func(string, int, map[string]string) ([]string, error) { return nil, errors.New("not there") }
			_, err := Of(two, tc.lines, tc.timeout, nil, missing)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one that says %q", err, tc.says)
			}
		})
	}
}

// The fixture that the runner's tests read is the document of this package.
func TestDocument_IsTheSharedFormat(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(schemas, "fixtures", "valid", "steps-all.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document Document
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	var want, got any
	again, err := json.Marshal(document)
	if err != nil || json.Unmarshal(raw, &want) != nil || json.Unmarshal(again, &got) != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-fixture +document)\n%s", diff)
	}
	if document.Schema != Schema || !document.Has(Cleanup) {
		t.Errorf("schema %q, steps %+v", document.Schema, document.Cells)
	}
}
