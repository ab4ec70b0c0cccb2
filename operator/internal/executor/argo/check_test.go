package argo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

// apiServer returns configured answers.
type apiServer struct {
	kinds        []string
	kindsErr     error
	tryErr       error
	asked, tried int
}

func (s *apiServer) checker() Checker {
	return Checker{
		Kinds: func(context.Context) (*metav1.APIResourceList, error) {
			s.asked++
			if s.kindsErr != nil {
				return nil, s.kindsErr
			}
			list := &metav1.APIResourceList{}
			for _, kind := range s.kinds {
				list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
			}
			return list, nil
		},
		Try: func(context.Context) error { s.tried++; return s.tryErr },
	}
}

var both = []string{"Workflow", "WorkflowTaskResult"}

func TestChecker_ServedKindsAndFieldsDecideTheState(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: "argoproj.io"}, "")
	for name, tc := range map[string]struct {
		server apiServer
		reason string
		says   string
		absent bool
	}{
		"all kinds and fields":                   {server: apiServer{kinds: both}},
		"no API group":                           {server: apiServer{kindsErr: notFound}, reason: assayv1alpha1.ReasonEngineMissing, says: "argo.mode=bundled", absent: true},
		"another project of the same group only": {server: apiServer{kinds: []string{"Application"}}, reason: assayv1alpha1.ReasonEngineMissing, says: "kind Workflow", absent: true},
		"CRDs from before task results":          {server: apiServer{kinds: both[:1]}, reason: assayv1alpha1.ReasonEngineTooOld, says: "WorkflowTaskResult"},
		"CRDs without a field that is applied": {
			server: apiServer{kinds: both, tryErr: errors.New(`failed to create typed patch object (default/x; argoproj.io/v1alpha1, Kind=Workflow): .spec.podMetadata: field not declared in schema`)},
			reason: assayv1alpha1.ReasonEngineTooOld, says: "the field .spec.podMetadata of a Workflow",
		},
		"CRDs without a field, with a strict decoding error": {
			server: apiServer{kinds: both, tryErr: errors.New(`strict decoding error: unknown field "spec.templates[0].initContainers"`)},
			reason: assayv1alpha1.ReasonEngineTooOld, says: "spec.templates[0].initContainers",
		},
		"a policy that refuses the sample": {server: apiServer{kinds: both, tryErr: errors.New("admission webhook denied the request: no such image")}},
	} {
		t.Run(name, func(t *testing.T) {
			monitor := NewMonitor(tc.server.checker(), testclock.NewFakeClock(time.Now()))
			if got := monitor.State(); got.Problem != assayv1alpha1.ReasonWaitingForEngine || !got.Absent {
				t.Errorf("before the first check: %+v", got)
			}
			monitor.Refresh(t.Context())
			got := monitor.State()
			if got.Problem != tc.reason || got.Absent != tc.absent || !strings.Contains(got.Message, tc.says) {
				t.Errorf("state %+v, want %s with %q", got, tc.reason, tc.says)
			}
			select {
			case <-monitor.Ready():
				if tc.absent {
					t.Error("Ready is closed without the API")
				}
			default:
				if !tc.absent {
					t.Error("Ready is not closed")
				}
			}
		})
	}
}

func TestMonitor_StateFollowsTheAPIServer(t *testing.T) {
	server := &apiServer{kindsErr: apierrors.NewNotFound(schema.GroupResource{}, "")}
	clock := testclock.NewFakeClock(time.Now())
	monitor := NewMonitor(server.checker(), clock)
	monitor.Refresh(t.Context())

	server.kindsErr, server.kinds = nil, both
	monitor.Refresh(t.Context())
	if got := monitor.State(); got.Problem != "" || server.tried != 1 {
		t.Errorf("after Argo was installed: %+v, tried %d times", got, server.tried)
	}
	clock.Step(whileReady)
	monitor.Refresh(t.Context())
	if server.tried != 1 {
		t.Errorf("tried %d times without a change", server.tried)
	}

	server.kindsErr = errors.New("connection refused")
	monitor.Refresh(t.Context())
	if got := monitor.State(); got.Problem != "" {
		t.Errorf("an unreachable API server changed the state: %+v", got)
	}

	server.kindsErr, server.tryErr = nil, errors.New(".spec.onExit: field not declared in schema")
	clock.Step(tryEvery)
	monitor.Refresh(t.Context())
	if got := monitor.State(); got.Problem != assayv1alpha1.ReasonEngineTooOld {
		t.Errorf("after its CRDs were replaced by older ones: %+v", got)
	}

	server.kinds = nil
	monitor.Refresh(t.Context())
	if got := monitor.State(); got.Problem != assayv1alpha1.ReasonEngineMissing {
		t.Errorf("after its CRDs were deleted: %+v", got)
	}
}
