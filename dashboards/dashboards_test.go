package dashboards

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// generated reads the committed dashboards.
func generated(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(Generated + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	want, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	got := generated(t)
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			t.Errorf("%s differs from its source: run make generate", name)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is made from nothing: run make generate", name)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, want["run.json"]); err != nil {
		t.Fatal(err)
	}
	embedded, err := os.ReadFile("../operator/internal/dashboard/run.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(embedded), compact.Bytes()) {
		t.Error("operator/internal/dashboard/run.json is not the run's dashboard: run make generate")
	}
}

// panels calls do for every panel of every dashboard.
func panels(t *testing.T, do func(t *testing.T, file string, panel *dashboard.Panel)) {
	t.Helper()
	for file, raw := range generated(t) {
		made, err := strict(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, each := range made.Panels {
			if each.Panel != nil {
				t.Run(file+"/"+*each.Panel.Title, func(t *testing.T) { do(t, file, each.Panel) })
			}
		}
	}
}

func TestPanels_HaveDescriptions(t *testing.T) {
	// A table has a unit for each column.
	const table = "table"
	panels(t, func(t *testing.T, _ string, panel *dashboard.Panel) {
		if panel.Description == nil || len(*panel.Description) < 20 || !strings.HasSuffix(*panel.Description, ".") {
			t.Error("no description in sentences")
		}
		defaults := panel.FieldConfig.Defaults
		switch {
		case panel.Type == table, panel.Type == "state-timeline":
		case defaults.Unit == nil || *defaults.Unit == "":
			t.Error("no unit")
		}
		if defaults.NoValue == nil || len(*defaults.NoValue) < 4 || *defaults.NoValue == absent {
			t.Error("the text for no data gives no reason; absent is not zero")
		}
		if defaults.Thresholds == nil {
			t.Error("no thresholds: Grafana would turn 80 red")
		}
		if panel.Datasource == nil || *panel.Datasource.Uid != "${datasource}" {
			t.Error("does not ask the Prometheus that the viewer chose")
		}
	})
}

func TestPanels_DoNotOverlapAndAreNumbered(t *testing.T) {
	for file, raw := range generated(t) {
		made, err := strict(raw)
		if err != nil {
			t.Fatal(err)
		}
		taken := map[[2]uint32]string{}
		ids := map[uint32]string{}
		for _, each := range made.Panels {
			var position *dashboard.GridPos
			var id uint32
			var title string
			if each.Panel != nil {
				position, id, title = each.Panel.GridPos, *each.Panel.Id, *each.Panel.Title
			} else {
				position, id, title = each.RowPanel.GridPos, each.RowPanel.Id, *each.RowPanel.Title
			}
			if other := ids[id]; id == 0 || other != "" {
				t.Errorf("%s: %s has the number %d, as has %s", file, title, id, other)
			}
			ids[id] = title
			if position.X+position.W > 24 || position.W < 4 {
				t.Errorf("%s: %s is at column %d and %d wide", file, title, position.X, position.W)
			}
			for x := position.X; x < position.X+position.W; x++ {
				for y := position.Y; y < position.Y+position.H; y++ {
					if other := taken[[2]uint32{x, y}]; other != "" {
						t.Fatalf("%s: %s is over %s", file, title, other)
					}
					taken[[2]uint32{x, y}] = title
				}
			}
		}
	}
}

func TestDashboards_DependOnNoInstance(t *testing.T) {
	for file, raw := range generated(t) {
		made, err := strict(raw)
		if err != nil {
			t.Fatal(err)
		}
		if made.Id != nil {
			t.Errorf("%s has the number of one Grafana's database", file)
		}
		if first := made.Templating.List[0]; first.Name != "datasource" || first.Type != dashboard.VariableTypeDatasource {
			t.Errorf("%s does not begin with the choice of a Prometheus", file)
		}
		if len(*made.Uid) > 40 {
			t.Errorf("%s: Grafana takes at most 40 characters as uid: %s", file, *made.Uid)
		}
		for _, word := range []string{"http://", "https://", "localhost", "__inputs", "DS_PROMETHEUS"} {
			if bytes.Contains(raw, []byte(word)) {
				t.Errorf("%s names %q", file, word)
			}
		}
	}
}
