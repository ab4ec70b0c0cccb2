package main

import (
	"context"
	"testing"

	"assay.dev/assay/operator/calibration/calibrate"
)

func TestFigures_OnlySelectedStepsRun(t *testing.T) {
	o := &figureOptions{selfNoise: 8}
	cases := map[string]struct {
		only  []string
		steps int
		fails bool
	}{
		"all":                           {nil, 8, false},
		"one":                           {[]string{calibrate.SelfNoiseFigure}, 1, false},
		"two of one step":               {[]string{calibrate.UsedShareFigure, calibrate.OverAllFigure}, 1, false},
		"an unknown figure":             {[]string{"verdict.none"}, 0, true},
		"a known and an unknown figure": {[]string{calibrate.RealPowerFigure, "x"}, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := chosen(o.steps(), tc.only)
			if len(got) != tc.steps || (err != nil) != tc.fails {
				t.Errorf("%d steps, %v; want %d", len(got), err, tc.steps)
			}
		})
	}
	steps, _ := chosen(o.steps(), []string{calibrate.SelfNoiseFigure})
	figures, err := steps[0].run(context.Background(), nil)
	if err != nil || len(figures) != 1 || figures[0].Figure != calibrate.SelfNoiseFigure || figures[0].Value != 0 || figures[0].Samples != 8 {
		t.Errorf("%+v, %v", figures, err)
	}
}
