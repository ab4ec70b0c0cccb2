package platform

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/certificates"
	"assay.dev/assay/operator/internal/cli"
)

// Keys of the Secret of a certificate. The first three are those of cert-manager.
const (
	keyTrusted, keyCertificate, keyKey = "ca.crt", "tls.crt", "tls.key"
	keyNextCertificate, keyNextKey     = "next.crt", "next.key"
	// keyRestart is the digest of a certificate that the server reads only when it starts.
	keyRestart = "restart"
)

// restartAnnotation is the digest of the certificate with which the pods of a Deployment were started.
const restartAnnotation = "assay.dev/certificate"

// renewal is one certificate of an installation. The policy has its names and times.
type renewal struct {
	client client.Client
	policy certificates.Policy
	system string
	// secret holds the certificate, and trust, in the system and the run namespaces, copies of the authorities. Deployment is restarted for
	// a new certificate. Trust and deployment may be empty.
	secret, trust, deployment string
	namespaces                []string
}

// renewed is the structured output of assay renew-certificate.
type renewed struct {
	Secret string              `json:"secret"`
	Change certificates.Change `json:"change"`
	Ends   time.Time           `json:"ends"`
	// Missing are the namespaces without the Secret of the authorities.
	Missing []string `json:"missing,omitempty"`
}

func NewRenewCertificateCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	r := &renewal{}
	var form string
	command := &cobra.Command{
		Use:   "renew-certificate",
		Short: "Renew the certificate of a bundled server before it expires",
		Long: "Renew a certificate that the chart made, with a new authority. When the certificate is within --lead of its end, the next one " +
			"is made and its authority is added to those that clients trust. A later call, at least --trust afterwards, lets the server serve " +
			"it. The keys of authorities are not stored. Without a valid certificate a new one is served at once.\n\n" +
			"The chart's CronJob calls this command every day. A call when nothing is due only restores the copies of the authorities.",
		Example: "  assay renew-certificate --secret assay-minio-tls --hosts assay-minio.assay-system.svc --trust-secret assay-ledger-ca " +
			"--run-namespaces default",
		Args: cobra.NoArgs,
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, _ []string) error {
			r.client, r.policy.Authority = cluster, strings.TrimSuffix(r.secret, "-tls")
			if err := r.policy.Check(); err != nil {
				return cli.UsageError(err)
			}
			out, err := r.run(cmd.Context(), time.Now())
			if err != nil {
				return err
			}
			text := fmt.Sprintf("certificate in %s: %s, ends %s\n", out.Secret, out.Change, out.Ends.Format(time.DateOnly))
			if len(out.Missing) > 0 {
				text += fmt.Sprintf("namespaces without Secret %s, which helm upgrade creates: %s\n", r.trust, strings.Join(out.Missing, ", "))
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, out, "%s", text)
		}),
	}
	cli.AddOutput(command, &form, "text", "json", "yaml")
	f := command.Flags()
	f.StringVar(&r.system, "system-namespace", "assay-system", "namespace of the Assay installation")
	f.StringVar(&r.secret, "secret", "", "Secret with the certificate in the namespace of the installation")
	f.StringSliceVar(&r.policy.Hosts, "hosts", nil, "DNS names and IP addresses of the server")
	f.StringVar(&r.trust, "trust-secret", "", "Secret in the namespace of the installation and in run namespaces whose ca.crt clients trust")
	f.StringSliceVar(&r.namespaces, "run-namespaces", nil, "namespaces with runs")
	f.StringVar(&r.deployment, "restart", "", "Deployment to restart when its certificate changes, for a server that reads it once")
	f.DurationVar(&r.policy.Lifetime, "lifetime", 365*24*time.Hour, "validity of a new certificate")
	f.DurationVar(&r.policy.Lead, "lead", 120*24*time.Hour, "remaining validity at which the next certificate is made")
	f.DurationVar(&r.policy.Trust, "trust", 7*24*time.Hour, "time for clients to read a new authority before its certificate is served")
	_ = command.MarkFlagRequired("secret")
	_ = command.MarkFlagRequired("hosts")
	return command
}

// run does the step that is due at a time. Clients get an authority before the Secret of the server has its certificate, so that a call
// that ends between two writes leaves clients with an authority more than they need.
func (r *renewal) run(ctx context.Context, now time.Time) (renewed, error) {
	out := renewed{Secret: r.system + "/" + r.secret}
	var secret corev1.Secret
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.system, Name: r.secret}, &secret); err != nil {
		return out, fmt.Errorf("read Secret %s: %w", out.Secret, err)
	}
	set, change, err := r.policy.Step(now, rand.Reader, certificates.Set{
		Trusted: secret.Data[keyTrusted], Certificate: secret.Data[keyCertificate], Key: secret.Data[keyKey],
		NextCertificate: secret.Data[keyNextCertificate], NextKey: secret.Data[keyNextKey],
	})
	if err != nil {
		return out, fmt.Errorf("certificate in Secret %s: %w", out.Secret, err)
	}
	out.Change = change
	if out.Ends, err = certificates.Ends(set); err != nil {
		return out, fmt.Errorf("certificate in Secret %s: %w", out.Secret, err)
	}
	if out.Missing, err = r.publish(ctx, set.Trusted); err != nil {
		return out, err
	}
	data := map[string][]byte{keyTrusted: set.Trusted, keyCertificate: set.Certificate, keyKey: set.Key,
		keyNextCertificate: set.NextCertificate, keyNextKey: set.NextKey, keyRestart: secret.Data[keyRestart]}
	if r.deployment != "" && (change == certificates.Served || change == certificates.Issued) {
		sum := sha256.Sum256(set.Certificate)
		data[keyRestart] = []byte(hex.EncodeToString(sum[:8]))
	}
	if err := writeSecret(ctx, r.client, &secret, data); err != nil {
		return out, err
	}
	return out, r.restart(ctx, string(data[keyRestart]))
}

// publish writes the authorities into the Secrets of clients, and returns the namespaces without one.
func (r *renewal) publish(ctx context.Context, trusted []byte) (missing []string, err error) {
	if r.trust == "" {
		return nil, nil
	}
	var errs []error
	for _, namespace := range append([]string{r.system}, r.namespaces...) {
		var secret corev1.Secret
		err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: r.trust}, &secret)
		switch {
		// The Role that allows to read it is gone with the namespace.
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && namespace != r.system:
			missing = append(missing, namespace)
		case err != nil:
			errs = append(errs, fmt.Errorf("read Secret %s/%s: %w", namespace, r.trust, err))
		default:
			errs = append(errs, writeSecret(ctx, r.client, &secret, map[string][]byte{keyTrusted: trusted}))
		}
	}
	return missing, errors.Join(errs...)
}

// restart gives the pod template of the Deployment the digest of its certificate, so that its pods are replaced one by one. Without a
// digest it does nothing, because the pods have the certificate of the installation.
func (r *renewal) restart(ctx context.Context, digest string) error {
	if r.deployment == "" || digest == "" {
		return nil
	}
	var deployment appsv1.Deployment
	name := types.NamespacedName{Namespace: r.system, Name: r.deployment}
	if err := r.client.Get(ctx, name, &deployment); err != nil {
		return fmt.Errorf("read Deployment %s: %w", name, err)
	}
	if deployment.Spec.Template.Annotations[restartAnnotation] == digest {
		return nil
	}
	before := client.MergeFrom(deployment.DeepCopy())
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, restartAnnotation, digest)
	if err := r.client.Patch(ctx, &deployment, before); err != nil {
		return fmt.Errorf("restart Deployment %s: %w", name, err)
	}
	return nil
}

// writeSecret replaces the data of a Secret if it differs. Empty values are left out. It applies the whole object as the manager that
// applied it before, which is Helm: as a field of another manager the certificate would conflict with a rollback.
func writeSecret(ctx context.Context, c client.Client, secret *corev1.Secret, data map[string][]byte) error {
	maps.DeleteFunc(data, func(_ string, value []byte) bool { return len(value) == 0 })
	if maps.EqualFunc(secret.Data, data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	manager := client.FieldOwner("assay-certificates")
	for _, entry := range secret.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil &&
			strings.Contains(entry.FieldsV1.String(), `"f:data"`) {
			manager = client.FieldOwner(entry.Manager)
		}
	}
	raw, err := json.Marshal(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
			Labels: secret.Labels, Annotations: secret.Annotations},
		Type: secret.Type, Data: data,
	})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, secret, client.RawPatch(types.ApplyPatchType, raw), manager, client.ForceOwnership); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
