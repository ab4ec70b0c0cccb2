package site

import (
	"encoding/xml"
	"html"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/feeds"

	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/report"
)

// feedStart is the time of a feed of a history in which nothing has happened: a feed must have one.
var feedStart = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// feed renders the Atom feed (RFC 4287) of confirmed changes.
func (b *builder) feed(all []*series.Series) ([]byte, error) {
	happened := []time.Time{feedStart}
	for _, s := range all {
		happened = append(happened, s.Last)
	}
	feed := &feeds.Feed{
		Title: b.options.Title, Description: "Changes that a confirming run has shown", Author: &feeds.Author{Name: "Assay"},
		Link: &feeds.Link{Href: b.address(FeedName), Rel: "self"},
	}
	for _, c := range b.shown(nil) {
		if c.State == change.Suspected {
			continue
		}
		last := c.Latest()
		happened = append(happened, last.At)
		created := last.At
		if len(c.History) > 0 {
			created = c.History[0].At
		}
		sentence := report.ChangeSentence(c, b.names)
		content := "<p>" + html.EscapeString(sentence) + ".</p>"
		for _, e := range c.History {
			content += "<p>" + html.EscapeString(minute(e.At)+" "+e.Who+": "+strings.TrimSuffix(string(e.To)+", "+e.Why, ", ")) + "</p>"
		}
		feed.Add(&feeds.Item{
			Title: report.ChangeWord(c) + ": " + sentence, Id: identity(c), Created: created.UTC(), Updated: last.At.UTC(), Content: content,
			Link: &feeds.Link{Href: b.address(IndexName + "#change-" + c.ID), Type: "text/html"},
		})
	}
	feed.Updated = slices.MaxFunc(happened, time.Time.Compare).UTC()
	written := (&feeds.Atom{Feed: feed}).AtomFeed()
	// A feed keeps its identity when its pages move.
	written.Id = tag + "changes/" + url.PathEscape(b.options.Title)
	raw, err := xml.MarshalIndent(written, "", " ")
	return []byte(xml.Header + report.Published(report.Visible(string(raw))) + "\n"), err
}

// tag begins the identities of feeds and entries (RFC 4151).
const tag = "tag:assay.dev,2026:"

// identity of a change in feeds: the same wherever the pages are.
func identity(c *change.Change) string {
	return tag + "change/" + url.PathEscape(c.Project) + "/" + url.PathEscape(c.ID)
}

// address returns the URL of a file of the site, relative without a base.
func (b *builder) address(name string) string {
	if b.options.Base == "" {
		return name
	}
	return strings.TrimSuffix(b.options.Base, "/") + "/" + name
}
