package ledgers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/analysis/analyze"
	"assay.dev/assay/operator/internal/analysis/selection"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/export"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/html"
	"assay.dev/assay/operator/internal/store"
)

type analyzeOptions struct {
	ledger string
	wave   int
	out    string
	write  bool
	// mounted are the credentials of a pod, and away is how long it waits for a store.
	mounted podCredentials
	away    time.Duration
}

// podCredentials are credentials in the files of a Secret, as the workflows of a run have them: one that is replaced is used at once.
type podCredentials struct {
	folder, secret string
	// terminationLog is a file that the kubelet reads when the container has ended; empty for none.
	terminationLog string
}

// register adds flags that people have no use for.
func (m *podCredentials) register(flags *pflag.FlagSet) {
	flags.StringVar(&m.folder, "credentials-dir", "", "folder with the files accessKey and secretKey, in place of the environment")
	flags.StringVar(&m.secret, "secret", "", "namespace/name of the Secret they are of, for errors")
	flags.StringVar(&m.terminationLog, "last-words", "", "file that is to say what went wrong")
	for _, name := range []string{"credentials-dir", "secret", "last-words"} {
		_ = flags.MarkHidden(name)
	}
}

// reportError writes what went wrong where the kubelet, and so the operator, finds it.
func (m *podCredentials) reportError(err error) error {
	// The kubelet reads no more.
	const most = 4096
	if err == nil || m.terminationLog == "" {
		return err
	}
	text := err.Error()
	return errors.Join(err, os.WriteFile(m.terminationLog, []byte(strings.ToValidUTF8(text[:min(len(text), most)], "")), 0o644))
}

// exitBeforeOOMKill ends a process of a pod that needs more memory than Go's runtime can keep it to, and leaves why: programs choose how
// much they report, and of one that the kernel kills nobody learns what it was. The runtime may go beyond its limit by a third, which the
// pod has room for.
func (m *podCredentials) exitBeforeOOMKill(log io.Writer) {
	limit := debug.SetMemoryLimit(-1)
	if m.terminationLog == "" || limit == math.MaxInt64 {
		return
	}
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			metrics.Read(held)
			if used := int64(held[0].Value.Uint64() - held[1].Value.Uint64()); used-limit > limit/3 {
				fmt.Fprintln(log,
					m.reportError(fmt.Errorf("it takes more than %s to judge what the trials reported, which is more than there is: have "+
						"them report fewer samples, or histograms of fewer digits; assay analyze judges the ledger where there is more memory",
						quantity.Bytes(used))))
				os.Exit(cli.ExitError)
			}
		}
	}()
}

func (m *podCredentials) options() store.Options {
	return store.Options{CredentialsDir: m.folder, Secret: m.secret}
}

func NewAnalyzeCommand() *cobra.Command {
	var options analyzeOptions
	command := &cobra.Command{
		Use:   "analyze --ledger URL",
		Short: "Judge a ledger and print the analysis as JSON",
		Long: "Judge a ledger, wherever it is, and print the analysis as JSON. The verdict does not change the exit code: 0 means that the " +
			"ledger was analysed.\n\n" +
			"An object store's credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Example: "  assay analyze --ledger file:///tmp/my-ledger\n" +
			"  assay analyze --ledger 's3://assay/runs/default/scan/UID?endpoint=http://minio:9000' --wave 0 --write",
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.mounted.exitBeforeOOMKill(cmd.ErrOrStderr())
			return options.mounted.reportError(analyzeTo(cmd.Context(), options, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.ledger, "ledger", "",
		"URL of the run's ledger: file:///absolute/folder, file:///absolute/name.tar.zst or s3://bucket/prefix?endpoint=http://host:port")
	flags.IntVar(&options.wave, "wave", -1, "judge what was measured up to and including this wave")
	flags.Lookup("wave").DefValue = "the newest"
	flags.StringVar(&options.out, "out", "-",
		"- prints the analysis; a URL writes analysis.json, report.md, report.html, table.csv and attempts.parquet below it instead")
	flags.BoolVar(&options.write, "write", false, "write analysis.json, report.md, report.html, table.csv and attempts.parquet into the "+
		"ledger itself, and print a summary instead of the analysis")
	options.mounted.register(flags)
	// People are told at once, and may try again.
	flags.DurationVar(&options.away, "store-away", 0, "how long to try again while the object store is away")
	_ = flags.MarkHidden("store-away")
	return command
}

func analyzeTo(ctx context.Context, options analyzeOptions, stdout, log io.Writer) error {
	if options.ledger == "" {
		return cli.UsageError(errors.New("--ledger is missing: name the ledger, e.g. --ledger file:///tmp/my-ledger"))
	}
	if options.write && options.out != "-" {
		return cli.UsageError(errors.New("--write and --out both name where the results go: use one of them"))
	}
	s, err := options.open(ctx, log)
	if err != nil {
		return err
	}
	wave := options.wave
	if wave < 0 {
		if wave, err = ledger.LastWave(ctx, s); err != nil {
			return fmt.Errorf("find the newest wave: %w", err)
		}
	}
	target := s
	if options.out != "-" {
		if target, err = store.Open(ctx, options.out, store.Options{}); err != nil {
			return cli.UsageError(fmt.Errorf("--out: %w", err))
		}
	} else if !options.write {
		result, err := AnalyzeLedger(ctx, s, wave)
		if err != nil {
			return err
		}
		raw, err := result.json()
		if err == nil {
			_, err = stdout.Write(raw)
		}
		return err
	}
	result, err := AnalyzeInto(ctx, s, wave, target)
	if err != nil {
		return err
	}
	return report.Terminal(stdout, result.Experiment, result.Analysis)
}

// maxOvertaken bounds how often an analysis begins anew: each time another one has made progress.
const maxOvertaken = 10

// AnalyzeInto judges a ledger and writes what was found into a store. If another analysis wrote there since the reading began, it may have
// read more: the ledger is read again, so that the newest reading is what stays.
func AnalyzeInto(ctx context.Context, store store.Store, wave int, target store.Store) (*Analyzed, error) {
	for overtaken := 0; ; overtaken++ {
		derived, err := ledger.ReadDerived(ctx, target, ledger.AnalysisPrefix(wave))
		if err != nil {
			return nil, fmt.Errorf("look for an earlier analysis: %w", err)
		}
		result, err := AnalyzeLedger(ctx, store, wave)
		if err != nil {
			return nil, err
		}
		err = result.write(ctx, derived)
		if !errors.Is(err, ledger.ErrOvertaken) || overtaken == maxOvertaken {
			return result, err
		}
	}
}

func (o *analyzeOptions) open(ctx context.Context, log io.Writer) (store.Store, error) {
	s, err := store.Open(ctx, o.ledger, o.mounted.options())
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("--ledger: %w", err))
	}
	if o.away > 0 {
		s = store.Patient(s, store.NewAgain(o.away, func(text string) { fmt.Fprintln(log, text) }))
	}
	err = s.Check(ctx)
	if errors.Is(err, store.ErrNoBucket) {
		err = cli.UsageError(fmt.Errorf("--ledger: %w", err))
	}
	return s, err
}

// Analyzed is a judged ledger.
type Analyzed struct {
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
	Evidence   record.Evidence
}

// AnalyzeLedger judges what the ledger holds up to and including a wave.
func AnalyzeLedger(ctx context.Context, s store.Store, wave int) (*Analyzed, error) {
	frozen, err := ledger.ReadExperiment(ctx, s)
	if errors.Is(err, store.ErrNotFound) {
		return nil, cli.UsageError(fmt.Errorf("%s does not hold the ledger of a run: %w; the URL must end in the run's own prefix", s.URL(),
			err))
	}
	if err != nil {
		return nil, err
	}
	evidence, err := ledger.ReadEvidence(ctx, s, wave)
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	return &Analyzed{frozen, analyze.Evidence(frozen, evidence, wave), evidence}, nil
}

func (a *Analyzed) json() ([]byte, error) {
	raw, err := json.MarshalIndent(a.Analysis.Written(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("analysis: %w", err)
	}
	return append(raw, '\n'), nil
}

// write puts the analysis and what people read of it under analysis/<wave>/. The analysis comes last: whoever waits for it
// then finds the report as well.
func (a *Analyzed) write(ctx context.Context, to *ledger.Derived) error {
	raw, err := a.json()
	if err != nil {
		return err
	}
	page, err := html.Render(a.Experiment, a.Analysis, a.Evidence)
	if err != nil {
		return err
	}
	attempts, err := export.Parquet(a.Experiment, a.Analysis, a.Evidence)
	if err != nil {
		return err
	}
	wave := a.Analysis.Wave
	for _, table := range report.OwnTables(a.Experiment, a.Analysis) {
		for extension, data := range map[string][]byte{"md": table.Markdown(), "csv": table.CSV()} {
			if err := to.Replace(ctx, ledger.OwnTableKey(wave, table.Name, extension), data); err != nil {
				return err
			}
		}
	}
	for _, object := range []struct {
		key  string
		data []byte
	}{
		{ledger.ReportKey(wave), report.Markdown(a.Experiment, a.Analysis)},
		{ledger.HTMLKey(wave), page},
		{ledger.TableKey(wave), report.CSV(a.Experiment, a.Analysis)},
		{ledger.ParquetKey(wave), attempts},
		// It lists the attempts that were read, for sha256sum --check and for the next analysis.
		{ledger.SealKey(wave), selection.Seal(a.Evidence, wave)},
		{ledger.AnalysisKey(wave), raw},
	} {
		if err := to.Replace(ctx, object.key, object.data); err != nil {
			return err
		}
	}
	return nil
}
