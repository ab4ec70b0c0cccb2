// Package dashboards makes Assay's Grafana dashboards: Fleet, Run and History. Queries are in package queries; here is which
// panel shows one query and how it looks.
package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Generated is the folder of their JSON, from the folder of this package: it is in the chart, because a chart cannot read files outside its
// folder.
const Generated = "../charts/assay/generated/dashboards"

// UIDs of the dashboards, which are part of their addresses.
const (
	FleetUID   = "assay-fleet"
	RunUID     = "assay-run"
	HistoryUID = "assay-history"
)

// Tags are on all dashboards of Assay; overview is only on those that are not of one run, and links look for it.
const (
	Tag      = "assay"
	overview = "overview"
)

// All returns every dashboard by the name of its file.
func All() (map[string]dashboard.Dashboard, error) {
	out := map[string]dashboard.Dashboard{}
	for name, build := range map[string]func() (dashboard.Dashboard, error){"fleet.json": Fleet, "run.json": Run, "history.json": History} {
		made, err := build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = made
	}
	return out, nil
}

// Files are the dashboards as files.
func Files() (map[string][]byte, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	out, marks := map[string][]byte{}, Annotations()
	for name, made := range all {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(annotated{made, annotations{marks[name]}}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = text.Bytes()
	}
	return out, nil
}

// newPage begins a dashboard. All have the choice of a Prometheus, links to each other, and times as the viewer has them.
func newPage(uid, title, description, from, refresh string) *page {
	builder := dashboard.NewDashboardBuilder(title).Uid(uid).Description(description).Tags([]string{Tag, overview}).
		Time(from, "now").Refresh(refresh).Timezone(common.TimeZoneBrowser).Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus")).
		Link(inSight{dashboard.NewDashboardLinkBuilder("Assay").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{Tag, overview})})
	return &page{builder: builder}
}

// inSight puts a link beside the variables, and not into a menu.
type inSight struct {
	*dashboard.DashboardLinkBuilder
}

func (l inSight) Build() (dashboard.DashboardLink, error) {
	link, err := l.DashboardLinkBuilder.Build()
	link.Placement = nil
	return link, err
}

// page numbers its panels.
type page struct {
	builder *dashboard.DashboardBuilder
	panels  uint32
}

func (p *page) row(title string, panels ...cog.Builder[dashboard.Panel]) {
	p.panels++
	p.builder.WithRow(dashboard.NewRowBuilder(title).Id(p.panels))
	for _, panel := range panels {
		p.panels++
		p.builder.WithPanel(numbered{panel, p.panels})
	}
}

// numbered gives a panel its number, which is part of its address.
type numbered struct {
	cog.Builder[dashboard.Panel]
	id uint32
}

func (n numbered) Build() (dashboard.Panel, error) {
	panel, err := n.Builder.Build()
	panel.Id = &n.id
	return panel, err
}

// choice is a variable that the viewer chooses among the values of a label.
func choice(name, label, description, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Description(description).Datasource(source).
		Query(dashboard.StringOrMap{Map: map[string]any{"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"}}).
		Definition(query).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc)
}

// choices is a variable of which the viewer chooses one, some or all values.
func choices(name, label, description, query string) *dashboard.QueryVariableBuilder {
	all := dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}}
	return choice(name, label, description, query).Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{Text: dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}}, Value: all})
}
