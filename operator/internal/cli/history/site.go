package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/site"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/suggest"
)

// Modes of linking the reports of points.
const (
	linkReports, copyReports, noReports = "link", "copy", "none"
	// ReportsPrefix is the folder of copied reports in a site.
	ReportsPrefix = "reports/"
	// shownMissing is the maximum number of ledgers without a report that are printed.
	shownMissing = 5
)

// SiteWritten is the structured output of assay site.
type SiteWritten struct {
	Site    string `json:"site"`
	Index   string `json:"index"`
	Series  int    `json:"series"`
	Reports int    `json:"reports"`
	Bytes   int    `json:"bytes"`
	// Missing lists the ledgers without a readable report, with the errors.
	Missing []string `json:"missing,omitempty"`
}

// warn prints the ledgers without a report.
func (w *SiteWritten) warn(stderr io.Writer) {
	for i, missing := range w.Missing {
		if i == shownMissing {
			cli.PrintLine(stderr, "warning: no report of %d more ledgers; list them with -o json\n", len(w.Missing)-i)
			break
		}
		cli.PrintLine(stderr, "warning: no report of %s\n", missing)
	}
}

type siteOptions struct {
	history                           Location
	out, title, base, commit, reports string
	served                            []string
	every                             days
}

func NewSiteCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var o siteOptions
	var form string
	command := &cobra.Command{
		Use:   "site --out DIR",
		Short: "Write the history of a project as static pages",
		Long: "Write the history of a project as static pages: an overview, a page per series with intervals, segments and changes, and an " +
			"Atom feed of the changes. The pages work without scripts and without a network, from a disk or any web server.\n\n" +
			"Points link to the reports of their runs. --reports link refers to the ledgers, relative to the pages or through --served; " +
			"copy copies the reports to the pages; none omits links and does not read ledgers.\n\n" +
			PlaceHelp,
		Example: "  assay site --out public\n  assay site --out public -n bench --reports copy\n" +
			"  assay site --out public --reports copy --base https://bench.example.org " +
			"--commit 'https://github.com/acme/sort/commit/{revision}'\n" +
			"  assay site --out public --history 's3://assay/history/default?endpoint=http://minio:9000' " +
			"--served s3://assay=https://bench.example.org/ledgers",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return cli.UsageError(err)
			}
			written, err := writeSite(cmd.Context(), o, time.Now())
			if err != nil {
				return err
			}
			if done, err := cli.PrintStructured(cmd.OutOrStdout(), form, written); done {
				return err
			}
			written.warn(cmd.ErrOrStderr())
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d series, %s, %s: %s\n", written.Series, quantity.Count(written.Reports, "report"),
				quantity.Bytes(int64(written.Bytes)), written.Index)
			return err
		},
	}
	o.history.AddFlags(command, connection)
	cli.AddOutput(command, &form, "text", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&o.out, "out", "", "folder to write to, or its URL: s3://bucket/prefix?endpoint=http://host:port; required")
	flags.StringVar(&o.title, "title", "Benchmarks", "title of the pages")
	flags.StringVar(&o.base, "base", "", "address of the published pages, for the links of the feed")
	flags.StringVar(&o.commit, "commit", "", "address of a commit, with the placeholder "+points.Placeholder)
	flags.StringVar(&o.reports, "reports", linkReports, "links to reports: link, copy or none")
	flags.StringArrayVar(&o.served, "served", nil, "STORE=ADDRESS, the public address of a store for links to reports; may be repeated")
	flags.Var(&o.every, "every", "interval of points in days; series without a point for three intervals are marked silent")
	return command
}

func (o *siteOptions) check() error {
	if o.out == "" {
		return errors.New("--out is missing; name the output folder")
	}
	if known := []string{linkReports, copyReports, noReports}; !slices.Contains(known, o.reports) {
		return fmt.Errorf("invalid --reports %q: %s", o.reports, suggest.Allowed(o.reports, known))
	}
	for _, served := range o.served {
		from, to, ok := strings.Cut(served, "=")
		if !ok || from == "" || to == "" {
			return fmt.Errorf("invalid --served %q: use STORE=ADDRESS, such as s3://assay=https://bench.example.org/ledgers", served)
		}
		if err := checkAddress("--served", to); err != nil {
			return err
		}
	}
	if err := errors.Join(checkAddress("--base", o.base), checkAddress("--commit", o.commit)); err != nil {
		return err
	}
	if o.commit != "" && !strings.Contains(o.commit, points.Placeholder) {
		return fmt.Errorf("invalid --commit %q: the placeholder %s is missing", o.commit, points.Placeholder)
	}
	return nil
}

// checkAddress returns an error if the address is not an http or https URL, because browsers would follow it.
func checkAddress(flag, address string) error {
	if address == "" {
		return nil
	}
	parsed, err := url.Parse(strings.ReplaceAll(address, points.Placeholder, "revision"))
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return fmt.Errorf("invalid %s %q; use an address with https:// or http://", flag, address)
	}
	return nil
}

// writeSite writes the pages of a history. It does not remove pages of deleted series, which are no longer linked.
func writeSite(ctx context.Context, o siteOptions, now time.Time) (*SiteWritten, error) {
	history, err := o.history.Open(ctx)
	if err != nil {
		return nil, err
	}
	to, err := cli.OpenFolderOrURL(ctx, "--out", o.out)
	if err != nil {
		return nil, err
	}
	all, err := history.All(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, cli.UsageError(fmt.Errorf("no series in %s; create one with assay run --local --series", history.URL()))
	}
	book, err := history.Book(ctx)
	if err != nil {
		return nil, err
	}
	out := &SiteWritten{Site: to.URL(), Index: indexOf(to.URL()), Series: len(all)}
	write := func(name string, content []byte) error {
		out.Bytes += len(content)
		return to.Replace(ctx, name, content)
	}
	reports, err := o.findReports(ctx, all, to.URL(), out, write)
	if err != nil {
		return nil, err
	}
	files, err := site.Pages(all, book, site.Options{
		Title: o.title, Base: o.base, Commit: o.commit, Reports: reports, Every: time.Duration(o.every), Now: now,
	})
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := write(file.Name, file.Content); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// findReports returns the addresses of the reports of all points by the URL of their ledger. Unreadable ledgers are recorded in Missing and
// do not fail the site.
func (o *siteOptions) findReports(ctx context.Context, all []*series.Series, here string, out *SiteWritten,
	write func(name string, content []byte) error) (map[string]string, error) {
	reports, seen := map[string]string{}, map[string]bool{}
	if o.reports == noReports {
		return reports, nil
	}
	for _, s := range all {
		for _, segment := range s.Segments {
			for i := range segment.Points {
				at := segment.Points[i].Ledger
				if at == "" || seen[at] {
					continue
				}
				seen[at] = true
				address, content, err := o.reportOf(ctx, at, here)
				switch {
				case ctx.Err() != nil:
					return nil, ctx.Err()
				case err != nil:
					out.Missing = append(out.Missing, at+": "+err.Error())
					continue
				case content != nil:
					if err := write(address, content); err != nil {
						return nil, err
					}
				}
				reports[at] = address
				out.Reports++
			}
		}
	}
	return reports, nil
}

// reportOf returns the address of the newest report of a ledger, and its content if reports are copied.
func (o *siteOptions) reportOf(ctx context.Context, at, here string) (string, []byte, error) {
	if o.reports == linkReports {
		// Without a public address of the store there is no link, so the ledger is not read.
		if _, err := o.addressOf(at, ledger.HTMLKey(0), here); err != nil {
			return "", nil, err
		}
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	store, err := o.history.ledger(ctx, at)
	if err != nil {
		return "", nil, err
	}
	if err := ledger.CheckFormat(ctx, store); err != nil {
		return "", nil, err
	}
	newest, err := ledger.NewestReport(ctx, store)
	if err != nil {
		return "", nil, err
	}
	if newest == "" {
		return "", nil, errors.New("no report.html found")
	}
	if o.reports == linkReports {
		address, err := o.addressOf(store.URL(), newest, here)
		return address, nil, err
	}
	raw, err := store.Get(ctx, newest)
	return ReportsPrefix + record.SHA256([]byte(at))[:16] + ".html", html.Inert(raw), err
}

// addressOf returns the address at which a browser can read an object of a store.
func (o *siteOptions) addressOf(base, key, here string) (string, error) {
	at, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	at.RawQuery = ""
	for _, served := range o.served {
		from, to, _ := strings.Cut(served, "=")
		if rest, ok := strings.CutPrefix(at.String()+"/", strings.TrimSuffix(from, "/")+"/"); ok {
			if slices.Contains(strings.Split(at.Path, "/"), "..") {
				return "", errors.New("it is outside of the served folder")
			}
			return strings.TrimSuffix(to, "/") + "/" + path.Join(rest, key), nil
		}
	}
	pages, err := url.Parse(here)
	switch {
	case err != nil:
		return "", err
	case at.Scheme != "file":
		return "", errors.New("a browser cannot read that store: say with --served where it can, or use --reports copy")
	case strings.HasSuffix(at.Path, store.ArchiveExtension):
		return "", errors.New("a report inside an archive has no address: use --reports copy")
	case pages.Scheme != "file":
		return "", errors.New("pages in an object store cannot lead to a folder: use --reports copy")
	}
	relative, err := filepath.Rel(filepath.FromSlash(pages.Path), filepath.Join(filepath.FromSlash(at.Path), filepath.FromSlash(key)))
	return (&url.URL{Path: filepath.ToSlash(relative)}).String(), err
}

// indexOf is what to open: a path, or the URL of an object.
func indexOf(store string) string {
	at, err := url.Parse(store)
	if err != nil {
		return store
	}
	at = at.JoinPath(site.IndexName)
	if at.RawQuery = ""; at.Scheme == "file" {
		return at.Path
	}
	return at.String()
}
