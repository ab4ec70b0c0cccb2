package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"assay.dev/assay/operator/calibration/figures"
)

// thresholdsFile has the limits of the figures of the scale test.
const thresholdsFile = "testdata/scale.json"

// thresholds are limits, with the runs from which they come.
type thresholds struct {
	// Machine and Form say where the runs were made, and of which size they are.
	Machine, Form string
	Figures       []threshold
}

// threshold is the limit of one figure.
type threshold struct {
	Figure string
	// Required is the limit that a run of any size must keep.
	Required float64
	// Values are those of the runs, with their mean and standard deviation. Limit is the mean with Margin deviations, for a run of the same
	// form on the same machine. None of these is set for a figure that was not measured without other work.
	Values                         []float64
	Mean, Deviation, Margin, Limit float64
}

func readThresholds(t *testing.T) thresholds {
	t.Helper()
	raw, err := os.ReadFile(thresholdsFile)
	if err != nil {
		t.Fatal(err)
	}
	var out thresholds
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A threshold that does not follow from its runs is a mistake in the file.
func TestThresholds_FollowFromTheirRuns(t *testing.T) {
	t.Parallel()
	const rounding = 0.01
	read := readThresholds(t)
	if read.Machine == "" || read.Form == "" || len(read.Figures) == 0 {
		t.Fatalf("%s does not say where its runs were made: %+v", thresholdsFile, read)
	}
	for _, one := range read.Figures {
		if one.Required <= 0 {
			t.Errorf("%s: nothing is required", one.Figure)
		}
		if len(one.Values) == 0 && one.Limit == 0 {
			continue
		}
		if len(one.Values) < 3 {
			t.Errorf("%s: %d runs give no deviation: make at least 3", one.Figure, len(one.Values))
			continue
		}
		mean, deviation := meanAndDeviation(one.Values)
		for name, pair := range map[string][2]float64{
			"mean": {one.Mean, mean}, "deviation": {one.Deviation, deviation}, "limit": {one.Limit, one.Mean + one.Margin*one.Deviation},
		} {
			if math.Abs(pair[0]-pair[1]) > rounding*math.Max(1, math.Abs(pair[1])) {
				t.Errorf("%s: the %s is %g, and follows as %g from the runs", one.Figure, name, pair[0], pair[1])
			}
		}
	}
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	for _, value := range values {
		mean += value / float64(len(values))
	}
	for _, value := range values {
		deviation += (value - mean) * (value - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(deviation)
}

// checkRequired compares figures with the limits that hold for any size.
func checkRequired(t *testing.T, all []figures.Figure) {
	t.Helper()
	required := map[string]float64{}
	for _, one := range readThresholds(t).Figures {
		required[one.Figure] = one.Required
	}
	for _, figure := range all {
		if limit, ok := required[figure.Figure]; ok && figure.Value > limit {
			t.Errorf("%s is %s %s, and at most %s is required", figure.Figure, fmt.Sprint(figure.Value), figure.Unit, fmt.Sprint(limit))
		}
	}
}
