package ci

import (
	"fmt"
	"net/url"
	"strings"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/report"
)

// Changes renders changes as Markdown for a comment on a pull request or an issue. site is the address of the pages of the
// history, or "".
func Changes(all []change.Change, names report.Names, site string) string {
	var out strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&out, format+"\n", args...) }
	if len(all) == 0 {
		line("No change is suspected or known.")
	}
	for i := range all {
		c := &all[i]
		mark := "ℹ️"
		switch {
		case c.State.Ended():
		case c.State == change.Suspected:
			mark = "❔"
		case c.Regression():
			mark = "❌"
		default:
			mark = "✅"
		}
		line("### %s %s `%s`\n", mark, text(report.ChangeWord(c)), plain(c.ID))
		line("%s.\n", text(report.ChangeSentence(c, names)))
		line("| series | effect |")
		line("|---|---|")
		for _, e := range c.Effects {
			name := text(names.Series(e.Series))
			if address := page(site, "series-"+e.Series+".html"); address != "" && names.Has(e.Series) {
				name = "[" + name + "](<" + address + ">)"
			}
			line("| %s | %s |", name, text(report.Effect(e)))
		}
		line("")
		for _, e := range c.History {
			line("* %s %s: %s", e.At.UTC().Format("2006-01-02 15:04"), text(e.Who), text(strings.TrimSuffix(string(e.To)+", "+e.Why, ", ")))
		}
		if c.Acknowledged != nil {
			line("* %s %s took notice: %s", c.Acknowledged.At.UTC().Format("2006-01-02 15:04"), text(c.Acknowledged.Who), text(c.Acknowledged.Why))
		}
		if address := page(site, "index.html"); address != "" {
			line("\n[All that is known of it](<%s#change-%s>)", address, url.PathEscape(c.ID))
		}
		line("")
	}
	return cut(out.String(), MaxMarkdown, "assay changes lists it")
}

// plain formats a name as a code span without characters other than letters, digits and hyphens.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return -1
	}, name)
}

// page returns the address of a page below a site, or "" if site is not an http address.
func page(site, name string) string {
	at, err := url.Parse(site)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return ""
	}
	return at.JoinPath(name).String()
}
