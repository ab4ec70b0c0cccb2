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

// recording is a revision that shall be recorded.
type recording struct {
	series   string
	revision assayv1alpha1.Revision
	form     string
	// resolve looks a tag up.
	resolve func(ctx context.Context, reference string) schedule.Image
	now     func() time.Time
}

// recorded is what assay record prints for programs.
type recorded struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Series    string `json:"series"`
	Revision  string `json:"revision"`
	Image     string `json:"image"`
	// Already reports whether it was recorded before.
	Already bool `json:"already"`
}

func NewRecordCommand(flags *genericclioptions.ConfigFlags) *cobra.Command {
	asks := &registry.Client{Hosts: []string{"*"}, Keychain: authn.DefaultKeychain}
	r := recording{resolve: asks.Resolve, now: time.Now}
	command := &cobra.Command{
		Use:   "record --series SERIES --revision REVISION --image IMAGE",
		Short: "Report a revision, for a schedule of its series to measure",
		Long: "Report a revision, for a schedule of its series to measure: the last step of a pipeline that builds images. Recording the same " +
			"again changes nothing, so that a step can be repeated.\n\nA tag is looked up with the credentials of docker login, and its digest " +
			"is recorded. On the cluster it takes the ClusterRole assay-record, which may do nothing else.",
		Example: "  assay record --series scan --revision $(git rev-parse HEAD) --image ghcr.io/acme/scan:main",
		RunE: cli.WithCluster(flags, func(cmd *cobra.Command, cluster *cli.Cluster, _ []string) error {
			return r.record(cmd.Context(), cluster, cmd.OutOrStdout())
		}),
	}
	command.Flags().StringVar(&r.series, "series", "", "series that the revision belongs to, as its schedule names it")
	command.Flags().StringVar(&r.revision.Revision, "revision", "", "state of the program, such as the hash of a commit")
	command.Flags().StringVar(&r.revision.Image, "image", "", "image that holds it, by tag or digest")
	for _, name := range []string{"series", "revision", "image"} {
		_ = command.MarkFlagRequired(name)
	}
	cli.AddOutput(command, &r.form, "text", "json", "yaml")
	return command
}

// record writes the object, or finds it written.
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

// same reports what was recorded under the same revision and is something else.
func (r *recording) same(ctx context.Context, cluster *cli.Cluster, object *assayv1alpha1.BenchmarkRevision) error {
	var existing assayv1alpha1.BenchmarkRevision
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), &existing); err != nil {
		return err
	}
	if existing.Spec.Series != r.series || existing.Spec.Revision != r.revision {
		return fmt.Errorf("invalid image %s: revision %s of series %s was recorded as %s, and a revision never changes; record the new "+
			"build under a revision of its own, or delete BenchmarkRevision %s if that one was a mistake", r.revision.Image,
			existing.Spec.Revision.Revision, existing.Spec.Series, existing.Spec.Image, existing.Name)
	}
	return nil
}

// revisionName is the same for the same revision of a series, so that the API server refuses to have it twice.
func revisionName(series, revision string) string {
	return series + "-" + record.SHA256([]byte(revision))[:16]
}
