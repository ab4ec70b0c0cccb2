package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func plain(v float64) string { return trimFloat(v) }

func TestTicks(t *testing.T) {
	for name, test := range map[string]struct {
		scale scale
		want  []float64
	}{
		"round values inside a linear scale":                              {scale{low: 0, high: 10}, []float64{0, 2, 4, 6, 8, 10}},
		"decades and halves on a logarithmic scale":                       {scale{low: 1, high: 100, log: true}, []float64{1, 2, 5, 10, 20, 50, 100}},
		"a logarithmic scale of a few per cent is read like a linear one": {scale{low: 0.98, high: 1.03, log: true}, []float64{0.98, 1, 1.02}},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.scale.ticks(5)
			if len(got) != len(test.want) {
				t.Fatalf("ticks %v, want %v", got, test.want)
			}
			for i := range got {
				if math.Abs(got[i]-test.want[i]) > 1e-9 {
					t.Fatalf("ticks %v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestScale(t *testing.T) {
	t.Run("no logarithm of zero or of a negative number", func(t *testing.T) {
		if newScale([]float64{0, 10}, true, 0, 100).log {
			t.Error("logarithmic with a zero")
		}
	})
	t.Run("every value lies inside", func(t *testing.T) {
		for _, log := range []bool{false, true} {
			values := []float64{3, 7, 1000, 0.2}
			s := newScale(values, log, 10, 200)
			for _, v := range values {
				if at := s.at(v); at < 10 || at > 200 {
					t.Errorf("log %v: %g is drawn at %g, outside 10 to 200", log, v, at)
				}
			}
		}
	})
	t.Run("larger is further along", func(t *testing.T) {
		s := newScale([]float64{1, 100}, true, 100, 0)
		if s.at(10) <= s.at(90) || math.Abs(s.at(10)-50) > 1 {
			t.Errorf("10 is at %g and 90 at %g on an axis from 100 to 0", s.at(10), s.at(90))
		}
	})
	t.Run("one value, no value and NaN make a scale", func(t *testing.T) {
		for _, values := range [][]float64{nil, {5}, {0}, {math.NaN(), math.Inf(1)}} {
			if s := newScale(values, true, 0, 1); !(s.low < s.high) {
				t.Errorf("scale of %v is from %g to %g", values, s.low, s.high)
			}
		}
	})
}

// plots are one of each kind, with text that would break out of it.
func plots() map[string]string {
	evil := `<script>alert("x")</script>&'`
	low, high := 1.0, 3.0
	return map[string]string{
		"lines": string(Lines{Title: evil, XLabel: evil, XTicks: []Tick{{1, evil}, {2, "2"}}, LogY: true, Rules: []Tick{{1, evil}}, Y: plain, Series: []Series{
			{Index: 0, Points: []Point{{X: 1, Y: 2, Low: &low, High: &high, Title: evil}, {X: 2, Y: 4}}}, {Index: 9, Points: []Point{{X: 1, Y: math.NaN()}}},
		}}.SVG()),
		"interval": string(Interval{Title: evil, Value: 2, Low: 1, High: 3, From: 1.5, To: math.Inf(1), Ratio: true, Class: "go", Number: plain}.SVG()),
		"forest":   string(Forest{Title: evil, Rows: []Estimate{{Name: evil, Value: 2, Low: 1, High: 3, Class: "go"}, {Name: "n", Value: math.NaN()}}, From: math.Inf(-1), To: 1.5, Ratio: true, Number: plain}.SVG()),
		"strips":   string(Strips{Title: evil, Rows: []Strip{{Name: evil, Values: []float64{1, 2, 3}, Titles: []string{evil, "b", "c"}, Median: 2}}, X: plain}.SVG()),
		"stack":    string(Stack{Title: evil, Bars: []Bar{{Name: evil, Parts: []Part{{Value: 2, Title: evil}}}}, X: plain}.SVG()),
		"timeline": string(Timeline{
			Title: evil, XLabel: evil, XTicks: []Tick{{1, evil}}, Neutral: 1, Y: plain, Gaps: []float64{2},
			Marks: []Mark{{At: 1.5, Label: evil, Class: "go", Link: evil}},
			Stretches: []Stretch{
				{Points: []Point{{X: 1, Y: 1, Low: &low, High: &high, Title: evil, Link: evil}, {X: 2, Y: math.NaN(), Title: evil}}},
				{Label: evil, Points: []Point{{X: 3, Y: 1, Title: evil}}}, {},
			},
		}.SVG()),
		"times": string(Times{Title: evil, XLabel: evil, Until: 3, Y: plain, Points: []Moment{{At: 1, Value: 2, Title: evil}, {At: 2, Value: 1, Out: true, Title: evil}}}.SVG()),
	}
}

func TestPlot_HostileTextIsEscaped(t *testing.T) {
	for name, svg := range plots() {
		decoder := xml.NewDecoder(strings.NewReader(svg))
		var elements []string
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in %s", name, err, svg)
			}
			if start, ok := token.(xml.StartElement); ok {
				elements = append(elements, start.Name.Local)
			}
		}
		if slices.Contains(elements, "script") {
			t.Errorf("%s: text became an element: %s", name, svg)
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: a coordinate is no number: %s", name, svg)
		}
	}
}

// Figures are reached by a mouse, a finger and a keyboard alike, without a script.
func TestPlot_MarksShowTheirFigures(t *testing.T) {
	for name, svg := range plots() {
		if name == "interval" {
			continue // It stands in a table, beside its figures.
		}
		picks, links := strings.Count(svg, `class="pick`), strings.Count(svg, `<a class="pick`)
		if picks == 0 || picks != strings.Count(svg, `class="readout"`) || picks != strings.Count(svg, `tabindex="0"`)+links ||
			picks != strings.Count(svg, `class="hit"`) {
			t.Errorf("%s: %d marks can be picked:\n%s", name, picks, svg)
		}
		if strings.Count(svg, "hint") != 1 {
			t.Errorf("%s says nothing of it", name)
		}
	}
	if silent := string(Lines{Y: plain, Series: []Series{{Points: []Point{{X: 1, Y: 1}}}}}.SVG()); strings.Contains(silent, "hint") {
		t.Error("a plot without figures asks to point at them")
	}
}

func TestInterval_RegionOfTheGateIsShaded(t *testing.T) {
	inf := math.Inf(1)
	cases := map[string]struct {
		from, to float64
		shaded   []string
		bounds   int
	}{
		"at least the bound: from the bound to the right edge": {1, inf, []string{`x="115"`, `width="115"`}, 1},
		"at most the bound: from the left edge to the bound":   {-inf, 1, []string{`x="0"`, `width="115"`}, 1},
		"between two bounds: from the one to the other":        {0.95, 1.05, nil, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			svg := string(Interval{Value: 1, Low: 0.9, High: 1.1, From: tc.from, To: tc.to, Number: plain}.SVG())
			_, shaded, _ := strings.Cut(svg, `class="holds"`)
			shaded, _, _ = strings.Cut(shaded, "/>")
			for _, want := range tc.shaded {
				if !strings.Contains(shaded, want) {
					t.Errorf("shaded is %s, want %s", shaded, want)
				}
			}
			if got := strings.Count(svg, `class="bound"`); got != tc.bounds {
				t.Errorf("%d lines of bounds, want %d: %s", got, tc.bounds, svg)
			}
		})
	}
}

func TestTimes_ThinningRetainsExcludedTrials(t *testing.T) {
	times := Times{Until: 10, Y: plain}
	for i := range 20000 {
		times.Points = append(times.Points, Moment{At: float64(i) / 2000, Value: 1, Out: i == 7777})
	}
	svg := string(times.SVG())
	if n := strings.Count(svg, `class="moment`); n > 2*shownMoments {
		t.Errorf("%d marks of 20000 are drawn", n)
	}
	if !strings.Contains(svg, `class="moment out"`) {
		t.Error("the trial that does not count is not drawn")
	}
}

// All trials may be excluded, and all may have the same value. The size of the plot of a hundred thousand trials is bounded in both cases,
// and it retains the largest and the smallest value.
func TestPlot_SizeIsBounded(t *testing.T) {
	const trials, most = 100_000, 1 << 20
	for name, value := range map[string]func(i int) float64{
		"the same of all":       func(int) float64 { return 1 },
		"rising":                func(i int) float64 { return float64(i) },
		"falling":               func(i int) float64 { return float64(trials - i) },
		"one that is far above": func(i int) float64 { return map[bool]float64{true: 1e6, false: 1}[i == 77_777] },
	} {
		moments := Times{Until: trials, Y: plain}
		var values []float64
		for i := range trials {
			v := value(i)
			values = append(values, v)
			moments.Points = append(moments.Points, Moment{At: float64(i), Value: v, Out: i%2 == 1, Title: "trial of " + plain(v)})
		}
		svg := string(moments.SVG())
		if len(svg) > most || strings.Count(svg, `class="moment`) > 4*shownMoments {
			t.Errorf("%s: %d KiB with %d readings", name, len(svg)>>10, strings.Count(svg, `class="moment`))
		}
		if highest := "trial of " + plain(slices.Max(values)); name == "one that is far above" && !strings.Contains(svg, highest) {
			t.Errorf("%s: the highest reading is not drawn", name)
		}
		svg = string(Strips{X: plain, Rows: []Strip{{Values: values, Median: 1}}}.SVG())
		if dots := strings.Count(svg, `class="dots`); len(svg) > most || dots > 2*shownMoments || dots < shownMoments/2 {
			t.Errorf("%s: %d KiB with %d dots", name, len(svg)>>10, dots)
		}
	}
}

func TestPlot_LongTitleIsWrapped(t *testing.T) {
	for sentence, c := range map[string]struct {
		text string
		want []string
	}{
		"a short one has one line":           {"latency", []string{"latency"}},
		"none has one line too":              {"", []string{""}},
		"it breaks at a space":               {"gain, m4r, size=8,delta=0", []string{"gain, m4r,", "size=8,delta=0"}},
		"a long word breaks behind a comma":  {"gain size=8,delta=0,threads=1", []string{"gain", "size=8,delta=0,", "threads=1"}},
		"one without commas breaks anywhere": {"abcdefghijklmnopqrst", []string{"abcdefghijklmno", "pqrst"}},
		"the last line is truncated":         {"aaaaaaaaaaaaaa bbbbbbbbbbbbbb cccccccccc dddddddddd", []string{"aaaaaaaaaaaaaa", "bbbbbbbbbbbbbb", "cccccccccc ddd…"}},
		"characters count and not bytes":     {"µµµµµµµµµµµµµµµ", []string{"µµµµµµµµµµµµµµµ"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := wrap(c.text, 15, 3); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	plot := string(Stack{Title: "time per iteration, batchSize=32,deltaEntries=1", X: plain}.SVG())
	for _, part := range []string{`viewBox="0 -15 `, `y="-2">time per iteration,<`, `y="13">batchSize=32,deltaEntries=1<`} {
		if !strings.Contains(plot, part) {
			t.Errorf("no %s in %s", part, plot)
		}
	}
}

// A thousand points are a curve and a band; the newest have marks, and so have those beside a change, however old.
func TestTimeline_PointsBesideChangeRetainMarks(t *testing.T) {
	timeline := Timeline{Neutral: 1, Y: plain, Marks: []Mark{{At: 99.5, Label: "a change"}}}
	var points []Point
	for i := range 1000 {
		points = append(points, Point{X: float64(i), Y: 1, Title: "point " + strconv.Itoa(i)})
	}
	timeline.Stretches = []Stretch{{Points: points[:400]}, {Points: points[400:], Label: "another machine"}}
	svg := string(timeline.SVG())
	for at, drawn := range map[int]bool{
		0: false, 90: false, 97: true, 99: true, 100: true, 102: true, 110: false, 879: false, 880: true, 999: true,
	} {
		if got := strings.Contains(svg, "<title>point "+strconv.Itoa(at)+"</title>"); got != drawn {
			t.Errorf("point %d has a mark: %v, want %v", at, got, drawn)
		}
	}
	if strings.Count(svg, `class="curve`) != 2 || strings.Count(svg, `class="band`) != 2 {
		t.Error("something joins two stretches, or a stretch has no band")
	}
	if spark := string(timeline.Spark("go")); strings.Contains(spark, "<text") || strings.Count(spark, `class="dot go"`) != 1 {
		t.Errorf("a spark has text, or not one newest point: %s", spark)
	}
}

// A timeline is wider than a phone and scrolled from its newest end: everything that it is read by is there, also of a first point.
func TestTimeline_StartsAtNewestEnd(t *testing.T) {
	svg := string(Timeline{
		Title: "one", XLabel: "revision", Neutral: 1, Y: plain, XTicks: []Tick{{7, "r7"}},
		Stretches: []Stretch{{Points: []Point{{X: 7, Y: 1.02, Title: "run 7"}}}},
	}.SVG())
	placed := regexp.MustCompile(`<(?:text class="(?:tick|label|note hint|readout)" text-anchor="[a-z]+"|circle class="mark s0") c?x="([0-9.]+)"`)
	got := placed.FindAllStringSubmatch(svg, -1)
	if len(got) < 6 {
		t.Fatalf("%d places in %s", len(got), svg)
	}
	for _, match := range got {
		if at, err := strconv.ParseFloat(match[1], 64); err != nil || at < 0.7*timelineWidth {
			t.Errorf("%s is not at the newest end of %g", match[0], timelineWidth)
		}
	}
	for _, end := range []string{`class="label" text-anchor="end"`, `class="note hint" text-anchor="end"`,
		`class="readout" text-anchor="end"`} {
		if !strings.Contains(svg, end) {
			t.Errorf("no %s in %s", end, svg)
		}
	}
}
