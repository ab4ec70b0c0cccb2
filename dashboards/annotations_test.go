package dashboards

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// annotationsOf are those of the generated dashboards, by file and name.
func annotationsOf(t *testing.T) map[string]Annotation {
	t.Helper()
	out := map[string]Annotation{}
	for file, raw := range generated(t) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		list, err := marks(fields["annotations"])
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(list) == 0 {
			t.Errorf("%s marks nothing", file)
		}
		for _, each := range list {
			out[file+": "+each.Name] = each
		}
	}
	return out
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Every annotation asks for documented metrics, has an answer without labels of a scrape, and its words name labels that the answer has.
func TestAnnotations_TextsNameLabelsOfTheAnswer(t *testing.T) {
	metrics, data := contract(t), newAnswers(t)
	for name, each := range annotationsOf(t) {
		expression := filled(each.Expr)
		if err := check(expression, metrics); err != nil {
			t.Errorf("%s: %v\n%s", name, err, expression)
		}
		answer := data.ask(t, expression, false)
		if len(answer) == 0 {
			t.Errorf("%s: nothing is there for %s", name, expression)
		}
		for labels, value := range answer {
			if each.UseValueForTime == "" && value != 1 {
				t.Errorf("%s: it lasts, and the answer is %g and not 1", name, value)
			}
			if strings.Contains(labels, "instance") || strings.Contains(labels, "pod=") {
				t.Errorf("%s: the answer has labels of the scrape: %s", name, labels)
			}
			for _, label := range placeholder.FindAllStringSubmatch(each.TitleFormat+each.TextFormat, -1) {
				if !strings.Contains(labels, label[1]+"=") {
					t.Errorf("%s: its words name %s, and an answer is %s", name, label[1], labels)
				}
			}
		}
		if *each.Datasource.Uid != "${datasource}" || !each.Enable || each.Name == "" || each.TextFormat == "" {
			t.Errorf("%s is %+v", name, each)
		}
	}
}

func TestAnnotations_AreAtTheirEvents(t *testing.T) {
	data, all := newAnswers(t), annotationsOf(t)
	for name, want := range map[string][]float64{
		"run.json: Start":                          {610_000},
		"run.json: End":                            {910_000},
		"fleet.json: Runs that ended":              {910_000, 1_510_000, 2_110_000},
		"history.json: Runs that ended":            {910_000, 1_510_000, 2_110_000},
		"history.json: Changes of the environment": {600_000, 1_800_000},
	} {
		each, ok := all[name]
		if !ok {
			t.Errorf("there is no %s among %v", name, slices.Sorted(maps.Keys(all)))
			continue
		}
		if got := slices.Sorted(maps.Values(data.ask(t, filled(each.Expr), true))); !slices.Equal(got, want) {
			t.Errorf("%s: events at %v, want %v", name, got, want)
		}
	}
}
