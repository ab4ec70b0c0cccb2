package analysis

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// listsOf are the paths of the lists in a type, as the beginning and the end of JSON that has one of them.
func listsOf(of reflect.Type, before, after string, depth int) (found [][2]string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case depth > 3:
	case of.Kind() == reflect.Slice:
		found = append(found, [2]string{before + "[", "]" + after})
		found = append(found, listsOf(of.Elem(), before+"[", "]"+after, depth+1)...)
	case of.Kind() == reflect.Map:
		found = append(found, listsOf(of.Elem(), before+`{"a":`, "}"+after, depth+1)...)
	case of.Kind() == reflect.Interface:
		found = append(found, [2]string{before + "[", "]" + after})
	case of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				found = append(found, listsOf(of.Field(i).Type, fmt.Sprintf(`%s{%q:`, before, name), "}"+after, depth+1)...)
			}
		}
	}
	return found
}

// room is how much a function allocated.
func room(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Every list of an analysis, filled up to the size limit, is rejected or decoded within the memory limit. A growing list is copied, so
// twice as much is allocated in total.
func TestParse_MemoryIsBounded(t *testing.T) {
	const most = 3 * mostRoom
	lists := listsOf(reflect.TypeFor[Analysis](), "", "", 0)
	if len(lists) < 15 {
		t.Fatalf("found only %d lists", len(lists))
	}
	for _, list := range lists {
		for _, element := range []string{"{}", "null", "1"} {
			for _, count := range []int{200_000, MostBytes / (len(element) + 1) * 9 / 10} {
				raw := []byte(list[0] + strings.TrimSuffix(strings.Repeat(element+",", count), ",") + list[1])
				if taken := room(func() { _, _ = Parse(raw) }); taken > most {
					t.Errorf("%s%s,…%s: %d elements take %d bytes, want at most %d", list[0], element, list[1], count, taken, most)
				}
			}
		}
	}
}

func TestParse_Limits(t *testing.T) {
	// As large as one of 100,000 trials at 4,096 points and arms.
	large := Analysis{Schema: Schema}
	low := 1.0
	estimate := Estimate{Value: 1, Unit: "s", Low: &low, High: &low, Blocks: 10}
	for i := range 4096 {
		at := fmt.Sprint("batchSize=", i)
		large.Arms = append(large.Arms, ArmResult{Point: at, Arm: "loop", Metric: "latency", Statistic: "median", Estimate: estimate})
		large.Ratios = append(large.Ratios, RatioResult{Point: at, Candidate: "fused", Metric: "latency", Statistic: "median",
			Estimate: estimate, PerBlock: map[string]float64{"w000-b0000": 1, "w000-b0001": 1, "w000-b0002": 1}})
	}
	for i := range 20_000 {
		large.Excluded = append(large.Excluded, Exclusion{Attempt: fmt.Sprint("pod/w000-b0000-s", i), Reason: "steal"})
	}
	raw, err := json.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ raw, says string }{
		"a large one":                        {string(raw), ""},
		"brackets in a string":               {`{"layout": "` + strings.Repeat(`[{},\"`, 400_000) + `"}`, ""},
		"more bytes than any":                {`{"layout": "` + strings.Repeat("a", MostBytes) + `"}`, "at most 16777216 are allowed"},
		"more results than any":              {`{"gates": [{}` + strings.Repeat(",{}", 1_000_000) + `]}`, "at most 67108864 are allowed"},
		"results that are nothing":           {`{"gates": [null` + strings.Repeat(",null", 1_000_000) + `]}`, "at most 67108864 are allowed"},
		"no analysis, at full length":        {`{"gates": [1` + strings.Repeat(",1", 3_000_000) + `]}`, "at most 67108864 are allowed"},
		"lists in lists without end":         {strings.Repeat("[", 1_000_000), "at most 67108864 are allowed"},
		"a few lists in lists":               {strings.Repeat("[", 20_000), "exceeded max depth"},
		"an end inside of a string":          {`{"layout": "\`, "escape code"},
		"more closing than opening brackets": {`}]}`, "invalid character"},
		"nothing":                            {"", "unexpected end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.raw))
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %q", err, tc.says)
			}
		})
	}
}
