package argo

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
)

// Needed is the oldest supported version of Argo Workflows.
const Needed = "v3.7"

const remedy = "install Argo Workflows " + Needed +
	" or later with its CRDs, or charts/assay with argo.mode=bundled; the run then continues without further action"

// Checker asks the API server whether Argo can run waves.
type Checker struct {
	// Kinds lists the served kinds of Argo's API. A NotFound error means that none is served.
	Kinds func(ctx context.Context) (*metav1.APIResourceList, error)
	// Try writes a workflow with every field that Assay uses, without storing it.
	Try func(ctx context.Context) error
}

// unknownField matches the API server's error about a field that is not in the CRD.
var unknownField = regexp.MustCompile(`(\.spec[^\s:]*): field not declared in schema|unknown field "(spec[^"]*)"`)

// check reads the served kinds and, if try is set, tries a Workflow. After an error the state is unknown.
func (c *Checker) check(ctx context.Context, try bool) (plan.EngineState, error) {
	list, err := c.Kinds(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return plan.EngineState{}, err
	}
	serves := func(kind string) bool {
		return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
	}
	switch {
	case !serves("Workflow"):
		return plan.EngineState{
			Problem: assayv1alpha1.ReasonEngineMissing, Absent: true,
			Message: fmt.Sprintf("the cluster has no Argo Workflows: the API server does not serve kind Workflow of %s; %s", GroupVersion,
				remedy),
		}, nil
	case !serves("WorkflowTaskResult"):
		return plan.EngineState{
			Problem: assayv1alpha1.ReasonEngineTooOld,
			Message: fmt.Sprintf("Argo's CRDs are older than %s: kind WorkflowTaskResult, with which pods report, is not served; %s", Needed,
				remedy),
		}, nil
	case !try:
		return plan.EngineState{}, nil
	}
	if err = c.Try(ctx); err == nil || ctx.Err() != nil {
		return plan.EngineState{}, ctx.Err()
	}
	// An error without an unknown field does not depend on Argo's version.
	match := unknownField.FindStringSubmatch(err.Error())
	if match == nil {
		return plan.EngineState{}, nil
	}
	return plan.EngineState{
		Problem: assayv1alpha1.ReasonEngineTooOld,
		Message: fmt.Sprintf("Argo's CRDs are older than %s: they do not know the field %s of a Workflow; %s", Needed, match[1]+match[2], remedy),
	}, nil
}
