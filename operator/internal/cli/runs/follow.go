package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/history/watch"
)

// LocalProject is the project of histories without a cluster, and localSchedule the name of their schedule.
const LocalProject, localSchedule = "local", "local"

// seriesOptions are the options of a run that adds a point to a series.
type seriesOptions struct {
	name, revision, history      string
	anchor, predecessor, program string
	confirm                      bool
}

func (o seriesOptions) check(here bool) error {
	switch {
	case o.name == "" && o.revision+o.anchor+o.predecessor+o.program == "" && !o.confirm:
		return nil
	case o.name == "":
		return errors.New("--revision, --anchor, --predecessor, --programs and --confirm require --series")
	case !here:
		return errors.New("--series requires --local; on a cluster use a BenchmarkSchedule")
	case o.revision == "" && !o.confirm:
		return errors.New("--series requires --revision, such as --revision $(git rev-parse HEAD)")
	case o.revision == "" && o.anchor+o.predecessor != "":
		return errors.New("--anchor and --predecessor require --revision; a confirming run takes its revisions from the history")
	default:
		return nil
	}
}

func (o *seriesOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.name, "series", "", "with --local: measure a point of this series and add it to the history")
	flags.StringVar(&o.revision, "revision", "", "with --series: revision to measure, such as a commit")
	flags.StringVar(&o.history, "history", history.DefaultHistory, history.HistoryHelp)
	flags.StringVar(&o.anchor, "anchor", "", "with --series: new anchor for comparisons; this run also measures the "+
		"present one (default: the present anchor, or the first revision of a new series)")
	flags.StringVar(&o.predecessor, "predecessor", "", "with --series: previous revision (default: the newest in the history)")
	flags.StringVar(&o.program, "programs", "", "with --series: path of the program of a revision, such as builds/{revision}/server")
	flags.BoolVar(&o.confirm, "confirm", false, "with --series: run the confirming runs that are due, after the point if "+
		"--revision is given")
}

// seriesRun measures points of one series on this machine.
type seriesRun struct {
	options seriesOptions
	local   LocalOptions
	asked   *RunFile
	archive *archive.Archive
	policy  watch.Policy
	now     func() time.Time
	form    string

	stdout, stderr io.Writer
}

// PointRecorded is the structured output of a run with --series.
type PointRecorded struct {
	Series   string               `json:"series"`
	Sequence int64                `json:"sequence"`
	Revision string               `json:"revision"`
	Ledger   string               `json:"ledger"`
	Points   []history.RecordView `json:"points"`
	Problems []string             `json:"problems,omitempty"`
	Due      []confirmView        `json:"due,omitempty"`
}

type confirmView struct {
	Change string            `json:"change"`
	Number int               `json:"number"`
	Old    []points.Revision `json:"old"`
	New    []points.Revision `json:"new"`
}

func runSeries(ctx context.Context, connection *genericclioptions.ConfigFlags, file, form string, local LocalOptions, options seriesOptions,
	stdout, stderr io.Writer) error {
	question, err := ReadRunFile(ctx, connection, file, local.Templates)
	if err != nil {
		return err
	}
	store, err := cli.OpenFolderOrURL(ctx, "--history", options.history)
	if err != nil {
		return err
	}
	f := &seriesRun{
		options: options, local: local, asked: question, archive: archive.Open(store), policy: watch.Default(),
		now: time.Now, form: form, stdout: stdout, stderr: stderr,
	}
	if options.revision != "" {
		if err := f.measure(ctx); err != nil {
			return err
		}
	}
	if options.confirm {
		return f.confirm(ctx)
	}
	return nil
}

// measure runs the revision against the anchor and its predecessor, and records the results.
func (f *seriesRun) measure(ctx context.Context) error {
	known, err := f.archive.OfBenchmark(ctx, f.options.name)
	if err != nil {
		return fmt.Errorf("read the history: %w; no trials were run", err)
	}
	point, err := f.next(known)
	if err != nil {
		return err
	}
	here, err := f.prepare(f.asked, point, f.local.Out)
	if err != nil {
		return err
	}
	result, err := here.Run(ctx)
	if err != nil {
		return err
	}
	if f.form == "text" {
		if err := here.printFound(result, f.stdout); err != nil {
			return err
		}
	}
	return f.record(context.WithoutCancel(ctx), here, point, result)
}

// next returns the point that follows the known series.
func (f *seriesRun) next(known []*series.Series) (*points.Run, error) {
	out := &points.Run{
		Project: LocalProject, Benchmark: f.options.name, Analysis: 1, Schedule: localSchedule, At: f.now().UTC(),
		Arms: map[string]points.Revision{points.Head: {Revision: f.options.revision}},
	}
	var before *series.Point
	anchor := ""
	for _, s := range known {
		out.Sequence = max(out.Sequence, s.Number)
		if newest := s.Newest(); newest != nil && (before == nil || newest.Sequence > before.Sequence) {
			before, anchor = newest, s.Anchor
		}
	}
	out.Sequence++
	predecessor := f.options.predecessor
	if predecessor == "" && before != nil {
		predecessor = before.Revision
	}
	if predecessor != "" {
		out.Arms[points.Predecessor] = points.Revision{Revision: predecessor}
	}
	asked := f.options.anchor
	if anchor != "" && asked != "" && asked != anchor {
		out.Arms[points.NextAnchor] = points.Revision{Revision: asked}
	}
	// The first revision of a series is its anchor.
	out.Arms[points.Anchor] = points.Revision{Revision: cmp.Or(anchor, asked, f.options.revision)}
	return out, f.leaveOut(out)
}

// leaveOut removes arms whose program no longer exists. A point without predecessor remains valid. A missing anchor requires a new one,
// which starts a new segment.
func (f *seriesRun) leaveOut(point *points.Run) error {
	if f.options.program == "" {
		return nil
	}
	missing := func(arm string) string {
		revision, ok := point.Arms[arm]
		if path := FillRevision(f.options.program, revision.Revision); ok && !local.Executable(path) {
			return path
		}
		return ""
	}
	if path := missing(points.Predecessor); path != "" {
		cli.PrintLine(f.stderr, "warning: program %s of predecessor %s is missing or not executable; the point has no step\n", path,
			point.Arms[points.Predecessor].Revision)
		delete(point.Arms, points.Predecessor)
	}
	if next, ok := point.Arms[points.NextAnchor]; ok && missing(points.Anchor) != "" {
		cli.PrintLine(f.stderr,
			"warning: program %s of anchor %s is missing or not executable; the series restarts at %s without a bridge\n",
			missing(points.Anchor), point.Arms[points.Anchor].Revision, next.Revision)
		point.Arms[points.Anchor] = next
		delete(point.Arms, points.NextAnchor)
	}
	for _, arm := range []string{points.Anchor, points.NextAnchor, points.Head} {
		if path := missing(arm); path != "" {
			return cli.UsageError(fmt.Errorf("--programs %s: no executable file %s for %s %s; build it, or replace an anchor that cannot be "+
				"built with --anchor REVISION", f.options.program, path, arm, point.Arms[arm].Revision))
		}
	}
	return nil
}

// FillRevision replaces the placeholder {revision} in text.
func FillRevision(text, revision string) string {
	return strings.ReplaceAll(text, points.Placeholder, revision)
}

// prepare derives the run of a point or of a confirming run from the given run.
func (f *seriesRun) prepare(question *RunFile, point *points.Run, folder string) (*LocalRun, error) {
	run := question.Run.DeepCopy()
	var names []string
	for _, arm := range run.Spec.Arms {
		names = append(names, arm.Name)
	}
	head := slices.Index(names, points.Head)
	if head < 0 {
		return nil, question.Invalid("arms: found %s; an arm %q with %s in a parameter is required",
			strings.Join(names, ", "), points.Head, points.Placeholder)
	}
	like := map[string]assayv1alpha1.Arm{}
	for _, arm := range run.Spec.Arms {
		if !slices.Contains([]string{points.Head, points.Predecessor, points.Anchor}, arm.Name) {
			return nil, question.Invalid("arms: found %q; allowed are %s, %s and %s", arm.Name, points.Anchor, points.Predecessor, points.Head)
		}
		like[arm.Name] = arm
	}
	named := func(value string) bool { return strings.Contains(value, points.Placeholder) }
	if f.options.program == "" && !slices.ContainsFunc(slices.Collect(maps.Values(run.Spec.Arms[head].Parameters)), named) {
		return nil, question.Invalid("arms: arm %q does not depend on the revision; use %s in a parameter, or "+
			"--programs PATH/%s/PROGRAM", points.Head, points.Placeholder, points.Placeholder)
	}
	point.Parameters = maps.Clone(map[string]string(run.Spec.Arms[head].Parameters))
	run.Spec.Arms = nil
	local := f.local
	local.Out, local.Arms = folder, slices.Clone(f.local.Arms)
	for _, name := range armsInOrder(point.Arms) {
		arm, ok := like[name]
		if !ok {
			arm = like[points.Head]
		}
		revision := point.Arms[name].Revision
		arm = *arm.DeepCopy()
		arm.Name, arm.Baseline = name, name == points.Anchor
		for parameter, value := range arm.Parameters {
			arm.Parameters[parameter] = FillRevision(value, revision)
		}
		run.Spec.Arms = append(run.Spec.Arms, arm)
		if f.options.program != "" {
			local.Arms = append(local.Arms, name+"="+FillRevision(f.options.program, revision))
		}
	}
	points.JudgeHead(&run.Spec)
	here, err := PrepareLocal(question.WithRun(run), local, f.stderr)
	if err != nil {
		return nil, err
	}
	if point.ID == "" {
		point.ID = here.Experiment.Run.UID
	}
	here.history, err = json.MarshalIndent(point, "", " ")
	return here, err
}

// armsInOrder returns the names of the arms with the anchor first and the head last.
func armsInOrder(arms map[string]points.Revision) []string {
	between := slices.DeleteFunc(slices.Sorted(maps.Keys(arms)), func(name string) bool {
		return name == points.Anchor || name == points.Head
	})
	return slices.Concat([]string{points.Anchor}, between, []string{points.Head})
}

// record adds the results of a run to the history and prints them with due confirmations.
func (f *seriesRun) record(ctx context.Context, here *LocalRun, point *points.Run, result *analysis.Analysis) error {
	records, err := f.add(ctx, here, point, result)
	if err != nil {
		return err
	}
	out := PointRecorded{Series: f.options.name, Sequence: point.Sequence, Revision: f.options.revision, Ledger: point.Ledger}
	all, err := f.archive.OfBenchmark(ctx, f.options.name)
	if err != nil {
		return f.away(here, err)
	}
	book, err := f.archive.Update(ctx, func(book change.Book) (change.Book, error) {
		var err error
		for _, s := range all {
			if book, err = f.policy.Look(s, points.Worse(here.Experiment, s.Key), book, f.now().UTC()); err != nil {
				return book, err
			}
		}
		return book, nil
	})
	if err != nil {
		return f.away(here, err)
	}
	for _, r := range records {
		out.Points = append(out.Points, history.ViewRecord(r))
	}
	for _, s := range all {
		out.Problems = append(out.Problems, problemsOf(s, point.ID)...)
	}
	for _, due := range f.policy.Due(all, book) {
		out.Due = append(out.Due, confirmView{due.Change, due.Number, due.Old, due.New})
	}
	if err := f.printPoint(&out); err != nil {
		return err
	}
	if !slices.ContainsFunc(records, func(r points.Keyed) bool { return r.Record.Kind == series.Measured }) {
		return cli.WithCode(cli.ExitInconclusive, errors.New("the run has no results and is a gap in its series"))
	}
	return nil
}

// add appends the records of a run to the history.
func (f *seriesRun) add(ctx context.Context, here *LocalRun, point *points.Run, result *analysis.Analysis) ([]points.Keyed, error) {
	point.Ledger = here.Store.URL()
	records, err := point.Of(here.Experiment, result)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if err := f.archive.Append(ctx, records); err != nil {
		return nil, f.away(here, err)
	}
	return records, nil
}

// away wraps the error of a failed write to the history. The results remain in the ledger of the run.
func (f *seriesRun) away(here *LocalRun, err error) error {
	return fmt.Errorf("write the history: %w; no results are lost, record the run later with %s history rebuild --history %s %s", err,
		cli.Program,
		f.options.history, here.Executor.Folder)
}

// problemsOf returns the problems of a run, the segments that it starts, and repeated revisions.
func problemsOf(s *series.Series, id string) []string {
	var out []string
	if segment := s.Current(); len(s.Segments) > 1 && len(segment.Points) == 1 && segment.Points[0].ID == id {
		out = append(out, fmt.Sprintf("%s: a new segment: %s", s.Key, segment.Because))
	}
	for _, p := range s.Problems {
		if p.ID == id {
			out = append(out, fmt.Sprintf("%s: %s", s.Key, p.What))
		}
	}
	if newest := s.Newest(); newest != nil && newest.ID == id && newest.Again {
		out = append(out, fmt.Sprintf("%s: revision %s was measured before, so that no commit explains a difference", s.Key, newest.Revision))
	}
	return out
}

func (f *seriesRun) printPoint(out *PointRecorded) error {
	if done, err := cli.PrintStructured(f.stdout, f.form, out); done {
		return err
	}
	cli.PrintLine(f.stdout, "\nhistory %s\nseries  %s, run %d: %s\n", f.archive.URL(), out.Series, out.Sequence, out.Revision)
	for _, r := range out.Points {
		cli.PrintLine(f.stdout, "  %s\n", r.Text())
	}
	for _, problem := range out.Problems {
		cli.PrintLine(f.stdout, "note: %s\n", problem)
	}
	for _, due := range out.Due {
		cli.PrintLine(f.stdout, "suspected: change %s between %s and %s; confirm it on fresh blocks with %s run --local %s --series %s "+
			"--confirm\n", due.Change, due.Old[len(due.Old)-1].Revision, due.New[0].Revision, cli.Program, f.asked.file,
			f.options.name)
	}
	return nil
}

// confirm runs all confirming runs that are due and prints their outcomes.
func (f *seriesRun) confirm(ctx context.Context) error {
	all, err := f.archive.OfBenchmark(ctx, f.options.name)
	if err != nil {
		return fmt.Errorf("read the history: %w; no trials were run", err)
	}
	book, err := f.archive.Book(ctx)
	if err != nil {
		return fmt.Errorf("read the history: %w; no trials were run", err)
	}
	due := f.policy.Due(all, book)
	if len(due) == 0 && f.form == "text" {
		fmt.Fprintf(f.stdout, "series  %s: no confirming run is due\n", f.options.name)
	}
	var worst error
	for i := range due {
		err := f.confirmOne(ctx, all, &due[i])
		if err != nil && cli.ExitCode(err) != cli.ExitNoGo {
			return err
		}
		worst = cmp.Or(worst, err) // The other suspicions are tested in any case.
	}
	return worst
}

// confirmOne measures both sides of a suspected change on fresh blocks and applies the policy.
func (f *seriesRun) confirmOne(ctx context.Context, all []*series.Series, due *watch.Confirm) error {
	due.Old, due.New = f.built(due.Old), f.built(due.New)
	newest := due.Newest
	if n := len(due.New); len(due.Old) == 0 || n == 0 || due.New[n-1].Revision != newest.Revision {
		return cli.UsageError(fmt.Errorf("change %s cannot be confirmed, because --programs %s lacks the program of %s or of all previous "+
			"revisions; build them", due.Change, f.options.program, newest.Revision))
	}
	point := &points.Run{
		Project: LocalProject, Benchmark: f.options.name, ID: newest.ID, Schedule: localSchedule, Sequence: newest.Sequence, At: f.now().UTC(),
		Arms: map[string]points.Revision{points.Anchor: {Revision: due.Anchor}, points.Head: {Revision: newest.Revision}},
	}
	var err error
	if point.Analysis, err = f.archive.NextAnalysis(ctx, all, newest.ID); err != nil {
		return fmt.Errorf("read the history: %w; no trials were run", err)
	}
	over, under := []string{points.Head}, []string(nil)
	for i, side := range due.Old {
		name := fmt.Sprintf("old-%d", i+1)
		point.Arms[name], under = points.Revision{Revision: side.Revision}, append(under, name)
	}
	for i, side := range due.New[:len(due.New)-1] {
		name := fmt.Sprintf("new-%d", i+1)
		point.Arms[name], over = points.Revision{Revision: side.Revision}, append(over, name)
	}
	folder := cmp.Or(f.local.Out, filepath.Join("assay-ledger", f.asked.Run.Name+"-"+f.now().Format("20060102-150405")))
	here, err := f.prepare(f.confirming(), point, fmt.Sprintf("%s-confirm-%d", folder, due.Number))
	if err != nil {
		return err
	}
	result, err := here.Run(ctx)
	if err != nil {
		return err
	}
	return f.judge(context.WithoutCancel(ctx), here, point, result, due, over, under)
}

// built returns the revisions whose program exists.
func (f *seriesRun) built(sides []points.Revision) []points.Revision {
	return slices.DeleteFunc(slices.Clone(sides), func(side points.Revision) bool {
		return f.options.program != "" && !local.Executable(FillRevision(f.options.program, side.Revision))
	})
}

// confirming returns the run with the blocks of a confirming run. It has up to four times as many arms as a point, so its budget is not
// that of a point.
func (f *seriesRun) confirming() *RunFile {
	run := f.asked.Run.DeepCopy()
	bisect.Blocks(&run.Spec, watch.ConfirmingBlocks)
	run.Spec.Budget.WallClock = metav1.Duration{Duration: 24 * time.Hour}
	return f.asked.WithRun(run)
}

func (f *seriesRun) judge(ctx context.Context, here *LocalRun, point *points.Run, result *analysis.Analysis, due *watch.Confirm, over,
	under []string) error {
	estimates, err := due.Measured(here.Experiment, result, over, under)
	if err != nil {
		cli.PrintLine(f.stderr, "warning: %v\n", err)
	}
	if _, err := f.add(ctx, here, point, result); err != nil {
		return err
	}
	var outcome change.Outcome
	var alerts []change.Alert
	book, err := f.archive.Update(ctx, func(book change.Book) (change.Book, error) {
		book, decided, err := f.policy.Judge(due, estimates, here.Store.URL(), book, f.now().UTC())
		if err != nil {
			return book, err
		}
		outcome = decided
		alerts, book = book.Alerts(f.now().UTC())
		return book, nil
	})
	if err != nil {
		return fmt.Errorf("change %s: %w; the run is in %s", due.Change, err, here.Executor.Folder)
	}
	if err := f.printJudged(due, outcome, alerts, book); err != nil {
		return err
	}
	if len(alerts) == 0 {
		return nil
	}
	return cli.VerdictError(assayv1alpha1.VerdictNoGo, fmt.Sprintf(": change %s: %s", due.Change, alerts[0].Why))
}

func (f *seriesRun) printJudged(due *watch.Confirm, outcome change.Outcome, alerts []change.Alert, book change.Book) error {
	all := slices.DeleteFunc(slices.Clone(book.Changes), func(c change.Change) bool { return c.ID != due.Change })
	if done, err := cli.PrintStructured(f.stdout, f.form, map[string]any{"outcome": outcome, "alerts": alerts, "changes": all}); done {
		return err
	}
	why := ""
	for i := range all {
		why = all[i].Last().Why
	}
	switch outcome {
	case change.Holds:
		cli.PrintLine(f.stdout, "\nconfirmed: change %s: %s\n", due.Change, why)
	case change.Refuted:
		cli.PrintLine(f.stdout, "\nrefuted: change %s: %s\n", due.Change, why)
	case change.Undecided:
		cli.PrintLine(f.stdout, "\nundecided: change %s: %s; more revisions are needed\n", due.Change, why)
	}
	for _, alert := range alerts {
		kind := "ALERT: regression"
		if alert.Improvement {
			kind = "ALERT: improvement"
		}
		cli.PrintLine(f.stdout, "%s, change %s, between %s and %s; %s changes acknowledge %s --why TEXT\n", kind, alert.Change,
			due.Old[len(due.Old)-1].Revision, due.New[0].Revision, cli.Program, alert.Change)
	}
	return nil
}
