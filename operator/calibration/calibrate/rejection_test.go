package calibrate

import (
	"strconv"
	"strings"
	"testing"
)

// The rule that rejects single trials loses almost no precision on a quiet machine, and covers the truth beside a neighbour.
func TestRejections_SingleTrialsRetainPrecision(t *testing.T) {
	const runs = 400
	for _, line := range strings.Split(Rejections(runs, 1), "\n")[2:] {
		cells := strings.Split(line, "|")
		if len(cells) < 8 || !strings.Contains(cells[3], "takes its trial") {
			continue
		}
		number := func(i int) float64 {
			value, err := strconv.ParseFloat(strings.TrimSpace(cells[i]), 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		if coverage := number(6); coverage < 0.91 {
			t.Errorf("coverage %.3f: %s", coverage, line)
		}
		if strings.Contains(line, "rejecting limits") && (number(4) < 0.99 || number(5) > 1.02) {
			t.Errorf("a quiet machine costs trials or precision: %s", line)
		}
		if strings.Contains(line, "50 % slower") && number(5) > 0.5 {
			t.Errorf("a neighbour costs precision: %s", line)
		}
	}
}
