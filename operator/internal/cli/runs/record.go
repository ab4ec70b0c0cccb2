package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/registry"
	"assay.dev/assay/operator/internal/schedule"
)

// recording holds the options of assay record.
type recording struct {
	series   string
	revision assayv1alpha1.Revision
	form     string
	// resolve looks up the digest of a tag.
	resolve func(ctx context.Context, reference string) schedule.Image
	now     func() time.Time
}

// recorded is the structured output of assay record.
type recorded struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Series    string `json:"series"`
	Revision  string `json:"revision"`
	Image     string `json:"image"`
	// Already reports whether the revision was recorded before.
	Already bool `json:"already"`
}

func NewRecordCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	asks := &registry.Client{Hosts: []string{"*"}, Keychain: authn.DefaultKeychain}
	r := recording{resolve: asks.Resolve, now: time.Now}
	command := &cobra.Command{
		Use:   "record --series SERIES --revision REVISION --image IMAGE",
		Short: "Record a revision for the schedule of its series",
		Long: "Record a revision for the schedule of its series, as the last step of a pipeline that builds images. The command is " +
			"idempotent.\n\nThe digest of a tag is looked up with the credentials of docker login and recorded. The command needs only the " +
			"ClusterRole assay-record.",
		Example: "  assay record --series scan --revision $(git rev-parse HEAD) --image ghcr.io/acme/scan:main",
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, _ []string) error {
			return r.record(cmd.Context(), cluster, cmd.OutOrStdout())
		}),
	}
	command.Flags().StringVar(&r.series, "series", "", "series in the spec of the schedule")
	command.Flags().StringVar(&r.revision.Revision, "revision", "", "revision of the program, such as a commit hash")
	command.Flags().StringVar(&r.revision.Image, "image", "", "image of the revision, by tag or digest")
	for _, name := range []string{"series", "revision", "image"} {
		_ = command.MarkFlagRequired(name)
	}
	cli.AddOutput(command, &r.form, "text", "json", "yaml")
	return command
}

// record creates the BenchmarkRevision, or verifies that it exists with the same image.
func (r *recording) record(ctx context.Context, cluster *cli.Cluster, out io.Writer) error {
	if !strings.Contains(r.revision.Image, "@") {
		image := r.resolve(ctx, r.revision.Image)
		if problem := image.Problem + image.Vanished; problem != "" {
			return errors.New(problem)
		}
		r.revision.Image = image.Image
	}
	object := &assayv1alpha1.BenchmarkRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: revisionName(r.series, r.revision.Revision)},
		Spec: assayv1alpha1.BenchmarkRevisionSpec{
			Series: r.series, Revision: r.revision, ReportedAt: ptr.To(metav1.NewMicroTime(r.now())),
		},
	}
	answer := recorded{Namespace: object.Namespace, Name: object.Name, Series: r.series, Revision: r.revision.Revision,
		Image: r.revision.Image}
	err := cluster.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		answer.Already, err = true, r.same(ctx, cluster, object)
	}
	if err != nil {
		return fmt.Errorf("record revision %s of series %s in namespace %s: %w", r.revision.Revision, r.series, object.Namespace, err)
	}
	verb := "recorded"
	if answer.Already {
		verb = "was recorded before"
	}
	return cli.PrintAnswer(out, r.form, answer, "revision %s of series %s %s: %s\n", r.revision.Revision, r.series, verb, r.revision.Image)
}

// same returns an error if the revision was recorded with another image.
func (r *recording) same(ctx context.Context, cluster *cli.Cluster, object *assayv1alpha1.BenchmarkRevision) error {
	var existing assayv1alpha1.BenchmarkRevision
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), &existing); err != nil {
		return err
	}
	if existing.Spec.Series != r.series || existing.Spec.Revision != r.revision {
		return fmt.Errorf("invalid image %s: revision %s of series %s is recorded with image %s, and revisions are immutable; record the new "+
			"build as another revision, or delete BenchmarkRevision %s if its image is wrong", r.revision.Image,
			existing.Spec.Revision.Revision, existing.Spec.Series, existing.Spec.Image, existing.Name)
	}
	return nil
}

// revisionName returns a deterministic name for a revision of a series, so that the API server rejects duplicates.
func revisionName(series, revision string) string {
	return series + "-" + record.SHA256([]byte(revision))[:16]
}
