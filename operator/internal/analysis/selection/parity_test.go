package selection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// TestCheckParity_EachDisagreement: arm old is the baseline, null runs the same program and new another one.
func TestCheckParity_EachDisagreement(t *testing.T) {
	type given map[string]string // The digests of an arm's outputs at both points, a letter for each attempt and a comma between the points.
	for name, c := range map[string]struct {
		parity   experiment.Parity
		outputs  given
		baseline string
		wrong    map[string]string
		seen     int
		compared bool
	}{
		"all agree":                        {"", given{"old": "a,b", "new": "a,b", "null": "a,b"}, "", nil, 6, true},
		"a candidate differs":              {"", given{"old": "a,b", "new": "a,c", "null": "a,b"}, "", map[string]string{"new": "at size=2 arm new gives another output than the baseline"}, 6, true},
		"a candidate differs at both":      {"", given{"old": "a,b", "new": "c,c", "null": "a,b"}, "", map[string]string{"new": "at size=1"}, 6, true},
		"a candidate disagrees":            {"", given{"old": "a,b", "new": "aca,b"}, "", map[string]string{"new": "at size=1 arm new disagrees with itself: sha256:a"}, 4, true},
		"the baseline disagrees":           {"", given{"old": "ac,b", "new": "a,b"}, "at size=1 arm old disagrees with itself", nil, 4, true},
		"the null arm differs":             {"", given{"old": "a,b", "null": "a,c"}, "at size=2 arm null gives another output", nil, 4, true},
		"the baseline has no output":       {"", given{"new": "a,b"}, "", nil, 2, true},
		"a candidate has none":             {"", given{"old": "a,b"}, "", nil, 2, true},
		"inputs differ by arm":             {experiment.ParityPerArm, given{"old": "a,b", "new": "c,d", "null": "a,b"}, "", nil, 6, false},
		"inputs differ, and one disagrees": {experiment.ParityPerArm, given{"old": "a,b", "new": "cd,d"}, "", map[string]string{"new": "disagrees with itself"}, 4, false},
		"inputs differ, but the null arm's": {
			experiment.ParityPerArm, given{"old": "a,b", "null": "c,b"}, "at size=1 arm null gives another output", nil, 4, false,
		},
		"outputs are not compared": {experiment.ParityNone, given{"old": "a,b", "new": "c,d"}, "", nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			exp := twoArms()
			exp.Arms = append(exp.Arms, record.Arm{Name: "null", Null: true})
			exp.Plan.Parity = c.parity
			attempts := []*record.Attempt{{Arm: "old", Point: "size=1"}, {Arm: "old", Point: "size=1", Result: &record.Result{}}}
			for _, arm := range exp.Arms {
				digests := strings.Split(c.outputs[arm.Name], ",")
				for point := range digests {
					for i, digest := range digests[point] {
						attempts = append(attempts, &record.Attempt{
							ID: string(rune('0' + i)), Arm: arm.Name, Point: exp.Points[point].Key,
							Result: &record.Result{Parity: &record.Parity{Algorithm: "sha256", Digest: string(digest), Items: 1}},
						})
					}
				}
			}
			got := CheckParity(exp, attempts)
			if len(got.Seen) != c.seen || got.Compared != c.compared || (got.Baseline == "") != (c.baseline == "") ||
				!strings.Contains(got.Baseline, c.baseline) || len(got.Wrong) != len(c.wrong) {
				t.Errorf("%+v", got)
			}
			for arm, want := range c.wrong {
				if !strings.Contains(got.Wrong[arm], want) {
					t.Errorf("arm %s: %q, want %q", arm, got.Wrong[arm], want)
				}
			}
		})
	}
}

func TestParityRefused_BaselineRefusesAllArms(t *testing.T) {
	wrong := &Parity{Wrong: map[string]string{"new": "it differs"}}
	all := &Parity{Baseline: "it differs", Wrong: map[string]string{"new": "it differs"}}
	got := []string{wrong.Refused("new"), wrong.Refused("newer"), all.Refused("newer")}
	if diff := cmp.Diff([]string{"it differs", "", "the baseline is unusable: it differs"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
