package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/schedule"
)

// A user can create a run with the next name of a schedule and with the schedule as its owner. Its results must not enter the series.
func TestApplySchedule_ForeignRunIsNotOwned(t *testing.T) {
	s := &assayv1alpha1.BenchmarkSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "s-1"}}
	s.Spec.Series = "scan"
	s.Spec.RunTemplate.Spec = assayv1alpha1.BenchmarkRunSpec{
		TemplateRef: &assayv1alpha1.TemplateReference{Name: "scan"},
		Arms:        []assayv1alpha1.Arm{{Name: "head", Parameters: assayv1alpha1.ParameterValues{"rows": "8"}}},
		Placement:   assayv1alpha1.Placement{Memory: resource.MustParse("1024Mi")},
	}
	image := func(letter string) string { return "ghcr.io/acme/app@sha256:" + strings.Repeat(letter, 64) }
	next := &assayv1alpha1.ScheduledRun{Sequence: 3, Name: "app-3", Arms: []assayv1alpha1.ScheduledArm{
		{Arm: "anchor", Revision: assayv1alpha1.Revision{Revision: "a", Image: image("a")}},
		{Arm: "head", Revision: assayv1alpha1.Revision{Revision: "b", Image: image("b")}},
	}}
	for name, tc := range map[string]struct {
		edit func(*assayv1alpha1.BenchmarkRun)
		ours bool
	}{
		"unmodified": {func(*assayv1alpha1.BenchmarkRun) {}, true},
		"suspended, cancelled and with a time to live": {func(run *assayv1alpha1.BenchmarkRun) {
			run.Spec.Suspend, run.Spec.Cancel, run.Spec.TTLSecondsAfterFinished = ptr.To(true), ptr.To(true), ptr.To[int32](1)
		}, true},
		"without its labels":                  {func(run *assayv1alpha1.BenchmarkRun) { run.Labels = nil }, true},
		"without an owner":                    {func(run *assayv1alpha1.BenchmarkRun) { run.OwnerReferences = nil }, false},
		"of another schedule":                 {func(run *assayv1alpha1.BenchmarkRun) { run.OwnerReferences[0].UID = "s-2" }, false},
		"that owns it among others":           {func(run *assayv1alpha1.BenchmarkRun) { run.OwnerReferences[0].Controller = nil }, false},
		"with another image as the head":      {func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Arms[1].Image = image("a") }, false},
		"with other parameters of the anchor": {func(run *assayv1alpha1.BenchmarkRun) { run.Spec.Arms[0].Parameters["rows"] = "16" }, false},
		"with an arm more": {func(run *assayv1alpha1.BenchmarkRun) {
			run.Spec.Arms = append(run.Spec.Arms, assayv1alpha1.Arm{Name: "other"})
		}, false},
		"of another template": {func(run *assayv1alpha1.BenchmarkRun) { run.Spec.TemplateRef.Name = "other" }, false},
		"on other nodes": {func(run *assayv1alpha1.BenchmarkRun) {
			run.Spec.Placement.NodeSelector = map[string]string{"disk": "slow"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			there := schedule.NewRun(s, next)
			there.UID = "r-1"
			tc.edit(there)
			scheme := runtime.NewScheme()
			if err := assayv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			// An admission webhook of the namespace adds a selector.
			added := func(run *assayv1alpha1.BenchmarkRun) {
				if run.Spec.Placement.NodeSelector == nil {
					run.Spec.Placement.NodeSelector = map[string]string{"pool": "bench"}
				}
			}
			added(there)
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if run, ok := o.(*assayv1alpha1.BenchmarkRun); ok {
						added(run)
					}
					return c.Create(ctx, o, options...)
				},
			}).Build()
			a := &Applier{Client: c, Live: c}
			got, err := a.ScheduledRun(t.Context(), s, schedule.NewRun(s, next))
			_, foreign := errors.AsType[*ForeignError](err)
			if foreign == tc.ours || tc.ours && (err != nil || got.UID != "r-1") {
				t.Errorf("it is taken with %v, want its own: %v", err, tc.ours)
			}
		})
	}
}
