package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

// OpenFolderOrURL opens what was given as the flag or argument of that name, which need not exist yet in a folder.
func OpenFolderOrURL(ctx context.Context, given, where string) (store.Store, error) {
	if !strings.Contains(where, "://") {
		return store.OpenFolder(ctx, where)
	}
	store, err := store.Open(ctx, where, store.Options{})
	if err != nil {
		return nil, UsageError(fmt.Errorf("%s: %w", given, err))
	}
	return store, nil
}

// SourceHelp explains what NAME may be, for commands that read a ledger.
const SourceHelp = "NAME is a run on the cluster, the folder or the archive (NAME.tar.zst) of a ledger, a ledger's URL " +
	"(file:///absolute/folder or s3://bucket/prefix?endpoint=http://host:port), or the file that assay gate --save wrote. " +
	"An object store inside the cluster is reached through a port-forward, with the keys that only read the run's namespace, from the " +
	"Secret that the chart puts there; " +
	"for a URL they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."

// Source finds ledgers by what a person calls them.
type Source struct {
	Flags *genericclioptions.ConfigFlags
	// secret holds the store's credentials under two keys: the access key's and the secret key's.
	secret string
	keys   []string
	wave   int
}

func (s *Source) AddFlags(command *cobra.Command) {
	s.AddCredentials(command)
	command.Flags().IntVar(&s.wave, "wave", -1, "what was known after this wave")
	command.Flags().Lookup("wave").DefValue = "the newest that was analysed"
}

// AddCredentials gives a command the flags that say where the object store's keys are.
func (s *Source) AddCredentials(command *cobra.Command) {
	command.Flags().StringVar(&s.secret, "secret", "assay-ledger-read",
		"Secret with the object store's credentials, in the run's namespace; with an external store the one that "+
			"objectStore.existingSecret names")
	command.Flags().StringSliceVar(&s.keys, "secret-keys", []string{"accessKey", "secretKey"},
		"keys in that Secret of the access key and the secret key, as the chart's objectStore.accessKeyKey and secretKeyKey name them")
}

// AnalyzedLedger is a ledger with one of its analyses.
type AnalyzedLedger struct {
	Where      string
	Store      store.Store
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
	Wave       int
}

// Open opens the ledger of a run by its name, a folder, a URL or the answer of a gate, and reads an analysis in it. One on a cluster can be
// reached until the context ends.
func (s *Source) Open(ctx context.Context, where string) (*AnalyzedLedger, error) {
	namespace := ""
	if IsGateAnswer(where) {
		answer, err := ReadGateAnswer(where)
		if err != nil {
			return nil, err
		}
		if namespace, where, err = answer.source(); err != nil {
			return nil, err
		}
	}
	store, err := s.store(ctx, namespace, where)
	if err != nil {
		return nil, err
	}
	return ReadAnalyzedLedger(ctx, store, where, s.wave)
}

// ReadAnalyzedLedger reads the analysis of a wave, or with a negative wave the newest there is.
func ReadAnalyzedLedger(ctx context.Context, s store.Store, where string, wave int) (*AnalyzedLedger, error) {
	frozen, err := ledger.ReadExperiment(ctx, s)
	if errors.Is(err, store.ErrNotFound) {
		return nil, UsageError(fmt.Errorf("%s does not hold the ledger of a run: it has no %s; name the run's own folder or prefix", where,
			ledger.ExperimentKey))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	newest, oldest := wave, wave
	if wave < 0 {
		if newest, err = ledger.LastWave(ctx, s); err != nil {
			return nil, fmt.Errorf("find the newest wave of %s: %w", where, err)
		}
		oldest = 0
	}
	found, of, err := ledger.NewestAnalysis(ctx, s, newest, oldest)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return &AnalyzedLedger{Where: where, Store: s, Experiment: frozen, Analysis: found, Wave: of}, nil
	}
	which := "no analysis yet"
	if wave >= 0 {
		which = fmt.Sprintf("no analysis of wave %d", wave)
	}
	return nil, fmt.Errorf("%s has %s: one is written when a wave ends; %s watch follows a run, and %s analyze --ledger URL --write judges "+
		"a ledger now", where, which, Program, Program)
}

// store opens the ledger, whatever is in it. A run is one of that namespace; without one, of the namespace that the flags name.
func (s *Source) store(ctx context.Context, namespace, where string) (store.Store, error) {
	if strings.Contains(where, "://") {
		s, err := store.Open(ctx, where, store.Options{})
		if errors.Is(err, store.ErrBadURL) {
			return nil, UsageError(err)
		}
		return s, err
	}
	if info, err := os.Stat(where); err == nil && (info.IsDir() || strings.HasSuffix(where, store.ArchiveExtension)) {
		return store.OpenFolder(ctx, where)
	}
	cluster, err := Connect(s.Flags)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a folder, an archive nor a URL, and no cluster can be asked for a run of that name: %w", where,
			err)
	}
	cluster.Namespace = cmp.Or(namespace, cluster.Namespace)
	run, err := GetRun(ctx, cluster, where)
	if err != nil {
		return nil, err
	}
	if run.Status.Ledger == "" || run.Status.Wave == nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s has measured nothing yet: see %s watch %s", run.Namespace, run.Name, Program, run.Name)
	}
	return s.OpenFrom(ctx, cluster, "status.ledger", run.Status.Ledger)
}

// OpenFrom opens what a status says lies in the object store of the namespace, from outside the cluster, until the context ends.
func (s *Source) OpenFrom(ctx context.Context, cluster *Cluster, field, where string) (store.Store, error) {
	address, err := url.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", field, where, err)
	}
	options, err := s.credentials(ctx, cluster, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	query := address.Query()
	if endpoint, err := url.Parse(query.Get("endpoint")); err == nil && isClusterService(endpoint.Hostname()) {
		port, err := forwardService(ctx, cluster, endpoint)
		if err != nil {
			return nil, err
		}
		options.ServerName = endpoint.Hostname()
		query.Set("endpoint", fmt.Sprintf("%s://%s", endpoint.Scheme, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
		address.RawQuery = query.Encode()
	}
	return store.Open(ctx, address.String(), options)
}

// credentials of the object store, from the Secret in the run's namespace. Whoever may not read it may have keys of their own,
// in the environment.
func (s *Source) credentials(ctx context.Context, reader client.Reader, namespace string) (store.Options, error) {
	if len(s.keys) != 2 || s.keys[0] == "" || s.keys[1] == "" {
		return store.Options{}, UsageError(fmt.Errorf("invalid --secret-keys %q: name two keys, the access key's and the secret "+
			"key's, with a comma between them", strings.Join(s.keys, ",")))
	}
	own := os.Getenv("AWS_ACCESS_KEY_ID") != ""
	var secret corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.secret}, &secret)
	if err != nil && !(own && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err))) {
		return store.Options{}, fmt.Errorf("credentials of the ledger: Secret %s/%s: %w; name another with --secret, or set AWS_ACCESS_KEY_ID "+
			"and AWS_SECRET_ACCESS_KEY", namespace, s.secret, err)
	}
	out := store.Options{AccessKey: string(secret.Data[s.keys[0]]), SecretKey: string(secret.Data[s.keys[1]]), CA: secret.Data["ca.crt"]}
	for _, key := range s.keys {
		if len(secret.Data[key]) == 0 && !own {
			return store.Options{}, fmt.Errorf("credentials of the ledger: Secret %s/%s has no key %q, it has %s: name its keys with --secret-keys",
				namespace, s.secret, key,
				strings.Join(slices.Sorted(maps.Keys(secret.Data)), ", "))
		}
	}
	if out.CA == nil {
		out.CA = storeAuthority(ctx, reader, namespace, s.secret)
	}
	return out, nil
}
