// Package attacks is what somebody tries who is trusted with little, one function for each attack. They are run against a kube-apiserver
// with the operator and a MinIO alone (make test), and against a whole cluster (make attack), which has some more of its own.
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

// Attack fails its test when it succeeds.
type Attack struct {
	// Name is what is tried, in the words of docs/threat-model.md; Promise is the one that it breaks there.
	Name, Promise string
	// Guard stands against it: taken out, the attack succeeds.
	Guard string
	// Try is nil for what takes a whole cluster: test/e2e has those, by their names.
	Try func(t *testing.T, w *World)
	// Needs is what has to be there for it.
	Needs Part
}

// Part of the platform that an attack is aimed at.
type Part int

const (
	// API is an API server with the operator and the roles of the release.
	API Part = iota
	// Limited is the same where Limits hold for the namespace Limited.
	Limited
	// Store is a MinIO with the users of the release.
	Store
	// Cluster is all of it, with nodes.
	Cluster
)

// World is what is attacked.
type World struct {
	// Kube may do everything, and Config is its connection.
	Kube   client.Client
	Config *rest.Config
	// System is the release's namespace, Namespace one with runs, and Limited one whose runs are bound to Limits, with the same rights.
	System, Namespace, Limited string
	// Tenant may what the roles of TenantRoles allow in Namespace and Limited.
	TenantRoles []string
	// Sound makes a run that is accepted, and that no node takes unless its node selector is taken away.
	Sound func(namespace, name string) *assayv1alpha1.BenchmarkRun
	// Bucket is the store; nil where there is none.
	Bucket *Bucket
}

// Tenant and the service accounts are who attacks.
const Tenant = "attacker"

func (w *World) operator() string { return "system:serviceaccount:" + w.System + ":assay-operator" }
func (w *World) executor() string { return "system:serviceaccount:" + w.Namespace + ":assay-executor" }

// Of are the attacks on a part of the platform.
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

// Figure is the line of the suite: how many attacks of how many succeeded, with the exact limits of what such a share may be.
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

// Hire gives the tenant its rights in the world's namespaces, until the test ends, and waits until they hold.
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
		// Roles are aggregated and read by the API server a moment after they were made.
		until(t, "the tenant may make runs in "+namespace, func() error {
			return w.as(t, Tenant).Create(t.Context(), w.Sound(namespace, "attack-hired"), client.DryRunAll)
		})
	}
}

// as is a client that is somebody else.
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
	// A policy says so in a message of its own, with the code of an invalid object.
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
