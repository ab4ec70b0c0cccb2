// Package ledgers has the commands that analyze, write and set up ledgers.
package ledgers

import (
	"context"
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

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/recompute"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/store"
)

type analyzeOptions struct {
	ledger string
	wave   cli.WaveFlag
	out    string
	write  bool
	// mounted holds the credentials of a pod, and away the retry period for an unreachable store.
	mounted podCredentials
	away    time.Duration
}

// podCredentials are credentials in mounted files of a Secret. Rotated credentials are used without a restart.
type podCredentials struct {
	folder, secret string
	// terminationLog is the file from which the kubelet reads the termination message; "" for none.
	terminationLog string
}

// register adds hidden flags for use in pods.
func (m *podCredentials) register(flags *pflag.FlagSet) {
	flags.StringVar(&m.folder, "credentials-dir", "",
		"folder with the files accessKey and secretKey (default: credentials from the environment)")
	flags.StringVar(&m.secret, "secret", "", "namespace/name of their Secret, for error messages")
	flags.StringVar(&m.terminationLog, "last-words", "", "file for the termination message")
	for _, name := range []string{"credentials-dir", "secret", "last-words"} {
		_ = flags.MarkHidden(name)
	}
}

// reportError writes err to the termination log of the container, from which the operator reads it, and returns it.
func (m *podCredentials) reportError(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, m.terminate(err.Error()))
}

// terminate writes the termination message of the container, if it has one.
func (m *podCredentials) terminate(text string) error {
	// The kubelet truncates longer messages.
	const most = 4096
	if m.terminationLog == "" {
		return nil
	}
	return os.WriteFile(m.terminationLog, []byte(strings.ToValidUTF8(text[:min(len(text), most)], "")), 0o644)
}

// exitBeforeOOMKill ends the process with an error when it exceeds the memory limit of the Go runtime by a third. The kernel would kill it
// without a message at the limit of the pod, which is higher. Trials determine the amount of data.
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
					m.reportError(fmt.Errorf("analysis needs more than the available %s of memory; report fewer samples or histograms "+
						"of fewer digits, or analyze the ledger on a larger machine with assay analyze",
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
		Short: "Analyze a ledger and print the analysis as JSON",
		Long: "Analyze a ledger and print the analysis as JSON. The exit code does not depend on the verdict; 0 means that the " +
			"ledger was analyzed.\n\n" +
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
	options.wave.AddFlag(flags, "analyze attempts up to and including this wave", "newest wave")
	flags.StringVar(&options.out, "out", "-",
		"URL for analysis.json, report.md, report.html, table.csv and attempts.parquet; - prints the analysis")
	flags.BoolVar(&options.write, "write", false, "write analysis.json, report.md, report.html, table.csv and attempts.parquet to the "+
		"ledger and print a summary")
	options.mounted.register(flags)
	// Interactive users get errors at once by default.
	flags.DurationVar(&options.away, "store-away", 0, "retry period while the object store is unreachable")
	_ = flags.MarkHidden("store-away")
	return command
}

func analyzeTo(ctx context.Context, options analyzeOptions, stdout, log io.Writer) error {
	if options.ledger == "" {
		return cli.UsageError(errors.New("--ledger is missing; use a URL such as file:///tmp/my-ledger"))
	}
	if options.write && options.out != "-" {
		return cli.UsageError(errors.New("--write and --out are mutually exclusive"))
	}
	s, err := options.open(ctx, log)
	if err != nil {
		return err
	}
	wave, err := options.wave.Of(ctx, s, -1)
	if err != nil {
		return err
	}
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
		raw, err := result.JSON()
		if err == nil {
			_, err = stdout.Write(raw)
		}
		return err
	}
	result, err := AnalyzeInto(ctx, s, wave, target)
	if err != nil {
		return err
	}
	return errors.Join(report.Terminal(stdout, result.Experiment, result.Analysis), options.mounted.terminate(result.Written.Text()))
}

// maxOvertaken bounds the restarts of an analysis after concurrent writes.
const maxOvertaken = 10

// AnalyzeInto analyzes a ledger and writes the results to target. If another analysis was written meanwhile, it may have read more
// attempts, so the ledger is read again.
func AnalyzeInto(ctx context.Context, store store.Store, wave int, target store.Store) (*recompute.Analyzed, error) {
	for overtaken := 0; ; overtaken++ {
		derived, err := ledger.ReadDerived(ctx, target, ledger.AnalysisPrefix(wave))
		if err != nil {
			return nil, fmt.Errorf("look for an earlier analysis: %w", err)
		}
		result, err := AnalyzeLedger(ctx, store, wave)
		if err != nil {
			return nil, err
		}
		objects, err := result.Objects()
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if err = derived.Replace(ctx, object.Key, object.Data); err != nil {
				break
			}
		}
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
		s = store.Patient(s, store.NewRetrier(o.away, func(text string) { fmt.Fprintln(log, text) }))
	}
	err = s.Check(ctx)
	if errors.Is(err, store.ErrNoBucket) {
		err = cli.UsageError(fmt.Errorf("--ledger: %w", err))
	}
	return s, err
}

// AnalyzeLedger analyzes the attempts of a ledger up to and including a wave.
func AnalyzeLedger(ctx context.Context, s store.Store, wave int) (*recompute.Analyzed, error) {
	result, err := recompute.Ledger(ctx, s, wave)
	if errors.Is(err, store.ErrNotFound) {
		return nil, cli.UsageError(fmt.Errorf("%s is not the ledger of a run: %w; use a URL with the prefix of the run", s.URL(),
			err))
	}
	return result, err
}
