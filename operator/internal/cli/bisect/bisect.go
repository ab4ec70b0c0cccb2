// Package bisect has the command that finds the commit of a change.
package bisect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/checkout"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/cli/runs"
	"assay.dev/assay/operator/internal/executor/local"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/bisect"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/locate"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/registry"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/schedule"
	"assay.dev/assay/operator/internal/store"
)

// bisectOptions are the options of assay bisect.
type bisectOptions struct {
	file                     string
	good, bad, change        string
	series, metric           string
	history                  history.Location
	repository               string
	build, program, programs string
	image                    string
	wait                     time.Duration
	revisions                []string
	state, form              string
	blocks, waves            int
	certain, shift, layout   float64
	buildTime                time.Duration
	local                    runs.LocalOptions

	// resolve looks up the digest of an image, and execute runs a wave on the cluster.
	resolve        func(ctx context.Context, reference string) schedule.Image
	execute        func(ctx context.Context, run *assayv1alpha1.BenchmarkRun) (*cli.AnalyzedLedger, error)
	now            func() time.Time
	stdout, stderr io.Writer
}

func NewBisectCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	asks := &registry.Client{Hosts: []string{"*"}, Keychain: authn.DefaultKeychain}
	o := bisectOptions{now: time.Now, resolve: asks.Resolve}
	o.execute = o.onCluster
	command := &cobra.Command{
		Use:   "bisect FILE (--good REVISION --bad REVISION | --change CHANGE)",
		Short: "Find the commits that made a program slower or faster",
		Long: "Find the commits that made a program slower or faster, on this machine, or with --image on a cluster. " +
			"A wave measures several revisions as arms of the same blocks. The search continues in every range whose ends differ, and the last " +
			"wave compares each culprit with its neighbours on fresh blocks. Indistinguishable commits are reported as a range with its " +
			"probability.\n\n" +
			"FILE has a BenchmarkRun as for assay run --series, with an arm head and a ratio gate for the metric. Revisions are the " +
			"commits of the git checkout between --good and --bad along first parents, or the list in --revisions. Programs are built with " +
			"--build and --program in a worktree per commit, found through --programs, or selected by {revision} in a parameter. Commits " +
			"that do not build are skipped. With --image every wave is a BenchmarkRun whose arms are the images of revisions.\n\n" +
			"With --change the ends, the effect and the series are read from the history, and culprits are recorded there. " +
			"--state stores the progress, so that an interrupted search can be resumed.\n\n" + history.PlaceHelp + "\n\n" +
			cli.ExitHelp(true),
		Example: "  assay bisect run.yaml --good v1.4 --bad main --build 'make server' --program bin/server\n" +
			"  assay bisect run.yaml --change 3f2a9c --build 'cargo build --release' --program target/release/server\n" +
			"  assay bisect run.yaml --good r1 --bad r9 --revisions r1,r2,r3,r4,r5,r6,r7,r8,r9 --programs 'builds/{revision}/server'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteManifests,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.file, err = cli.ManifestArgument(args, o.file); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return cli.UsageError(err)
			}
			o.stdout, o.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.run(cmd.Context(), connection)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "file with one BenchmarkRun")
	flags.StringVar(&o.good, "good", "", "revision without the change")
	flags.StringVar(&o.bad, "bad", "", "later revision with the change")
	flags.StringVar(&o.change, "change", "", "change of the history, instead of --good and --bad")
	flags.StringVar(&o.series, "series", "", "series of the history, for the variation between builds")
	o.history.AddFlags(command, connection)
	flags.StringVar(&o.metric, "metric", "",
		"metric, such as 'latency.median at batchSize=8' (default: that of the only ratio gate)")
	flags.StringVar(&o.repository, "repository", ".", "folder of the git checkout")
	flags.StringSliceVar(&o.revisions, "revisions", nil, "revisions in order, instead of the commits of a checkout")
	flags.StringVar(&o.build, "build", "", "shell command that builds a commit, run in a worktree of it")
	flags.StringVar(&o.program, "program", "", "with --build: path of the program in the checkout")
	flags.DurationVar(&o.buildTime, "build-time", time.Hour, "with --build: timeout of a build")
	flags.StringVar(&o.programs, "programs", "", "path of the program of a revision, such as builds/{revision}/server")
	flags.StringVar(&o.image, "image", "",
		"image of a revision, such as ghcr.io/acme/app:{revision}, for waves on the cluster; looked up with the credentials "+
			"of docker login")
	flags.DurationVar(&o.wait, "wait", 0, "with --image: timeout for images that do not exist yet")
	defaults := bisect.Defaults(2)
	flags.IntVar(&o.blocks, "blocks", defaults.Blocks, "blocks of a wave; doubled in the next wave if ranges remain undecided")
	flags.IntVar(&o.waves, "waves", defaults.Waves, "maximum number of waves")
	flags.Float64Var(&o.certain, "certain", defaults.Certain, "required probability of an answer")
	flags.Float64Var(&o.shift, "shift", 0, "effect of the change, such as 0.03 for 3 % (default: that of --change, or measured on the ends)")
	flags.Float64Var(&o.layout, "layout", bisect.Layout, "difference between builds of equal speed (default: estimated from the series)")
	flags.Lookup("layout").DefValue = fmt.Sprintf("that of the series, or %g", bisect.Layout)
	flags.StringVar(&o.state, "state", "", "folder for results and builds (default: assay-bisect/NAME-GOOD-BAD)")
	cli.AddOutput(command, &o.form, "text", "json", "yaml")
	o.local.AddSources(flags, "")
	flags.BoolVar(&o.local.Pin, "pin", true, "pin blocks to spec.placement.cpus CPUs")
	return command
}

func (o *bisectOptions) check() error {
	switch {
	case o.change != "" && o.good+o.bad != "":
		return errors.New("--change cannot be combined with --good and --bad")
	case o.change == "" && (o.good == "" || o.bad == ""):
		return errors.New("the ends of the search are missing; use --good and --bad, or --change")
	case o.build != "" && len(o.revisions) > 0:
		return errors.New("--build and --revisions are mutually exclusive")
	case o.build != "" && o.programs != "":
		return errors.New("--build and --programs are mutually exclusive")
	case o.image != "" && o.build+o.programs != "":
		return errors.New("--image cannot be combined with --build or --programs")
	case o.image != "" && !strings.Contains(o.image, points.Placeholder):
		return fmt.Errorf("invalid --image %q: the placeholder %s is missing", o.image,
			points.Placeholder)
	case o.wait < 0 || o.wait > 0 && o.image == "":
		return fmt.Errorf("invalid --wait %s; use a positive duration such as 30m, with --image", o.wait)
	case (o.build == "") != (o.program == ""):
		return errors.New("--build and --program require each other")
	case o.program != "" && !filepath.IsLocal(o.program):
		return fmt.Errorf("invalid --program %q; use a path in the checkout, such as bin/server", o.program)
	case o.buildTime <= 0:
		return fmt.Errorf("invalid --build-time %s; use a positive duration such as 1h", o.buildTime)
	case !(o.layout >= 0 && o.layout < 1):
		return fmt.Errorf("invalid --layout %g; use a fraction from 0 to below 1, such as 0.003", o.layout)
	}
	return nil
}

// searchState is the state file of a search.
type searchState struct {
	// Asked is the digest of the question. A folder belongs to one question.
	Asked  string        `json:"asked"`
	Search bisect.Search `json:"search"`
	// Subjects holds the subjects of commits, and Failed the reasons of revisions that cannot be measured.
	Subjects map[string]string `json:"subjects,omitempty"`
	Failed   map[string]string `json:"failed,omitempty"`
	// Built lists the revisions with a successful build, and Images the digests of existing images.
	Built  []string          `json:"built,omitempty"`
	Images map[string]string `json:"images,omitempty"`
}

const stateFile = "bisect.json"

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// check validates a state file, which may have been written by others. Builds are stored and removed in folders named after commits, so
// that names must not be paths.
func (k *searchState) check(builds bool) error {
	if k.Failed == nil || k.Images == nil {
		return errors.New("failed and images: found null; both must be lists, which may be empty")
	}
	known := map[string]bool{}
	for i, r := range k.Search.Revisions {
		if known[r.Revision] = true; builds && !commitForm.MatchString(r.Revision) {
			return fmt.Errorf("search: revisions[%d]: found %q; a commit hash is required with --build", i, r.Revision)
		}
	}
	for _, revision := range slices.Concat(k.Built, slices.Sorted(maps.Keys(k.Failed))) {
		if !known[revision] {
			return fmt.Errorf("built and failed: found %q, which is not a revision of the search", revision)
		}
	}
	return nil
}

// bisection is a search with its state.
type bisection struct {
	bisectOptions
	asked   *runs.RunFile
	commits checkout.Repository
	archive *archive.Archive
	// project is the project of the given series.
	project string
	store   store.Store
	folder  string
	saved   searchState
}

func (o *bisectOptions) run(ctx context.Context, connection *genericclioptions.ConfigFlags) error {
	question, err := runs.ReadRunFile(ctx, connection, o.file, o.local.Templates)
	if err != nil {
		return err
	}
	b := &bisection{
		bisectOptions: *o, asked: question, commits: checkout.Repository{Folder: o.repository},
		saved: searchState{Failed: map[string]string{}, Images: map[string]string{}},
	}
	if o.change != "" || o.series != "" {
		// The history is updated even if the search is interrupted.
		if b.archive, err = b.history.Open(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		all, err := b.archive.OfBenchmark(ctx, o.series)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			b.project = all[0].Key.Project
		}
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	if err := b.sought(ctx); err != nil {
		return err
	}
	for step := b.saved.Search.Next(); step.Wave != nil; step = b.saved.Search.Next() {
		if err := b.wave(ctx, step.Wave); err != nil {
			return err
		}
	}
	return b.end(context.WithoutCancel(ctx))
}

// open creates the search or resumes the one in the folder. The ends of a change are those at the start of the search, even if later points
// date the change differently.
func (b *bisection) open(ctx context.Context) error {
	if b.change != "" {
		if _, err := b.known(ctx); err != nil {
			return err
		}
		if err := b.openFolder(ctx, b.change); err != nil {
			return err
		}
	}
	digest, err := b.digest()
	if err != nil {
		return err
	}
	if b.saved.Asked == "" || b.change == "" || b.saved.Asked != digest {
		search, subjects, err := b.search(ctx)
		if err != nil {
			return err
		}
		last := search.Revisions[len(search.Revisions)-1].Revision
		if b.store == nil {
			if err := b.openFolder(ctx, short(search.Revisions[0].Revision)+"-"+short(last)); err != nil {
				return err
			}
		}
		if b.saved.Asked == "" {
			b.saved.Asked, b.saved.Search, b.saved.Subjects = digest, *search, subjects
		}
		if revisions := b.saved.Search.Revisions; b.saved.Asked != digest || !slices.Equal(revisions, search.Revisions) {
			return cli.UsageError(fmt.Errorf("folder %s holds another search, of %d revisions from %s to %s; choose another folder with --state, "+
				"or delete this one", b.folder, len(revisions), short(revisions[0].Revision), short(revisions[len(revisions)-1].Revision)))
		}
	}
	if len(b.saved.Search.Done) > 0 {
		b.printf("resuming after %d waves, in %s\n", len(b.saved.Search.Done), b.folder)
	}
	return b.keep(ctx)
}

// openFolder reads the state file in the folder, if it exists.
func (b *bisection) openFolder(ctx context.Context, name string) error {
	var err error
	if b.folder, err = filepath.Abs(cmp.Or(b.state, filepath.Join("assay-bisect", b.asked.Run.Name+"-"+name))); err != nil {
		return err
	}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return err
	}
	if b.store, err = store.OpenFolder(ctx, b.folder); err != nil {
		return err
	}
	raw, err := b.store.Get(ctx, stateFile)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	err = json.Unmarshal(raw, &b.saved)
	if err == nil && b.saved.Asked == "" {
		err = errors.New("asked: the digest of the question is missing")
	}
	if err = cmp.Or(err, b.saved.Search.Read(), b.saved.check(b.build != "")); err != nil {
		return fmt.Errorf("invalid %s in %s (%w); delete the folder to restart the search", stateFile, b.folder, err)
	}
	return nil
}

// digest returns the digest of the question and the measurement options.
func (b *bisection) digest() (string, error) {
	asked := []any{
		b.asked.Run.Spec, b.asked.Template, b.build, b.program, b.programs, b.image, b.change, b.metric, b.blocks, b.waves, b.certain, b.shift,
	}
	// The default is omitted, so that the digest of searches without the option is stable.
	if b.layout != bisect.Layout || b.series != "" {
		asked = append(asked, b.layout, b.series)
	}
	raw, err := json.Marshal(asked)
	return "sha256:" + record.SHA256(raw)[:32], err
}

func (b *bisection) keep(ctx context.Context) error {
	raw, err := ledger.JSON(b.saved)
	if err != nil {
		return err
	}
	return b.store.Replace(context.WithoutCancel(ctx), stateFile, raw)
}

// printf reports progress, with untrusted text escaped.
func (b *bisection) printf(format string, args ...any) { cli.PrintLine(b.stderr, format, args...) }

// short abbreviates a commit hash.
func short(revision string) string {
	const hash, shown = 40, 10
	if len(revision) == hash {
		return revision[:shown]
	}
	return strings.ReplaceAll(revision, "/", "-")
}

// search returns the search of the command line, without results.
func (b *bisection) search(ctx context.Context) (*bisect.Search, map[string]string, error) {
	ends, err := b.ends(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := &bisect.Search{Key: ends.Key, Change: b.change}
	revisions, subjects, err := b.between(ctx, ends.Good.Revision, ends.Bad.Revision)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	out.Revisions, out.Question = revisions, ends.Question(len(revisions))
	out.Question.Blocks, out.Question.Waves, out.Question.Certain = b.blocks, b.waves, b.certain
	if b.shift != 0 {
		out.Question.Shift = math.Log1p(b.shift)
	}
	keys, err := b.keys(out)
	if err != nil {
		return nil, nil, err
	}
	if out.Key, err = b.followed(out.Key, keys); err != nil {
		return nil, nil, cli.UsageError(err)
	}
	if b.series != "" && b.change == "" {
		s, err := b.archive.Series(ctx, out.Key)
		if err != nil {
			return nil, nil, err
		}
		out.Question.Between = bisect.BetweenBuilds(s)
	}
	if b.layout != bisect.Layout {
		out.Question.Between = b.layout * b.layout
	}
	if err := out.Check(); err != nil {
		return nil, nil, cli.UsageError(err)
	}
	return out, subjects, nil
}

// ends returns the ends of the change, or --good and --bad.
func (b *bisection) ends(ctx context.Context) (*bisect.Ends, error) {
	if b.change == "" {
		return &bisect.Ends{
			Good: points.Revision{Revision: b.good}, Bad: points.Revision{Revision: b.bad}, Between: bisect.Layout * bisect.Layout,
		}, nil
	}
	c, err := b.known(ctx)
	if err != nil {
		return nil, err
	}
	all, err := b.archive.All(ctx)
	if err != nil {
		return nil, err
	}
	both, err := bisect.EndsOf(c, all)
	if err == nil {
		err = both.Same()
	}
	if err != nil {
		return nil, cli.UsageError(err)
	}
	return both, nil
}

// known returns the change of --change.
func (b *bisection) known(ctx context.Context) (*change.Change, error) {
	book, err := b.archive.Book(ctx)
	if err != nil {
		return nil, err
	}
	at, err := history.FindChange(book, b.change)
	if err != nil {
		return nil, err
	}
	b.change = book.Changes[at].ID
	return &book.Changes[at], nil
}

// between returns the revisions of the search with their subjects.
func (b *bisection) between(ctx context.Context, good, bad string) ([]points.Revision, map[string]string, error) {
	var out []points.Revision
	if len(b.revisions) > 0 {
		from, to := slices.Index(b.revisions, good), slices.Index(b.revisions, bad)
		if from < 0 || to <= from {
			return nil, nil, fmt.Errorf("invalid --revisions: found %q at %d and %q at %d; list the good revision before the bad one", good, from+1,
				bad, to+1)
		}
		for _, name := range b.revisions[from : to+1] {
			out = append(out, points.Revision{Revision: name})
		}
		return out, nil, nil
	}
	commits, err := b.commits.Between(ctx, good, bad)
	if err != nil {
		return nil, nil, err
	}
	subjects := map[string]string{}
	for _, c := range commits {
		out, subjects[c.Hash] = append(out, points.Revision{Revision: c.Hash}), c.Subject
	}
	return out, subjects, nil
}

// keys returns the series that the gates of the file define.
func (b *bisection) keys(search *bisect.Search) ([]series.Key, error) {
	ends := &locate.Wave{Revisions: []int{0, len(search.Revisions) - 1}, Blocks: b.blocks}
	spec, err := search.Spec(b.asked.Run.Spec, ends, nil, b.fill)
	if err != nil {
		return nil, b.asked.Invalid("%w", err)
	}
	if b.build+b.programs+b.image == "" && maps.Equal(spec.Arms[0].Parameters, spec.Arms[1].Parameters) {
		return nil, b.asked.Invalid("arms: arm %q does not depend on the revision; use %s in a parameter, or "+
			"--build, --programs or --image", points.Head, points.Placeholder)
	}
	if b.programs != "" && !strings.Contains(b.programs, points.Placeholder) {
		return nil, cli.UsageError(fmt.Errorf("invalid --programs %q: all %d revisions would have the same program, because the "+
			"placeholder %s is missing", b.programs, len(search.Revisions), points.Placeholder))
	}
	frozen, err := b.asked.WithRun(&assayv1alpha1.BenchmarkRun{ObjectMeta: b.asked.Run.ObjectMeta, Spec: spec}).Freeze()
	if err != nil {
		return nil, err
	}
	run := points.Run{
		Project:   cmp.Or(search.Key.Project, b.project, runs.LocalProject),
		Benchmark: cmp.Or(b.series, search.Key.Benchmark, b.asked.Run.Name),
	}
	return run.Keys(frozen), nil
}

// followed returns the searched series: that of the change, of --metric, or the only one.
func (b *bisection) followed(of series.Key, keys []series.Key) (series.Key, error) {
	var names []string
	for _, key := range keys {
		if key == of || of == (series.Key{}) && (history.SeriesLabel(key) == b.metric || b.metric == "" && len(keys) == 1) {
			return key, nil
		}
		names = append(names, "'"+history.SeriesLabel(key)+"'")
	}
	switch {
	case of != (series.Key{}):
		return of, fmt.Errorf("invalid --change %s: it affects %s, but the gates of %s define %s; use the file of that "+
			"series", b.change, of, b.file, strings.Join(names, ", "))
	case b.metric == "":
		return of, fmt.Errorf("%s has gates on several metrics; choose one with --metric: %s", b.file, strings.Join(names, ", "))
	default:
		return of, fmt.Errorf("invalid --metric %q: the gates of %s define %s", b.metric, b.file, strings.Join(names, ", "))
	}
}

// fill replaces the placeholder in an arm by a revision.
func (b *bisection) fill(arm *assayv1alpha1.Arm, revision points.Revision) {
	for name, value := range arm.Parameters {
		arm.Parameters[name] = runs.FillRevision(value, revision.Revision)
	}
	arm.Image = b.saved.Images[revision.Revision]
}

// wave builds the revisions of a wave, runs it and saves its results.
func (b *bisection) wave(ctx context.Context, wave *locate.Wave) error {
	search := &b.saved.Search
	purpose := ""
	if wave.Verify {
		purpose = ", culprits and their neighbours"
	}
	b.printf("wave %d: %d revisions in %d blocks%s\n", len(search.Done)+1, len(wave.Revisions), wave.Blocks, purpose)
	ran := bisect.Ran{Wave: wave, Failed: map[int]string{}}
	for _, r := range wave.Revisions {
		why, err := b.provide(ctx, search.Revisions[r].Revision)
		if err != nil {
			return err
		}
		if why != "" {
			ran.Failed[r] = why
		}
	}
	if ran.Failed[0] == "" && ran.Failed[len(search.Revisions)-1] == "" {
		if err := b.measure(ctx, wave, &ran); err != nil {
			return err
		}
	}
	if err := search.Add(ran); err != nil {
		return err
	}
	return b.keep(ctx)
}

// provide builds a revision or finds its image. why is the reason that it cannot be measured.
func (b *bisection) provide(ctx context.Context, revision string) (why string, err error) {
	if path := b.programOf(revision); b.programs != "" && !local.Executable(path) {
		return path + " is missing or not executable", nil
	}
	if b.image != "" {
		return b.pushed(ctx, revision)
	}
	if b.build == "" || slices.Contains(b.saved.Built, revision) || b.saved.Failed[revision] != "" {
		return b.saved.Failed[revision], nil
	}
	if err := os.MkdirAll(filepath.Join(b.folder, "logs"), 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(b.folder, "logs", revision+".txt")
	log, err := os.Create(path)
	if err != nil {
		return "", err
	}
	began := b.now()
	err = errors.Join(b.commits.Build(ctx, revision, b.checkout(revision), b.build, b.buildTime, log), log.Close())
	switch {
	case errors.Is(err, checkout.ErrBuild):
		why = err.Error()
	case ctx.Err() != nil:
		return "", b.interrupted()
	case err != nil:
		return "", fmt.Errorf("build %s: %w", short(revision), err)
	case !local.Executable(b.programOf(revision)):
		why = fmt.Sprintf("the build does not create the executable file %s", b.program)
	}
	if why != "" {
		b.saved.Failed[revision] = why
		b.printf("build %s: %s; see %s\n", short(revision), why, path)
	} else {
		b.saved.Built = append(b.saved.Built, revision)
		b.printf("build %s: done in %s\n", short(revision), quantity.Seconds(b.now().Sub(began)))
	}
	return why, b.keep(ctx)
}

// pushed looks up the image of a revision and waits until it exists, up to --wait.
func (b *bisection) pushed(ctx context.Context, revision string) (why string, err error) {
	if b.saved.Images[revision] != "" || b.saved.Failed[revision] != "" {
		return b.saved.Failed[revision], nil
	}
	const again = 15 * time.Second
	name, until := runs.FillRevision(b.image, revision), b.now().Add(b.wait)
	for {
		image := b.resolve(ctx, name)
		switch {
		case ctx.Err() != nil:
			return "", b.interrupted()
		case image.Problem != "":
			return "", fmt.Errorf("image of %s: %s", short(revision), image.Problem)
		case image.Vanished == "":
			b.saved.Images[revision] = image.Image
			return "", b.keep(ctx)
		case !b.now().Before(until):
			b.saved.Failed[revision] = image.Vanished
			b.printf("image of %s: %s\n", short(revision), image.Vanished)
			return image.Vanished, b.keep(ctx)
		}
		b.printf("image of %s: %s; waiting for it until %s\n", short(revision), image.Vanished, until.Format(time.TimeOnly))
		select {
		case <-ctx.Done():
		case <-time.After(min(again, until.Sub(b.now()))):
		}
	}
}

// onCluster creates the run of a wave, or finds the one created before an interruption, and follows it until it ends.
func (o *bisectOptions) onCluster(ctx context.Context, run *assayv1alpha1.BenchmarkRun) (*cli.AnalyzedLedger, error) {
	cluster, err := cli.Connect(o.history.Source.Flags)
	if err != nil {
		return nil, err
	}
	run.Namespace = cmp.Or(run.Namespace, cluster.Namespace)
	cluster.Namespace = run.Namespace
	if err := cluster.Create(ctx, run); client.IgnoreAlreadyExists(err) != nil {
		return nil, fmt.Errorf("create BenchmarkRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	ended, err := runs.FollowRun(ctx, cluster, run.Name, runs.NewLiveLine(o.stderr).PrintRun())
	if err != nil {
		return nil, err
	}
	if err := runs.RunFailure(ended); err != nil {
		return nil, fmt.Errorf("%w; to repeat the wave, delete the run and restart the command", err)
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	store, err := o.history.Source.OpenRun(ctx, cluster, ended)
	if err != nil {
		return nil, err
	}
	return cli.ReadAnalyzedLedger(ctx, store, ended.Status.Ledger, -1)
}

// ordered runs a wave on the cluster. The name of the run is derived from the question and the number of the wave, so that a resumed search
// finds it.
func (b *bisection) ordered(ctx context.Context, run *assayv1alpha1.BenchmarkRun, ran *bisect.Ran) error {
	search := &b.saved.Search
	ends := search.Revisions[0].Revision + " " + search.Revisions[len(search.Revisions)-1].Revision
	suffix := fmt.Sprintf("-bisect-%s-%d", record.SHA256([]byte(b.saved.Asked + " " + ends))[:8], len(search.Done)+1)
	prefix := strings.TrimRight(run.Name[:min(len(run.Name), runs.NameLength-len(suffix))], "-.")
	run.ObjectMeta = metav1.ObjectMeta{Namespace: run.Namespace, Name: prefix + suffix}
	run.Spec.TemplateRef, run.Spec.Template = nil, b.asked.Template
	result, err := b.execute(ctx, run)
	if ctx.Err() != nil {
		return b.interrupted()
	}
	if err != nil {
		return err
	}
	ran.Experiment, ran.Analysis, ran.Ledger = result.Experiment, result.Analysis, result.Where
	return nil
}

func (b *bisection) checkout(revision string) string {
	return filepath.Join(b.folder, "builds", revision)
}

// programOf returns the local path of the program of a revision, or "" if a parameter selects the revision.
func (b *bisection) programOf(revision string) string {
	if b.build != "" {
		return filepath.Join(b.checkout(revision), b.program)
	}
	return runs.FillRevision(b.programs, revision)
}

func (b *bisection) interrupted() error {
	return fmt.Errorf("interrupted; the state is in %s, restart the command to resume", b.folder)
}

// measure runs a wave and returns its analysis.
func (b *bisection) measure(ctx context.Context, wave *locate.Wave, ran *bisect.Ran) error {
	search := &b.saved.Search
	run := b.asked.Run.DeepCopy()
	var err error
	if run.Spec, err = search.Spec(run.Spec, wave, ran.Failed, b.fill); err != nil {
		return err
	}
	if b.image != "" {
		return b.ordered(ctx, run, ran)
	}
	run.Spec.Budget.WallClock = metav1.Duration{Duration: 24 * time.Hour}
	local := b.local
	for _, r := range wave.Revisions {
		if program := b.programOf(search.Revisions[r].Revision); program != "" && ran.Failed[r] == "" {
			local.Arms = append(slices.Clone(local.Arms), bisect.Arm(r)+"="+program)
		}
	}
	local.Out = b.freeFolder(len(search.Done) + 1)
	here, err := runs.PrepareLocal(b.asked.WithRun(run), local, b.stderr)
	if err != nil {
		return err
	}
	if ran.Analysis, err = here.Run(ctx); ctx.Err() != nil {
		return b.interrupted()
	}
	if err != nil {
		return err
	}
	ran.Experiment, ran.Ledger = here.Experiment, here.Store.URL()
	return nil
}

// freeFolder returns a new folder for the ledger of a wave. A resumed wave gets another folder.
func (b *bisection) freeFolder(number int) string {
	first := filepath.Join(b.folder, fmt.Sprintf("wave-%d", number))
	for try, folder := 1, first; ; try++ {
		if _, err := os.Lstat(folder); os.IsNotExist(err) {
			return folder
		}
		folder = fmt.Sprintf("%s-again-%d", first, try)
	}
}

// sought records the start of the search in the history.
func (b *bisection) sought(ctx context.Context) error {
	if b.change == "" || b.saved.Search.Next().Wave == nil {
		return nil
	}
	_, err := history.RecordDecision(ctx, b.archive, b.change, func(c change.Change) (change.Change, error) {
		return c.Sought(b.event(fmt.Sprintf("searching %d revisions", len(b.saved.Search.Revisions))))
	})
	return err
}

// event returns an event of this search for a change.
func (b *bisection) event(why string) change.Event {
	return change.Event{At: b.now().UTC(), Who: cli.Program + " bisect", Why: why}
}

// end prints and records the answer, and removes the builds.
func (b *bisection) end(ctx context.Context) error {
	answer, err := b.saved.Search.Answer()
	if err != nil {
		return err
	}
	if b.change != "" {
		if _, err := history.RecordDecision(ctx, b.archive, b.change, func(c change.Change) (change.Change, error) {
			return c.Searched(answer.Names(), b.event(answer.Story()))
		}); err != nil {
			return err
		}
	}
	if b.build != "" {
		for _, revision := range slices.Concat(b.saved.Built, slices.Sorted(maps.Keys(b.saved.Failed))) {
			if err := b.commits.Remove(ctx, b.checkout(revision)); err != nil {
				b.printf("warning: %v\n", err)
			}
		}
	}
	if err := b.print(answer); err != nil {
		return err
	}
	if len(answer.Culprits) == 0 {
		return cli.WithCode(cli.ExitInconclusive, errors.New("no culprit found: "+answer.Why))
	}
	return b.verdict(answer)
}

// verdict returns the error of culprits that made the program worse; nil for improvements alone.
func (b *bisection) verdict(answer *bisect.Answer) error {
	// The readings of processes, which no template has, are better if they are lower.
	higherIsBetter := slices.ContainsFunc(b.asked.Template.Metrics, func(m assayv1alpha1.Metric) bool {
		return m.Name == b.saved.Search.Key.Metric && m.Direction == assayv1alpha1.HigherIsBetter
	})
	var worse []string
	for i := range answer.Culprits {
		if c := &answer.Culprits[i]; higherIsBetter == (c.Ratio < 1) {
			worse = append(worse, fmt.Sprintf("%s is a regression (%s times the previous level)", short(c.At), quantity.Plain(c.Ratio, 4)))
		}
	}
	if len(worse) == 0 {
		return nil
	}
	return cli.VerdictError(assayv1alpha1.VerdictNoGo, ": "+strings.Join(worse, "; "))
}

func (b *bisection) print(answer *bisect.Answer) error {
	if done, err := cli.PrintStructured(b.stdout, b.form, answer); done {
		return err
	}
	out := &strings.Builder{}
	for i := range answer.Culprits {
		c := &answer.Culprits[i]
		if len(c.Among) == 1 {
			cli.PrintLine(out, "culprit %s: %s\n", b.describe(c.At), history.SeriesLabel(b.saved.Search.Key))
		} else {
			cli.PrintLine(out, "one of %d revisions after %s: %s\n", len(c.Among), b.describe(c.After), history.SeriesLabel(b.saved.Search.Key))
			for _, revision := range c.Among {
				cli.PrintLine(out, "  %s\n", b.describe(revision))
			}
		}
		cli.PrintLine(out, "  %s times the previous level, probability %s\n", quantity.Plain(c.Ratio, 4), quantity.Decimals(c.Probability, 3))
		if c.Fresh != nil {
			ratio := history.ViewEstimate(c.Fresh)
			cli.PrintLine(out, "  %s of %s, in %d fresh blocks\n", ratio.Text(), short(c.After), ratio.Blocks)
		}
	}
	for _, skipped := range answer.Skipped {
		cli.PrintLine(out, "skipped %s: %s\n", b.describe(skipped.Revision), skipped.Why)
	}
	cli.PrintLine(out, "%d waves, state %s\n", answer.Waves, b.folder)
	_, err := io.WriteString(b.stdout, report.PrintableLines(out.String()))
	return err
}

// describe formats a revision with the subject of its commit.
func (b *bisection) describe(revision string) string {
	return strings.TrimSpace(short(revision) + " " + b.saved.Subjects[revision])
}
