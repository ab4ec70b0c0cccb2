package explain

import (
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/estimate"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

func TestTurn_RankingReversesOnlyWhereBothLeadsExcludeATie(t *testing.T) {
	plus, minus := lead{point: 1, value: 0.2, low: 0.1, high: 0.3}, lead{point: 2, value: -0.2, low: -0.3, high: -0.1}
	more, less := lead{point: 3, value: 0.4, low: 0.1, high: 0.7}, lead{point: 4, value: -0.4, low: -0.7, high: -0.1}
	touching, below := lead{value: 0.2, low: 0, high: 0.4}, lead{value: -0.2, low: -0.4, high: 0}
	for name, tc := range map[string]struct {
		leads         []lead
		turns         bool
		ahead, behind int
	}{
		"no lead":                        {nil, false, 0, 0},
		"one direction":                  {[]lead{plus, more}, false, 0, 0},
		"the other":                      {[]lead{minus, less}, false, 0, 0},
		"both":                           {[]lead{plus, minus}, true, 1, 2},
		"the strongest of each":          {[]lead{plus, minus, more, less}, true, 3, 4},
		"the strongest come first":       {[]lead{more, less, plus, minus}, true, 3, 4},
		"an interval that begins at tie": {[]lead{touching, minus}, false, 0, 0},
		"an interval that ends at tie":   {[]lead{plus, below}, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ahead, behind, turns := turn(tc.leads)
			if turns != tc.turns || turns && (ahead.point != tc.ahead || behind.point != tc.behind) {
				t.Errorf("got %v ahead at %d, behind at %d; want %v at %d and %d", turns, ahead.point, behind.point, tc.turns, tc.ahead, tc.behind)
			}
		})
	}
}

func TestAxisPairs_NeighboursAndEndsOfEachLine(t *testing.T) {
	grid := func(sizes, threads []string) *estimate.Data {
		exp := &experiment.Experiment{}
		exp.Plan.Sweep = &experiment.Sweep{Axes: []experiment.Axis{{Name: "size", Values: sizes}, {Name: "threads", Values: threads}}}
		for _, size := range sizes {
			for _, n := range threads {
				exp.Points = append(exp.Points, record.Point{Parameters: map[string]string{"size": size, "threads": n}})
			}
		}
		return &estimate.Data{Exp: exp}
	}
	for name, tc := range map[string]struct {
		sizes, threads []string
		axis           string
		want           [][2]int
	}{
		"one value has no pair":            {[]string{"1"}, []string{"1"}, "size", nil},
		"two values are one pair":          {[]string{"1", "2"}, []string{"1"}, "size", [][2]int{{0, 1}}},
		"three values and their ends":      {[]string{"1", "2", "3"}, []string{"1"}, "size", [][2]int{{0, 1}, {1, 2}, {0, 2}}},
		"points of another axis are apart": {[]string{"1", "2"}, []string{"1", "2"}, "size", [][2]int{{0, 2}, {1, 3}}},
		"the other axis":                   {[]string{"1", "2"}, []string{"1", "2"}, "threads", [][2]int{{0, 1}, {2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := axisPairs(grid(tc.sizes, tc.threads), tc.axis); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNoiseWarnings_CountsOfArms(t *testing.T) {
	exp := &experiment.Experiment{Arms: []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}}}
	var keeps, rejects noise.Kind
	for _, kind := range noise.Kinds {
		if kind.Rejects() {
			rejects = kind
		} else {
			keeps = kind
		}
	}
	of := func(old, candidate int) selection.Noise {
		return selection.Noise{Trials: 80, Arms: []analysis.ArmNoise{
			{Arm: "old", Trials: 40, Rejected: old, Beyond: map[noise.Kind]int{keeps: old}},
			{Arm: "new", Trials: 40, Rejected: candidate, Beyond: map[noise.Kind]int{keeps: candidate}},
		}}
	}
	passed, kept, unread := of(0, 0), of(0, 30), of(0, 0)
	passed.Passed, passed.Beyond = 3, map[noise.Kind]int{rejects: 3, keeps: 2}
	kept.Arms[1].Rejected, kept.Beyond = 0, map[noise.Kind]int{keeps: 30}
	unread.Unread = map[noise.Kind]int{rejects: 7}
	headless := of(0, 30)
	for name, tc := range map[string]struct {
		found selection.Noise
		exp   *experiment.Experiment
		want  []string
		count int
	}{
		"nothing beyond a limit":              {of(0, 0), exp, nil, 0},
		"as many of each arm":                 {of(10, 10), exp, nil, 0},
		"a difference by chance":              {of(1, 3), exp, nil, 0},
		"more of the candidate":               {of(0, 30), exp, []string{"left out trials of some arms", "30 of 40 trials of new (" + differ}, 1},
		"more of the baseline":                {of(30, 0), exp, []string{"30 of 40 trials of old, 0 of 40 trials of new (" + differ}, 1},
		"without a baseline there is no test": {headless, &experiment.Experiment{Arms: []record.Arm{{Name: "old"}, {Name: "new"}}}, nil, 0},
		"trials used under Warn": {passed, exp,
			[]string{"3 of 80 trials ran beyond a noise limit and are used", string(rejects) + " in 3", string(keeps) + " beyond its limit"}, 2},
		"a limit that rejects nothing": {kept, exp, []string{string(keeps) + " beyond its limit leaves no trial out", "30 of 40 trials of new"}, 1},
		"a reading that is absent":     {unread, exp, []string{"could not be judged, of 80 trials", string(rejects) + " in 7"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Concat(noiseWarnings(tc.exp, tc.found), noiseNotes(tc.exp, tc.found))
			all := strings.Join(got, "\n")
			for _, text := range tc.want {
				if !strings.Contains(all, text) {
					t.Errorf("got %q, want %q in it", all, text)
				}
			}
			if len(got) != tc.count {
				t.Errorf("got %d warnings, want %d: %q", len(got), tc.count, all)
			}
		})
	}
}
