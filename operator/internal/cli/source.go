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

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

// OpenFolderOrURL opens a store in a folder or behind a URL. The folder need not exist; given names the flag in errors.
func OpenFolderOrURL(ctx context.Context, given, where string) (store.Store, error) {
	if !strings.Contains(where, "://") {
		return store.OpenFolder(ctx, where)
	}
	store, err := OpenURL(ctx, where)
	if err != nil {
		return nil, UsageError(fmt.Errorf("%s: %w", given, err))
	}
	return store, nil
}

// OpenURL opens the store at a URL for reading results. In an object store, analyses are computed from the attempts.
func OpenURL(ctx context.Context, where string) (store.Store, error) {
	s, err := store.Open(ctx, where, store.Options{})
	if err != nil || isLocal(where) {
		return s, err
	}
	return computedLedger(s), nil
}

// isLocal reports whether the objects of a ledger are files of this machine, which the clients of an object store cannot replace.
func isLocal(where string) bool { return strings.HasPrefix(where, "file:") }

// SourceHelp documents NAME for commands that read a ledger.
const SourceHelp = "NAME is a run on the cluster, the folder or the archive (NAME.tar.zst) of a ledger, a ledger's URL " +
	"(file:///absolute/folder or s3://bucket/prefix?endpoint=http://host:port), or a file written by assay gate --save. " +
	"An object store inside the cluster is reached through a port-forward, with the read-only credentials of the run's namespace. " +
	"For a URL, credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."

// Source opens ledgers by the NAME argument of a command.
type Source struct {
	Flags *genericclioptions.ConfigFlags
	// secret names the Secret with the credentials, and keys its entries for the access key and the secret key.
	secret string
	keys   []string
	wave   WaveFlag
}

// AddFlags adds the flags for credentials and --wave.
func (s *Source) AddFlags(command *cobra.Command) {
	s.AddCredentials(command)
	s.wave.AddFlag(command.Flags(), "use the analysis of this wave", "newest analysed wave")
}

// AddCredentials adds the flags for credentials of the object store.
func (s *Source) AddCredentials(command *cobra.Command) {
	command.Flags().StringVar(&s.secret, "secret", "assay-ledger-read",
		"Secret with the object store's credentials in the run's namespace; for an external store the value of "+
			"objectStore.existingSecret")
	command.Flags().StringSliceVar(&s.keys, "secret-keys", []string{"accessKey", "secretKey"},
		"keys of the access key and the secret key in that Secret (objectStore.accessKeyKey and secretKeyKey of the chart)")
}

// AnalyzedLedger is an open ledger with one of its analyses.
type AnalyzedLedger struct {
	Where      string
	Store      store.Store
	Experiment *experiment.Experiment
	Analysis   *analysis.Analysis
	Wave       int
}

// Open opens the ledger of a run and reads an analysis. where is a run's name, a folder, an archive, a URL or a gate answer. A ledger on a
// cluster stays reachable until the context ends.
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
	wave, err := s.wave.Of(ctx, store, -1)
	if err != nil {
		return nil, err
	}
	return ReadAnalyzedLedger(ctx, store, where, wave)
}

// ReadAnalyzedLedger reads the analysis of a wave, or the newest analysis if wave is negative.
func ReadAnalyzedLedger(ctx context.Context, s store.Store, where string, wave int) (*AnalyzedLedger, error) {
	frozen, err := ledger.ReadExperiment(ctx, s)
	if errors.Is(err, store.ErrNotFound) {
		return nil, UsageError(fmt.Errorf("%s is not the ledger of a run because it has no %s; name the folder or prefix of the run", where,
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
	return nil, fmt.Errorf("%s has %s; the analysis is written at the end of a wave: follow the run with %s watch, or analyze now with "+
		"%s analyze --ledger URL --write", where, which, Program, Program)
}

// store opens a ledger without reading it. namespace is that of a run on the cluster; "" selects the namespace of the flags.
func (s *Source) store(ctx context.Context, namespace, where string) (store.Store, error) {
	if strings.Contains(where, "://") {
		s, err := OpenURL(ctx, where)
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
		return nil, fmt.Errorf("%q is not a folder, an archive or a URL, and looking up a run of that name failed: %w", where,
			err)
	}
	cluster.Namespace = cmp.Or(namespace, cluster.Namespace)
	run, err := GetRun(ctx, cluster, where)
	if err != nil {
		return nil, err
	}
	if run.Status.Ledger == "" || run.Status.Wave == nil {
		return nil, fmt.Errorf("BenchmarkRun %s/%s has no results yet; follow it with %s watch %s", run.Namespace, run.Name, Program, run.Name)
	}
	return s.OpenRun(ctx, cluster, run)
}

// OpenRun opens the ledger of a run on the cluster, with the analysis that the operator accepted.
func (s *Source) OpenRun(ctx context.Context, cluster *Cluster, run *assayv1alpha1.BenchmarkRun) (store.Store, error) {
	of, err := s.open(ctx, cluster, "status.ledger", run.Status.Ledger)
	if err != nil {
		return nil, err
	}
	return checkedLedger(of, run), nil
}

// OpenFrom opens a store whose URL a status field holds. Stores inside the cluster are reached through a port-forward until the context
// ends. In an object store, analyses are computed from the attempts.
func (s *Source) OpenFrom(ctx context.Context, cluster *Cluster, field, where string) (store.Store, error) {
	of, err := s.open(ctx, cluster, field, where)
	if err != nil || isLocal(where) {
		return of, err
	}
	return computedLedger(of), nil
}

func (s *Source) open(ctx context.Context, cluster *Cluster, field, where string) (store.Store, error) {
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
		if endpoint.Scheme == "http" && options.CA != nil {
			// The run ended before the store had a certificate.
			endpoint.Scheme = "https"
		}
		query.Set("endpoint", fmt.Sprintf("%s://%s", endpoint.Scheme, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
		address.RawQuery = query.Encode()
	}
	return store.Open(ctx, address.String(), options)
}

// credentials reads the object store's credentials from the Secret in the namespace. Credentials in the environment make the Secret
// optional, for users without permission to read it.
func (s *Source) credentials(ctx context.Context, reader client.Reader, namespace string) (store.Options, error) {
	if len(s.keys) != 2 || s.keys[0] == "" || s.keys[1] == "" {
		return store.Options{}, UsageError(fmt.Errorf("invalid --secret-keys %q: give the keys of the access key and "+
			"the secret key, separated by a comma", strings.Join(s.keys, ",")))
	}
	own := os.Getenv("AWS_ACCESS_KEY_ID") != ""
	var secret corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.secret}, &secret)
	if err != nil && !(own && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err))) {
		return store.Options{},
			fmt.Errorf("credentials of the ledger: Secret %s/%s: %w; name another Secret with --secret, or set AWS_ACCESS_KEY_ID "+
				"and AWS_SECRET_ACCESS_KEY", namespace, s.secret, err)
	}
	out := store.Options{AccessKey: string(secret.Data[s.keys[0]]), SecretKey: string(secret.Data[s.keys[1]]), CA: secret.Data["ca.crt"]}
	for _, key := range s.keys {
		if len(secret.Data[key]) == 0 && !own {
			return store.Options{}, fmt.Errorf("credentials of the ledger: Secret %s/%s has no key %q, only %s; set --secret-keys",
				namespace, s.secret, key,
				strings.Join(slices.Sorted(maps.Keys(secret.Data)), ", "))
		}
	}
	if out.CA == nil {
		out.CA = storeAuthority(ctx, reader, namespace, s.secret)
	}
	return out, nil
}
