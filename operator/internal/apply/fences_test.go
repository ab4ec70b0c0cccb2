package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor/argo"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/schedule"
)

// An operator that lost the leader lease without noticing carries out an older decision. It must not undo writes of its successor.
func TestApply_StaleDecisionOnARunWritesNothing(t *testing.T) {
	actions := map[string]plan.Action{
		"suspend":   plan.Suspend{Execution: "scan-w000"},
		"resume":    plan.Resume{Execution: "scan-w000"},
		"stop":      plan.Stop{Execution: "scan-w000", Why: "why", Again: true},
		"terminate": plan.Terminate{Execution: "scan-w000"},
		"delete":    plan.DeleteExecutions{Names: []string{"scan-w000"}},
	}
	type tc struct {
		// before is the successor's write after the decision, and during its write right before the request of the old leader.
		before, during func(t *testing.T, c client.Client)
		refused        bool
	}
	cases := func(asked bool) map[string]tc {
		return map[string]tc{
			"no other write": {nil, nil, false},
			"the run's status was written since": {func(t *testing.T, c client.Client) {
				change(t, c, &assayv1alpha1.BenchmarkRun{}, "scan", ends)
			}, nil, true},
			// Stopping a run succeeds despite repeated changes of spec.suspend or its time to live.
			"the run's spec was changed since": {func(t *testing.T, c client.Client) {
				change(t, c, &assayv1alpha1.BenchmarkRun{}, "scan", func(object client.Object) { object.SetGeneration(2) })
			}, nil, asked},
			"the run's annotations change repeatedly": {func(t *testing.T, c client.Client) {
				change(t, c, &assayv1alpha1.BenchmarkRun{}, "scan", touch)
			}, nil, false},
			"the workflow is changed meanwhile": {nil, func(t *testing.T, c client.Client) {
				change(t, c, &argo.Workflow{}, "scan-w000", touch)
			}, true},
			"the workflow is replaced by one of the same name meanwhile": {nil, func(t *testing.T, c client.Client) {
				if err := c.Delete(t.Context(), flow("one")); err != nil {
					t.Fatal(err)
				}
				if err := c.Create(t.Context(), flow("two")); err != nil {
					t.Fatal(err)
				}
			}, true},
		}
	}
	for what, action := range actions {
		for name, tc := range cases(what == "suspend" || what == "resume") {
			t.Run(what+": "+name, func(t *testing.T) {
				scheme := runtime.NewScheme()
				for _, add := range []func(*runtime.Scheme) error{argo.AddToScheme, assayv1alpha1.AddToScheme} {
					if err := add(scheme); err != nil {
						t.Fatal(err)
					}
				}
				run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}}
				server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run, flow("one")).Build()
				if err := server.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
					t.Fatal(err)
				}
				meanwhile := func() {
					if tc.during != nil {
						tc.during(t, server)
					}
				}
				written := interceptor.NewClient(server, interceptor.Funcs{
					Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
						meanwhile()
						if err := refuseStale(ctx, c, object); err != nil {
							return err
						}
						return c.Apply(ctx, object, options...)
					},
					Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
						meanwhile()
						return c.Delete(ctx, object, options...)
					},
				})
				if tc.before != nil {
					tc.before(t, server)
				}
				before := read(t, server)
				a := &Applier{Client: written, Live: server, Executor: &argo.Executor{Client: written, Live: server}}
				err := a.Do(t.Context(), run, action)
				if apierrors.IsConflict(err) != tc.refused || err != nil && !tc.refused {
					t.Errorf("got %v, want it refused: %v", err, tc.refused)
				}
				after := read(t, server)
				if tc.refused && tc.during == nil && (after == nil || after.ResourceVersion != before.ResourceVersion) {
					t.Error("a stale decision was written")
				}
				if tc.refused && (after == nil || after.Spec.Shutdown != "" || after.Spec.Suspend != nil) {
					t.Errorf("a stale decision was written: %+v", after)
				}
			})
		}
	}
}

func flow(uid string) *argo.Workflow {
	return &argo.Workflow{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "scan-w000", UID: types.UID(uid),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: assayv1alpha1.GroupVersion.String(), Kind: "BenchmarkRun", Name: "scan", UID: "u", Controller: ptr.To(true),
		}},
	}}
}

func change(t *testing.T, c client.Client, object client.Object, name string, edit func(client.Object)) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, object); err != nil {
		t.Fatal(err)
	}
	edit(object)
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func touch(object client.Object) { object.SetAnnotations(map[string]string{"successor": "was here"}) }

// read returns the Workflow, or nil if it does not exist.
func read(t *testing.T, c client.Client) *argo.Workflow {
	t.Helper()
	var out argo.Workflow
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "scan-w000"}, &out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

// refuseStale rejects an applied object with an old resource version, as the API server does and the fake client does not.
func refuseStale(ctx context.Context, c client.Client, object any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var applied, live metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &applied); err != nil {
		return err
	}
	live.SetGroupVersionKind(applied.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(&applied), &live); err != nil {
		return err
	}
	stale := applied.ResourceVersion != "" && applied.ResourceVersion != live.ResourceVersion
	if stale || applied.UID != "" && applied.UID != live.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: applied.Kind}, applied.Name, errors.New("it has been modified"))
	}
	return nil
}

// Writes of a schedule to runs and revisions require the resource version that was read.
func TestApplySchedule_StaleDecisionWritesNothing(t *testing.T) {
	version := func(object client.Object) schedule.Version {
		return schedule.Version{Name: object.GetName(), UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion()}
	}
	writes := map[string]func(a *Applier, run, revision schedule.Version) error{
		"cancel a run": func(a *Applier, run, _ schedule.Version) error {
			return a.CancelRun(t.Context(), "lab", schedule.Run{Version: run})
		},
		"delete a run": func(a *Applier, run, _ schedule.Version) error {
			return a.Delete(t.Context(), "BenchmarkRun", "lab", []schedule.Version{run})
		},
		"mark a revision": func(a *Applier, _, revision schedule.Version) error {
			return a.MarkRevisions(t.Context(), "lab", []schedule.Mark{{Of: revision, Sequence: 3}})
		},
		"delete a revision": func(a *Applier, _, revision schedule.Version) error {
			return a.Delete(t.Context(), "BenchmarkRevision", "lab", []schedule.Version{revision})
		},
	}
	for what, write := range writes {
		for name, since := range map[string]bool{"no other write": false, "the object was changed since": true} {
			t.Run(what+": "+name, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := assayv1alpha1.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				at := metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}
				run, revision := &assayv1alpha1.BenchmarkRun{ObjectMeta: at}, &assayv1alpha1.BenchmarkRevision{ObjectMeta: at}
				server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run, revision).WithStatusSubresource(revision).Build()
				for _, object := range []client.Object{run, revision} {
					if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
						t.Fatal(err)
					}
				}
				if since {
					change(t, server, &assayv1alpha1.BenchmarkRun{}, "scan", touch)
					change(t, server, &assayv1alpha1.BenchmarkRevision{}, "scan", touch)
				}
				strict := interceptor.NewClient(server, interceptor.Funcs{
					SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
						options ...client.SubResourcePatchOption) error {
						if err := refuseStale(ctx, c, object); err != nil {
							return err
						}
						return c.SubResource(sub).Patch(ctx, object, patch, options...)
					},
				})
				if err := write(&Applier{Client: strict, Live: server}, version(run), version(revision)); apierrors.IsConflict(err) != since ||
					err != nil && !since {
					t.Errorf("got %v, want it refused: %v", err, since)
				}
			})
		}
	}
}

// Otherwise a user who can label runs could prevent the end of a run by repeated writes.
func TestStatus_ConcurrentWritesDoNotBlockIt(t *testing.T) {
	for sentence, tc := range map[string]struct {
		times   int
		edit    func(client.Object)
		refused bool
	}{
		"no other write":               {0, touch, false},
		"a new label":                  {1, touch, false},
		"new labels repeatedly":        {statusTries - 1, touch, false},
		"a new spec":                   {statusTries - 1, func(object client.Object) { object.SetGeneration(2) }, false},
		"a status of another operator": {1, ends, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := assayv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			run := &assayv1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "scan", UID: "u"}}
			server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).Build()
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
				t.Fatal(err)
			}
			tries := 0
			written := interceptor.NewClient(server, interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, _ string, object client.Object, _ client.Patch,
					_ ...client.SubResourcePatchOption) error {
					if tries < tc.times {
						change(t, c, &assayv1alpha1.BenchmarkRun{}, "scan", func(object client.Object) {
							tc.edit(object)
							object.SetLabels(map[string]string{"try": strconv.Itoa(tries)})
						})
					}
					tries++
					return refuseStale(ctx, c, object)
				},
			})
			a := &Applier{Client: written, Live: server}
			_, err := a.Status(t.Context(), run, &assayv1alpha1.BenchmarkRunStatus{Phase: assayv1alpha1.PhaseFailed})
			if apierrors.IsConflict(err) != tc.refused || err != nil && !tc.refused {
				t.Errorf("after %d tries: %v, want it refused: %v", tries, err, tc.refused)
			}
		})
	}
}

func ends(object client.Object) {
	object.(*assayv1alpha1.BenchmarkRun).Status.Phase = assayv1alpha1.PhaseSucceeded
}
