package judge

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
)

func TestASearchCannotTellALoadWhoseTrialNeverEnded(t *testing.T) {
	exp := &experiment.Experiment{Plan: experiment.Plan{Search: &experiment.Search{}}}
	d := &estimate.Data{Chosen: &selection.Selection{}, Measured: map[selection.Cell]map[string]bool{}, Exp: exp}
	one := &selection.Completion{Of: 4, Done: 3, Unknown: 1, Unseen: "w000-b0000-s00001", How: selection.LostUnended}
	got := judgeLoad(d, selection.Cell{}, 4, one)
	if got.Outcome != "Uncertain" || !strings.Contains(got.Constraint, "begun and never ended") {
		t.Errorf("%+v", got)
	}
}
