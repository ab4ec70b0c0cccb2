package quantity

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
)

func TestFormat_Examples(t *testing.T) {
	cases := map[string]struct{ got, want string }{
		"a ratio":                                 {Format(13.2456, Times), "13.25x"},
		"a ratio below one":                       {Format(0.8718, Times), "0.8718x"},
		"a share has no unit":                     {Format(0.8718, "1"), "0.8718"},
		"a short time":                            {Format(0.0021, "s"), "2.100 ms"},
		"a shorter time":                          {Format(0.0000213, "s"), "21.30 µs"},
		"no time at all":                          {Format(0, "s"), "0.000 s"},
		"bytes":                                   {Format(12.5e9, "By/s"), "12.50 GB/s"},
		"a rate":                                  {Format(1898.88, "queries/s"), "1899 queries/s"},
		"a rate of thousands":                     {Format(123456, "queries/s"), "123.5 kqueries/s"},
		"without trailing zeros":                  {Short(1.5, Times), "1.5x"},
		"a whole number of milliseconds":          {Short(0.01, "s"), "10 ms"},
		"a whole number keeps its zeros":          {Short(1200, "queries/s"), "1200 queries/s"},
		"an exponent keeps its digits":            {Short(1.5e-6, "1"), "1.500e-06"},
		"an interval is in the unit of its value": {Interval(0.0021, ptr.To(0.002), ptr.To(0.0122), "s"), "2.100 ms [2.000, 12.20]"},
		"an interval without an end":              {Interval(2, nil, ptr.To(3.0), Times), "2.000x"},
		"per cent in significant digits":          {Percent(0.12345, 3), "12.3 %"},
		"per cent with a decimal":                 {PercentTo(0.5, 1), "50.0 %"},
		"a share from a manifest, in per cent":    {InPercent(0.07), "7"},
		"two digits":                              {Rough(3.14, false), "3.1"},
		"a whole number where it has more":        {Rough(314.9, true), "314"},
		"numbers side by side":                    {Plain(0.00012345, 2), "0.00012"},
		"every digit that there is":               {Full(0.1), "0.1"},
		"a number with its sign":                  {Signed(0.126, 2), "+0.13"},
		"a column of intervals":                   {WithEnds(1.234, 1, 2, 2), "1.23 [1.00, 2.00]"},
		"all decimals there are":                  {Decimals(0.25, -1), "0.25"},
		"a time before a clock was set back":      {Seconds(-3 * time.Second), "0s"},
		"a time to the second":                    {Seconds(61600 * time.Millisecond), "1m2s"},
		"a time to a tenth of one":                {Duration(61630*time.Millisecond, 100*time.Millisecond), "1m1.6s"},
		"a small file":                            {Bytes(12), "1 KiB"},
		"a file":                                  {Bytes(700 << 10), "700 KiB"},
		"a large file":                            {Bytes(5<<20 + 1), "5 MiB"},
		"a count of one":                          {Count(1, "block"), "1 block"},
		"a count of zero":                         {Count(0, "block"), "0 blocks"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("%q, want %q", c.got, c.want)
			}
		})
	}
}

// The text differs from the number by at most half a unit of its last digit, for random numbers and units.
func TestFormat_ErrorWithinHalfUnit(t *testing.T) {
	units := map[string]float64{
		" s": 1, " ms": 1e-3, " µs": 1e-6, " ns": 1e-9, "x": 1, "": 1, " B": 1, " kB": 1e3, " MB": 1e6, " GB": 1e9, " TB": 1e12,
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		value := math.Exp(60*random.Float64() - 30)
		unit := []string{"s", "1", Times, "By"}[random.IntN(4)]
		for _, text := range []string{Format(value, unit), Short(value, unit)} {
			end := strings.LastIndexAny(text, "0123456789") + 1
			number, err := strconv.ParseFloat(text[:end], 64)
			scale, known := units[text[end:]]
			if err != nil || !known || math.Abs(number*scale/value-1) > 0.5e-3+1e-12 {
				t.Fatalf("%v %s is written %q", value, unit, text)
			}
		}
	}
}

// byHand matches code that formats a number: a verb with a precision or of a float, or a call that formats a float or rounds a duration.
var byHand = regexp.MustCompile(`(?:^|[^%])%[-+#0]*[0-9*]*(?:\.[0-9*]*[eEfFgG]|[ef]\b)|` +
	`strconv\.(?:Format|Append)Float\(|\.Round\((?:time\.|[0-9]+ ?\* ?time)`)

func TestByHand_MatchesFormatting(t *testing.T) {
	for code, want := range map[string]bool{
		`"%.3g"`: true, `"took %.2f s"`: true, `"%+.1f"`: true, `"%-8.3f"`: true, `"%6.f"`: true, `"%.*f"`: true, `"%f"`: true, `"%08e"`: true,
		`strconv.FormatFloat(v, 'g', 4, 64)`: true, `strconv.AppendFloat(b, v, 'f', 1, 64)`: true, `took.Round(time.Second)`: true,
		`took.Round(10 * time.Millisecond)`: true,
		`"%d %% faster"`:                    false, `"%d%%f"`: false, `"found %g"`: false, `"%s %d %v"`: false, `math.Round(v)`: false, `"%3E"`: false, `(i-1)%every`: false,
	} {
		if got := byHand.MatchString(code); got != want {
			t.Errorf("%s formats a number: %v, want %v", code, got, want)
		}
	}
}

// Other packages must not format numbers, because their formats would diverge.
func TestQuantity_OnlyFormatter(t *testing.T) {
	others := map[string]string{
		"analysis/stats/stats.go":    "rounds numbers for machines",
		"analysis/estimate/clock.go": "looks for the last digit of a number",
		"history/bisect/bisect.go":   "writes a ratio beside its probability",
		"quantity/quantity.go":       "writes numbers",
		"report/chart/chart.go":      "writes coordinates",
		"report/chart/scale.go":      "labels a scale to its step",
		"fixture/machine.go":         "rounds a clock that attempts are dated by",
		"status/status.go":           "rounds a time that the API server keeps",
	}
	files := 0
	for _, folder := range []string{"..", filepath.FromSlash("../../cmd"), filepath.FromSlash("../../api")} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			raw, err := os.ReadFile(path)
			why, other := others[strings.TrimPrefix(filepath.ToSlash(path), "../")]
			written := byHand.FindString(string(raw))
			switch {
			case written != "" && !other:
				t.Errorf("%s formats a number by itself (%s): use package quantity, so that it reads as everywhere", path, written)
			case written == "" && other:
				t.Errorf("%s no longer %s: remove it from this test", path, why)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if files < 300 {
		t.Errorf("%d files were read: this test looks in the wrong place", files)
	}
}

func TestNumber_NonFiniteRejected(t *testing.T) {
	for text, want := range map[string]float64{"1.5": 1.5, "-2e3": -2000, "0": 0} {
		if got, err := Number(text); err != nil || got != want {
			t.Errorf("%q is %g, %v, want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"NaN", "nan", "Inf", "+Inf", "-infinity", "1e999", "", "high", "1 "} {
		if got, err := Number(text); err == nil || got != 0 {
			t.Errorf("%q is %g, want an error", text, got)
		}
	}
}
