// Package attacks contains attacks by users and programs with few rights, one function for each. make test runs them against a
// kube-apiserver with the operator and a MinIO; make attack runs them and some others against a whole cluster.
package attacks

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/stats"
)

// Attack is one attack. Its test fails if the attack succeeds.
type Attack struct {
	// Name and Promise are the attack and the promise that it would break, in the words of docs/threat-model.md.
	Name, Promise string
	// Guard is the defence; if it is removed, the attack succeeds.
	Guard string
	// Try is nil for an attack that needs a whole cluster; test/e2e implements it under the same name.
	Try func(t *testing.T, w *World)
	// Needs is the part of the platform that the attack requires.
	Needs Part
}

// Part is the target of an attack in the platform.
type Part int

const (
	// API is an API server with the operator and the roles of the release.
	API Part = iota
	// Limited is an API server with Limits for the namespace Limited.
	Limited
	// Store is a MinIO with the users of the release.
	Store
	// Cluster is the whole platform, with nodes.
	Cluster
)

// World is the target of the attacks.
type World struct {
	// Kube is a client with all rights, and Config is its connection.
	Kube   client.Client
	Config *rest.Config
	// System is the release's namespace, Namespace one with runs, and Limited one with the same rights and with Limits for its runs.
	System, Namespace, Limited string
	// TenantRoles are the roles of the tenant in Namespace and Limited.
	TenantRoles []string
	// Sound returns a valid run whose node selector matches no node.
	Sound func(namespace, name string) *assayv1alpha1.BenchmarkRun
	// Bucket is the store; nil without one.
	Bucket *Bucket
}

// Tenant is the attacking user. Service accounts attack as well.
const Tenant = "attacker"

func (w *World) operator() string { return "system:serviceaccount:" + w.System + ":assay-operator" }
func (w *World) executor() string { return "system:serviceaccount:" + w.Namespace + ":assay-executor" }

// Of returns the attacks on a part of the platform.
func Of(part Part) []Attack {
	var out []Attack
	for _, a := range All {
		if a.Needs == part {
			out = append(out, a)
		}
	}
	return out
}

// Run tries attacks one after the other and returns how many succeeded.
func Run(t *testing.T, w *World, list []Attack) (succeeded int) {
	t.Helper()
	for _, a := range list {
		if !t.Run(a.Name, func(t *testing.T) {
			t.Logf("promise: %s; guard: %s", a.Promise, a.Guard)
			a.Try(t, w)
		}) {
			succeeded++
		}
	}
	return succeeded
}

// confidence of the interval around the figure.
const confidence = 0.95

// Figure formats the result of the suite: the successful attacks out of all, with the exact confidence limits of the share.
func Figure(succeeded, tried int) string {
	low, high := stats.ShareLimits(succeeded, tried, confidence)
	line, err := json.Marshal(struct {
		Figure  string  `json:"figure"`
		Value   float64 `json:"value"`
		Unit    string  `json:"unit"`
		Low     float64 `json:"low"`
		High    float64 `json:"high"`
		Samples int     `json:"samples"`
	}{"security.tenant_attacks_succeeded", float64(succeeded), "1", low * float64(tried), high * float64(tried), tried})
	if err != nil {
		panic(err) // Numbers and names.
	}
	return string(line)
}

// Hire grants the tenant its rights in the world's namespaces until the test ends, and waits until they are in force.
func (w *World) Hire(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{w.Namespace, w.Limited} {
		for _, role := range w.TenantRoles {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Tenant + "-" + role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: Tenant}},
			}
			if err := w.Kube.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Kube.Delete(context.Background(), binding) })
		}
		// The API server aggregates and reads roles with a delay.
		until(t, "the tenant may make runs in "+namespace, func() error {
			return w.as(t, Tenant).Create(t.Context(), w.Sound(namespace, "attack-hired"), client.DryRunAll)
		})
	}
}

// as returns a client that impersonates another user.
func (w *World) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = user
	if parts := strings.Split(user, ":"); len(parts) == 4 {
		config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + parts[2], "system:authenticated"}
	}
	out, err := client.New(config, client.Options{Scheme: w.Kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func forbidden(t *testing.T, err error) {
	t.Helper()
	// A policy rejects with its own message and the code of an invalid object.
	if !apierrors.IsForbidden(err) && (err == nil || !strings.Contains(err.Error(), "denied request")) {
		t.Errorf("error %v, want one that it is forbidden", err)
	}
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v, want one that it is invalid and says %q", err, says)
	}
}
