package html

import (
	"encoding/base64"
	"encoding/json"
	"html/template"

	"assay.dev/assay/operator/internal/quantity"
	summary "assay.dev/assay/operator/internal/report"
)

// file is something that the page holds, to copy or to download.
type file struct {
	Name, What string
	// Text is the text to display for copying, or "".
	Text string
	// Link holds the whole of it.
	Link template.URL
}

// Limits of embedded content in bytes: of a file, and of displayed text. The page names omitted content and its location.
const maxEmbedded, maxShownText = 1 << 20, 256 << 10

// embed puts the run and its data into the page.
func (r *report) embed() error {
	manifest, err := summary.Manifest(r.Exp)
	if err != nil {
		return err
	}
	whole, err := json.MarshalIndent(r.Result, "", " ")
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name, what, kind string
		data             []byte
		read             bool
	}{
		{"run.yaml", "the experiment, for assay and kubectl", "application/yaml", manifest, true},
		{"table.csv", "the results, for a spreadsheet", "text/csv", summary.CSV(r.Exp, r.Result), true},
		{"analysis.json", "everything that was found, block by block", "application/json", whole, false},
	} {
		if len(of.data) > maxEmbedded {
			r.Missing = append(r.Missing, of.name+" ("+quantity.Bytes(int64(len(of.data)))+")")
			continue
		}
		is := file{Name: of.name, What: of.what}
		is.Link = template.URL("data:" + of.kind + ";base64," + base64.StdEncoding.EncodeToString(of.data)) //nolint:gosec // Base64 of our own.
		if of.read && len(of.data) <= maxShownText {
			is.Text = string(of.data)
		}
		r.Files = append(r.Files, is)
	}
	return nil
}
