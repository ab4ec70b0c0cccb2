// Package history has the commands for series of results and their changes.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/site"
	"assay.dev/assay/operator/internal/store"
)

const (
	DefaultHistory = "assay-history"
	HistoryHelp    = "folder with the history, or its URL: s3://bucket/history/PROJECT?endpoint=http://host:port"
)

func addHistory(command *cobra.Command, where *string) {
	command.Flags().StringVar(where, "history", DefaultHistory, HistoryHelp)
}

// Location is the place of a history: a folder, a URL, or the schedules of a namespace on the cluster.
type Location struct {
	where  string
	Source cli.Source
	// cluster is set if the history was found through the cluster.
	cluster *cli.Cluster
}

func (p *Location) AddFlags(command *cobra.Command, flags *genericclioptions.ConfigFlags) {
	p.Source.Flags = flags
	addHistory(command, &p.where)
	p.Source.AddCredentials(command)
}

// PlaceHelp documents the sources of a history for commands that read one.
const PlaceHelp = "With -n NAMESPACE and without --history, the history of the namespace's schedules on the cluster is used, reached " +
	"like the ledger of a run. For a URL, credentials of the object store come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."

// Open opens the history, which stays reachable until the context ends.
func (p *Location) Open(ctx context.Context) (*archive.Archive, error) {
	if p.where != DefaultHistory || p.Source.Flags == nil || ptr.Deref(p.Source.Flags.Namespace, "") == "" {
		store, err := cli.OpenFolderOrURL(ctx, "--history", p.where)
		return archive.Open(store), err
	}
	cluster, err := cli.Connect(p.Source.Flags)
	if err != nil {
		return nil, err
	}
	where, err := historyOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	p.cluster = cluster
	store, err := p.Source.OpenFrom(ctx, cluster, "status.history", where)
	return archive.Open(store), err
}

// ledger opens the ledger of a point through the same connection.
func (p *Location) ledger(ctx context.Context, at string) (store.Store, error) {
	if p.cluster != nil {
		return p.Source.OpenFrom(ctx, p.cluster, "ledger", at)
	}
	return cli.OpenURL(ctx, at)
}

// historyOf returns the URL of the history in the status of the schedules of a namespace.
func historyOf(ctx context.Context, cluster *cli.Cluster) (string, error) {
	var schedules assayv1alpha1.BenchmarkScheduleList
	if err := cluster.List(ctx, &schedules, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("list BenchmarkSchedules in namespace %s: %w; name the history with --history", cluster.Namespace, err)
	}
	for i := range schedules.Items {
		if where := schedules.Items[i].Status.History; where != "" {
			return where, nil
		}
	}
	return "", cli.UsageError(fmt.Errorf("namespace %s: found %d BenchmarkSchedules, none with status.history; "+
		"create a BenchmarkSchedule, or name the history with --history", cluster.Namespace, len(schedules.Items)))
}

// ratioView is the structured form of a ratio with its interval.
type ratioView struct {
	Ratio  float64 `json:"ratio"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Blocks int     `json:"blocks"`
}

// ViewEstimate converts an estimate to a ratio with the interval that the pages show. It returns nil for nil.
func ViewEstimate(e *series.Estimate) *ratioView {
	if e == nil {
		return nil
	}
	ratio, low, high := site.Interval(*e)
	return &ratioView{ratio, low, high, e.Blocks}
}

func (r *ratioView) Text() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%s [%s, %s]", quantity.Short(r.Ratio, quantity.Times), quantity.Short(r.Low, ""), quantity.Short(r.High, ""))
}

// RecordView is the structured form of a record that a run has added.
type RecordView struct {
	Key    series.Key  `json:"key"`
	Kind   series.Kind `json:"kind"`
	Head   string      `json:"head"`
	Anchor string      `json:"anchor"`
	Ratio  *ratioView  `json:"ratio,omitempty"`
	Step   *ratioView  `json:"step,omitempty"`
	Reason string      `json:"reason,omitempty"`
	before string
}

func ViewRecord(r points.Keyed) RecordView {
	out := RecordView{Key: r.Key, Kind: r.Record.Kind, Head: r.Record.Head, Anchor: r.Record.Anchor, Step: ViewEstimate(r.Record.Step),
		Reason: r.Record.Reason, before: r.Record.Predecessor}
	if r.Record.Kind != series.Gap {
		out.Ratio = ViewEstimate(&r.Record.Ratio)
	}
	return out
}

func (r *RecordView) Text() string {
	if r.Kind == series.Gap {
		return fmt.Sprintf("%s: a gap: %s", SeriesLabel(r.Key), r.Reason)
	}
	text := fmt.Sprintf("%s: %s of %s", SeriesLabel(r.Key), r.Ratio.Text(), r.Anchor)
	if r.Kind == series.Bridge {
		text = fmt.Sprintf("%s: a bridge: anchor %s is %s of %s", SeriesLabel(r.Key), r.Head, r.Ratio.Text(), r.Anchor)
	}
	if r.Step != nil {
		text += fmt.Sprintf(", %s of %s", r.Step.Text(), r.before)
	}
	return text
}

// SeriesLabel formats the parts of a key that distinguish the series of a benchmark.
func SeriesLabel(key series.Key) string {
	return key.Metric + "." + key.Statistic + cli.AtPoint(key.Point)
}

// HistoryView is the structured form of a series.
type HistoryView struct {
	Key      series.Key       `json:"key"`
	Anchor   string           `json:"anchor,omitempty"`
	Segments []segmentView    `json:"segments"`
	Gaps     []gapView        `json:"gaps,omitempty"`
	Problems []series.Problem `json:"problems,omitempty"`
	Changes  []changeView     `json:"changes,omitempty"`
	// Dates are unconfirmed estimates of the offline detector in the newest segment.
	Dates []dateView `json:"dates,omitempty"`
}

type segmentView struct {
	Because  string      `json:"because"`
	Machine  string      `json:"machine"`
	Workload string      `json:"workload"`
	Anchor   string      `json:"anchor"`
	Points   []pointView `json:"points"`
	// Unpaired marks imported values, which have no anchor. Anchor is then their first revision.
	Unpaired bool `json:"unpaired,omitempty"`
}

type pointView struct {
	ID       string     `json:"id"`
	Sequence int64      `json:"sequence"`
	At       time.Time  `json:"at"`
	Revision string     `json:"revision"`
	Image    string     `json:"image,omitempty"`
	Again    bool       `json:"again,omitempty"`
	Ratio    *ratioView `json:"ratio"`
	Before   string     `json:"predecessor,omitempty"`
	Step     *ratioView `json:"step,omitempty"`
	Ledger   string     `json:"ledger"`
}

type gapView struct {
	ID       string    `json:"id"`
	Sequence int64     `json:"sequence"`
	At       time.Time `json:"at"`
	Revision string    `json:"revision,omitempty"`
	Reason   string    `json:"reason"`
}

type changeView struct {
	ID    string       `json:"id"`
	State change.State `json:"state"`
	First int64        `json:"first"`
	Worse bool         `json:"worse"`
	Ratio float64      `json:"ratio"`
}

type dateView struct {
	From  int64   `json:"from"`
	First int64   `json:"first"`
	To    int64   `json:"to"`
	Ratio float64 `json:"ratio"`
	// Revision is the first one after the change.
	Revision string `json:"revision"`
	// between are the revisions that may be the first.
	between [2]string
}

func viewSeries(s *series.Series, book change.Book) HistoryView {
	out := HistoryView{Key: s.Key, Anchor: s.Anchor, Segments: []segmentView{}, Problems: s.Problems}
	for _, segment := range s.Segments {
		view := segmentView{segment.Because, segment.Machine, segment.Workload, segment.Anchor, nil, segment.Unpaired}
		for _, p := range segment.Points {
			view.Points = append(view.Points, pointView{
				ID: p.ID, Sequence: p.Sequence, At: p.At, Revision: p.Revision, Image: p.Image, Again: p.Again, Ratio: ViewEstimate(&p.Ratio),
				Before: p.Predecessor, Step: ViewEstimate(p.Step), Ledger: p.Ledger,
			})
		}
		out.Segments = append(out.Segments, view)
	}
	for _, gap := range s.Gaps {
		out.Gaps = append(out.Gaps, gapView{gap.ID, gap.Sequence, gap.At, gap.Head, gap.Reason})
	}
	for i := range book.Changes {
		c := &book.Changes[i]
		for _, effect := range c.Effects {
			if c.Project == s.Key.Project && effect.Series == s.Key.ID() {
				out.Changes = append(out.Changes, changeView{c.ID, c.State, c.First, effect.Worse, series.Ratio(effect.LogRatio)})
			}
		}
	}
	out.Dates = dates(s)
	return out
}

// dates returns the changes that the offline detector finds.
func dates(s *series.Series) []dateView {
	segment := s.Current()
	if segment == nil {
		return nil
	}
	var out []dateView
	for _, d := range watch.Dates(segment) {
		from, first, to := &segment.Points[d.From], &segment.Points[d.At], &segment.Points[d.To]
		out = append(out, dateView{
			from.Sequence, first.Sequence, to.Sequence, series.Ratio(d.Shift), first.Revision, [2]string{from.Revision, to.Revision},
		})
	}
	return out
}

func NewHistoryCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var where Location
	var form string
	command := &cobra.Command{
		Use:   "history [SERIES]",
		Short: "Show the results of a program over its revisions",
		Long: "Show the results of a program over its revisions. With a name it prints every point of the series with its interval, and its " +
			"segments and changes; otherwise the newest point of every series.\n\n" + PlaceHelp,
		Example: "  assay history\n  assay history sort -o json\n  assay history sort -n bench\n  assay history sort --history " +
			"'s3://assay/history/default?endpoint=http://minio:9000'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			views, err := readHistory(cmd.Context(), &where, args)
			if err != nil {
				return err
			}
			if done, err := cli.PrintStructured(cmd.OutOrStdout(), form, views); done {
				return err
			}
			if len(args) == 0 {
				return printSeries(cmd.OutOrStdout(), views)
			}
			for i := range views {
				if err := views[i].print(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	where.AddFlags(command, connection)
	cli.AddOutput(command, &form, "table", "json", "yaml")
	command.AddCommand(newRebuildCommand(), newRetainCommand(), newImportCommand())
	return command
}

func readHistory(ctx context.Context, where *Location, names []string) ([]HistoryView, error) {
	history, err := where.Open(ctx)
	if err != nil {
		return nil, err
	}
	read := history.All
	if len(names) > 0 {
		read = func(ctx context.Context) ([]*series.Series, error) { return history.OfBenchmark(ctx, names[0]) }
	}
	all, err := read(ctx)
	if err != nil {
		return nil, err
	}
	book, err := history.Book(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]HistoryView, 0, len(all))
	for _, s := range all {
		out = append(out, viewSeries(s, book))
	}
	if len(out) == 0 && len(names) > 0 {
		return nil, cli.UsageError(fmt.Errorf("no series %q in %s; list the series with %s history", names[0], history.URL(),
			cli.Program))
	}
	return out, nil
}

func printSeries(to io.Writer, views []HistoryView) error {
	out := &strings.Builder{}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SERIES\tMETRIC\tPOINTS\tSEGMENTS\tNEWEST\tREVISION\tRATIO\tCHANGES")
	for i := range views {
		h := &views[i]
		count, newest, revision, ratio := 0, "-", "-", (*ratioView)(nil)
		for _, segment := range h.Segments {
			count += len(segment.Points)
			last := segment.Points[len(segment.Points)-1]
			newest, revision, ratio = when(last.At, time.DateOnly), last.Revision, last.Ratio
		}
		confirmed := 0
		for _, c := range h.Changes {
			if c.State != change.Suspected && c.State != change.Invalid {
				confirmed++
			}
		}
		cli.PrintLine(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%d\n", h.Key.Benchmark, SeriesLabel(h.Key), count, len(h.Segments), newest, revision,
			ratio.Text(), confirmed)
	}
	_ = table.Flush() // Writes to a strings.Builder do not fail.
	_, err := io.WriteString(to, report.PrintableLines(out.String()))
	return err
}

func (h *HistoryView) print(to io.Writer) error {
	out := &strings.Builder{}
	cli.PrintLine(out, "%s, %s %% intervals\n", h.Key, quantity.InPercent(site.Confidence))
	changes := map[int64]string{}
	for _, c := range h.Changes {
		if c.State == change.Invalid {
			continue
		}
		changes[c.First] += fmt.Sprintf("%s: %s, %s, %s ", c.ID, c.State, quantity.Short(c.Ratio, quantity.Times), direction(c.Worse))
	}
	for _, segment := range h.Segments {
		kind := "segment, anchor"
		if segment.Unpaired {
			kind = "unpaired values, over the first of revision"
		}
		cli.PrintLine(out, "\n%s %s: %s\n", kind, segment.Anchor, segment.Because)
		table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "RUN\tAT\tREVISION\tOVER ANCHOR\tOVER PREDECESSOR\tBLOCKS\tCHANGE")
		for _, p := range segment.Points {
			step := p.Step.Text()
			if p.Step != nil {
				step += " of " + p.Before
			}
			revision := p.Revision
			if p.Again {
				revision += " (again)"
			}
			cli.PrintLine(table, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", p.Sequence, when(p.At, "2006-01-02 15:04"), revision, p.Ratio.Text(), step,
				p.Ratio.Blocks, changes[p.Sequence])
		}
		_ = table.Flush()
	}
	for _, gap := range h.Gaps {
		cli.PrintLine(out, "gap at run %d: %s\n", gap.Sequence, gap.Reason)
	}
	for _, d := range h.Dates {
		cli.PrintLine(out, "dated: the level changed by %s at revision %s (of %s to %s)\n", quantity.Short(d.Ratio, quantity.Times),
			report.ShortRevision(d.Revision), report.ShortRevision(d.between[0]), report.ShortRevision(d.between[1]))
	}
	for _, p := range h.Problems {
		cli.PrintLine(out, "note: %s: %s\n", p.ID, p.What)
	}
	fmt.Fprintln(out)
	_, err := io.WriteString(to, report.PrintableLines(out.String()))
	return err
}

// when formats a time; that of an imported value may be unknown.
func when(at time.Time, layout string) string {
	if at.Unix() == 0 {
		return "-"
	}
	return at.Format(layout)
}

// rebuilt and retained are the structured outputs of the commands that change a history.
type rebuilt struct {
	History string `json:"history"`
	Ledgers int    `json:"ledgers"`
	Runs    int    `json:"runs"`
}

type retained struct {
	History string `json:"history"`
	Removed int    `json:"removed"`
}

func newRebuildCommand() *cobra.Command {
	var where, form string
	command := &cobra.Command{
		Use:   "rebuild LEDGER...",
		Short: "Rebuild a history from the ledgers of its runs",
		Long: "Rebuild a history from the ledgers of its runs, given as folders or URLs. Existing points are retained, points with a newer " +
			"analysis are replaced, and ledgers of other runs are skipped.",
		Example: "  assay history rebuild assay-ledger/*",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := cli.OpenFolderOrURL(cmd.Context(), "--history", where)
			if err != nil {
				return err
			}
			ledgers := make([]store.Store, 0, len(args))
			for _, arg := range args {
				from, err := cli.OpenFolderOrURL(cmd.Context(), "ledger", arg)
				if err != nil {
					return err
				}
				ledgers = append(ledgers, from)
			}
			runs, err := archive.Open(s).Rebuild(cmd.Context(), ledgers...)
			if err != nil {
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, rebuilt{s.URL(), len(args), runs},
				"%d of %d ledgers belong to points and are now in %s\n", runs, len(args), s.URL())
		},
	}
	addHistory(command, &where)
	cli.AddOutput(command, &form, "text", "json", "yaml")
	return command
}

func newRetainCommand() *cobra.Command {
	var where, form string
	var full, every, thinned days
	command := &cobra.Command{
		Use:   "retain --full DAYS --every DAYS [--thinned DAYS]",
		Short: "Remove points beyond a retention period",
		Long: "Remove points beyond a retention period. All points younger than --full are retained. Of older points the first in every " +
			"--every days is retained up to an age of --thinned. Points that changes depend on and bridges between anchors are never removed.",
		Example: "  assay history retain --full 365 --every 7",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if full <= 0 {
				return cli.UsageError(errors.New("--full is missing; set the number of days for which every point is retained"))
			}
			policy := series.Retention{Full: time.Duration(full), Every: time.Duration(every), Thinned: time.Duration(thinned)}
			if err := policy.Check(); err != nil {
				return cli.UsageError(err)
			}
			store, err := cli.OpenFolderOrURL(cmd.Context(), "--history", where)
			if err != nil {
				return err
			}
			gone, err := archive.Open(store).Retain(cmd.Context(), policy, time.Now())
			if err != nil {
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, retained{store.URL(), gone}, "removed %d records from %s\n", gone, store.URL())
		},
	}
	addHistory(command, &where)
	cli.AddOutput(command, &form, "text", "json", "yaml")
	command.Flags().Var(&full, "full", "days for which every point is retained")
	command.Flags().Var(&every, "every", "interval in days at which older points are retained")
	command.Flags().Var(&thinned, "thinned", "maximum age in days of retained points (default: unlimited)")
	return command
}

// days is a flag value for a duration in whole days.
type days time.Duration

func (d *days) String() string { return quantity.Full(time.Duration(*d).Hours() / 24) }
func (d *days) Type() string   { return "days" }

func (d *days) Set(text string) error {
	const most = 36500
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= most) {
		return fmt.Errorf("invalid number of days %q; allowed are 0 to %d", text, most)
	}
	*d = days(n * float64(24*time.Hour))
	return nil
}
