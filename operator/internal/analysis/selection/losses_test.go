package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/record"
)

// What failed where it is not counted did fail, and what did not start did not; of a trial that told nothing nobody knows its outcome.
func TestEveryLossOfATrialIsCountedForItsArm(t *testing.T) {
	const block, name = "w000-b0000", "w000-b0000-s00000"
	again := func(outcome record.Outcome, warmup bool) *record.Attempt {
		out := ran(block, 0, outcome)
		if out.Warmup = warmup; warmup {
			out.Trial = record.TrialName(block, 0, true)
		}
		out.ID = "other/" + out.Trial
		return out
	}
	unread := []record.Problem{{Source: record.Source{Key: "attempts/" + block + "/third/" + name + ".json"}}}
	for label, c := range map[string]struct {
		first, second     *record.Attempt
		firstIs, secondIs Rejection
		problems          []record.Problem
		lost              string
		spoilt            int
	}{
		"one execution":                             {first: ran(block, 0, record.Succeeded)},
		"another one failed":                        {first: ran(block, 0, record.Succeeded), second: again(record.Failed, false), secondIs: superseded, lost: "1 failed in an execution that does not count"},
		"its warm-up did":                           {first: ran(block, 0, record.Succeeded), second: again(record.Failed, true), secondIs: superseded, lost: "1 failed in an execution that does not count"},
		"another one did not start":                 {first: ran(block, 0, record.Succeeded), second: again(record.NotStarted, false), secondIs: superseded},
		"a warm-up failed before it":                {first: ran(block, 0, record.Succeeded), second: again(record.Failed, true), lost: "1 failed in a warm-up"},
		"both failed, for one reason":               {first: ran(block, 0, record.Failed), firstIs: Failed, second: again(record.Failed, true), lost: "1 failed"},
		"another one cannot be read":                {first: ran(block, 0, record.Succeeded), problems: unread, lost: "1 of no use in another execution"},
		"the only other one is under a stale lease": {first: ran(block, 0, record.Succeeded), firstIs: staleLease, problems: unread, lost: "1 under a stale lease", spoilt: 1},
	} {
		t.Run(label, func(t *testing.T) {
			s := &Selection{Cells: map[*record.Attempt]Cell{}, Kinds: map[*record.Attempt]Rejection{}, Lost: map[Cell]Balance{}}
			var attempts []*record.Attempt
			for i, attempt := range []*record.Attempt{c.first, c.second} {
				if attempt == nil {
					continue
				}
				attempts, s.Cells[attempt] = append(attempts, attempt), At(0, 1)
				if kind := []Rejection{c.firstIs, c.secondIs}[i]; kind != "" {
					s.Kinds[attempt] = kind
				}
			}
			planned := plan{known: true, slots: map[string]plannedSlot{name: {cell: At(0, 1), block: block}}}
			s.count(twoArms(), planned, attempts, c.problems)
			if diff := cmp.Diff(c.lost, s.Lost[At(0, 1)].Lost.String()); diff != "" || len(s.Spoilt) != c.spoilt {
				t.Errorf("%d are spoilt, want %d; lost (-want +got):\n%s", len(s.Spoilt), c.spoilt, diff)
			}
		})
	}
}
