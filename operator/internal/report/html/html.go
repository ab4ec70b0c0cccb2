// Package html writes the report that people read and pass on: one file without scripts, fonts or links to anywhere, so
// that it opens from an object store, a mail or a disk, today and in ten years. Marks show their figures and series can be hidden by
// styles alone, and the run and its data are in the page.
package html

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"regexp"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
	summary "assay.dev/assay/operator/internal/report"
)

//go:embed page.html.tmpl
var files embed.FS

//go:embed style.css
var style string

// Beginning is that of every report: it runs no script and loads nothing, so nothing that was written into it does.
const Beginning = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'">
`

// directive matches instructions to browsers in place of headers. No policy prevents a refresh to another site.
var directive = regexp.MustCompile(`(?i)http-equiv`)

// Inert makes a report from a ledger safe to display. Users with a key of the ledger can replace it, so it is prefixed with the policy of
// genuine reports, and other directives are removed.
func Inert(raw []byte) []byte {
	inert := directive.ReplaceAll(bytes.TrimPrefix(raw, []byte(Beginning)), []byte("data-$0"))
	return []byte(Beginning + summary.Published(string(inert)))
}

// Style is the style sheet of the report, for other pages that look like it.
func Style() string { return style }

var page = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{
	"style":      func() template.CSS { return template.CSS(style) },       //nolint:gosec // Our own file.
	"beginning":  func() template.HTML { return template.HTML(Beginning) }, //nolint:gosec // A constant.
	"cell":       cell,
	"confidence": summary.Confidence,
	"describe":   analysis.Describe,
	"feasible":   summary.Feasible,
	"term":       linkToTerm,
	"terms":      func() []term { return terms },
}).ParseFS(files, "page.html.tmpl"))

// figure matches a figure with its interval.
var figure = regexp.MustCompile(`^(-?[\d.]+\S*(?: \S+)?) (\[[^\[\]]+\])$`)

// cell is the text of a cell of a table. A figure with its interval breaks between the two and nowhere else, so that wide tables fit.
func cell(text string) template.HTML {
	if parts := figure.FindStringSubmatch(text); parts != nil {
		whole := func(part string) string { return `<span class="whole">` + template.HTMLEscapeString(part) + `</span>` }
		return template.HTML(whole(parts[1]) + " " + whole(parts[2])) //nolint:gosec // Both parts are escaped.
	}
	return template.HTML(template.HTMLEscapeString(text)) //nolint:gosec // It is escaped.
}

// Render renders the report of an analysis. The plots of single trials need the evidence.
func Render(exp *experiment.Experiment, result *analysis.Analysis, evidence record.Evidence) ([]byte, error) {
	var out bytes.Buffer
	shown := newReport(exp, result, evidence)
	err := shown.embed()
	if err == nil {
		err = page.Execute(&out, shown)
	}
	if err != nil {
		return nil, fmt.Errorf("HTML report of %s/%s: %w", exp.Run.Namespace, exp.Run.Name, err)
	}
	return []byte(summary.Published(summary.Visible(out.String()))), nil
}
