package integration

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/lease"
)

// operatorUser is the ServiceAccount in config/rbac/nodes_policy.yaml.
const operatorUser = "system:serviceaccount:" + systemNamespace + ":assay-operator"

// scopedUser is the ServiceAccount of another operator, with rights in one run namespace only.
const scopedUser = "system:serviceaccount:" + systemNamespace + ":assay-scoped"

// granted holds the operator's rights from config/rbac: in the whole cluster, in each namespace with runs, and in its own namespace.
var granted struct{ everywhere, runs, own []rbacv1.PolicyRule }

// runsRole holds granted.runs, to be bound in some or all namespaces.
const runsRole = "assay-operator-runs"

// grant gives operatorUser exactly the rights of config/rbac, in every namespace, so that a missing right fails a test; and
// scopedUser the same without any run namespace. The rights in the operator's own namespace follow for each test.
func grant() error {
	var policy []client.Object
	for _, name := range []string{"role.yaml", "leases_role.yaml", "leader_election_role.yaml", "nodes_policy.yaml",
		"runs_policy.yaml", "pods_policy.yaml"} {
		objects, err := readConfig(name)
		if err != nil {
			return fmt.Errorf("config/rbac/%s: %w", name, err)
		}
		for _, object := range objects {
			var role rbacv1.Role
			switch {
			case !strings.HasSuffix(object.GetKind(), "Role"):
				policy = append(policy, object)
				continue
			case runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role) != nil:
				return fmt.Errorf("config/rbac/%s is no role", name)
			case object.GetKind() == "ClusterRole":
				granted.everywhere = append(granted.everywhere, role.Rules...)
			case role.Namespace == "runs":
				granted.runs = append(granted.runs, role.Rules...)
			default:
				granted.own = append(granted.own, role.Rules...)
			}
		}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, object := range append(policy,
		&rbacv1.ClusterRole{ObjectMeta: meta("assay-operator"), Rules: granted.everywhere},
		&rbacv1.ClusterRole{ObjectMeta: meta(runsRole), Rules: granted.runs},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("assay-operator"), RoleRef: roleRef("ClusterRole", "assay-operator"), Subjects: operators()},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(runsRole), RoleRef: roleRef("ClusterRole", runsRole), Subjects: subjects(operatorUser)},
	) {
		if err := admin.Create(suiteContext, object); err != nil {
			return err
		}
	}
	return nil
}

// grantOwn makes the namespace of a test for leases, and gives both users the rights of config/rbac in it.
func (w *world) grantOwn() {
	w.t.Helper()
	own := metav1.ObjectMeta{Namespace: w.operator.system, Name: "assay-operator"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own.Namespace}},
		&rbacv1.Role{ObjectMeta: own, Rules: granted.own},
		&rbacv1.RoleBinding{ObjectMeta: own, RoleRef: roleRef("Role", own.Name), Subjects: operators()},
	} {
		w.must(admin.Create(w.ctx, object))
	}
	w.untilMay(operatorUser, "get", coordinationv1.GroupName, "leases", own.Namespace)
}

// untilMay waits until the API server has noticed a right. A request before would fail, and be repeated only after seconds.
func (w *world) untilMay(user, verb, group, resource, namespace string) {
	w.t.Helper()
	w.until(user+" may "+verb+" "+resource+" in "+namespace, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
		}}
		if err := admin.Create(w.ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New("not yet")
		}
		return nil
	})
}

func operators() []rbacv1.Subject { return append(subjects(operatorUser), subjects(scopedUser)...) }

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func subjects(user string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
}

// readConfig decodes the objects in a file of config/rbac.
func readConfig(name string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", name))
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			out = append(out, object)
		}
	}
}

// right is a verb on a resource, in the operator's own namespace or elsewhere.
type right struct {
	own                   bool
	verb, group, resource string
}

func (r right) String() string {
	where := "where runs are"
	if r.own {
		where = "in the operator's own namespace"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.verb, r.resource, r.group, where))
}

// notAskedFor are rights that the API server checks on behalf of another request, so that no request shows them.
var notAskedFor = map[right]string{
	{false, "update", "assay.dev", "benchmarkruns/finalizers"}: "admission (OwnerReferencesPermissionEnforcement, on in this suite) asks for it whenever an object owned by a run is made",
	{false, "execute", "assay.dev", "benchmarkruns"}:           "config/rbac/runs_policy.yaml asks for it whenever a workflow of a run is made",
	{true, "patch", "", "events"}:                              "an event of a leader that is like one before is counted up, which no suite waits for",
}

// usage records the rights that the operator used during the suite.
type usage struct {
	mutex  sync.Mutex
	rights map[right]bool
}

var used = usage{rights: map[right]bool{}}

// requests parses a request as the API server does.
var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// watch records the allowed requests of a connection.
func (u *usage) watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if info, bad := requests.NewRequestInfo(r); err == nil && bad == nil && info.IsResourceRequest &&
				response.StatusCode != http.StatusForbidden {
				u.note(info, response.StatusCode == http.StatusCreated)
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (u *usage) note(info *request.RequestInfo, created bool) {
	one := right{strings.HasSuffix(info.Namespace, systemSuffix), info.Verb, info.APIGroup, info.Resource}
	if info.Subresource != "" {
		one.resource += "/" + info.Subresource
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.rights[one] = true
	if created {
		// An apply that creates an object needs both rights.
		one.verb = "create"
		u.rights[one] = true
	}
}

// unused returns the rights of config/rbac that the suite did not use.
func (u *usage) unused() []string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	var out []string
	for own, rules := range map[bool][]rbacv1.PolicyRule{true: granted.own, false: slices.Concat(granted.everywhere, granted.runs)} {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if one := (right{own, verb, group, resource}); !u.rights[one] && notAskedFor[one] == "" {
							out = append(out, one.String())
						}
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// Beside its rights on nodes and in its own namespace, an operator needs only a Role in its run namespace, also while a run of a namespace
// that it no longer manages holds a node.
func TestRights_OperatorOfOneNamespaceNeedsNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
		spec.Placement.Exclusive = assayv1alpha1.ExclusiveNode
	}, boundIn)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-"}}
	w.must(admin.Create(w.ctx, other))
	elsewhere := lease.Lease{Node: w.node("node-b")}.TakenBy(lease.Holder{Namespace: other.Name, Name: "scan", UID: "1"}, true,
		lease.DefaultDuration, time.Now().Add(-time.Hour))
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.system(), Name: lease.Name(elsewhere.Node), Labels: map[string]string{executor.ManagedByLabel: executor.ManagedBy},
	}}
	w.must(elsewhere.Write(object))
	w.must(admin.Create(w.ctx, object))
	w.must(admin.Create(w.ctx, w.template))
	w.create()
	w.untilStarted()
	if got := w.leaseOf(elsewhere.Node); got.Holder != elsewhere.Holder {
		t.Errorf("%s took a node from a run that this operator cannot look after", got.Holder)
	}
	w.untilTaint(w.node("node-a"), string(w.get().UID))
	w.finish()
	w.untilCondition(assayv1alpha1.ConditionComplete, metav1.ConditionTrue, assayv1alpha1.ReasonVerdictReached)
	w.untilReleased(w.node("node-a"))
	w.must(admin.Delete(w.ctx, object))
	w.must(client.IgnoreNotFound(admin.Delete(w.ctx, w.run)))
	w.until("the run is gone", func() error {
		if w.get().Name != "" {
			return errors.New("it is there")
		}
		return nil
	})
}

// A scrape needs a token, and the cluster's authorization.
func TestMetrics_NeedAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, withMetrics)
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		w.must(admin.Create(w.ctx, account))
		request := &authenticationv1.TokenRequest{}
		w.must(admin.SubResource("token").Create(w.ctx, account, request))
		return request.Status.Token
	}
	reader, other := token("reader"), token("other")
	name := metav1.ObjectMeta{Name: w.namespace + "-metrics"}
	w.must(admin.Create(w.ctx, &rbacv1.ClusterRole{ObjectMeta: name,
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}))
	w.must(admin.Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: roleRef("ClusterRole", name.Name), Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "reader"}},
	}))
	// The certificate is self-signed by the operator.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(url, token string) (int, error) {
		request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
		w.must(err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := insecure.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	metrics := "https://" + w.operator.metricsAddress + "/metrics"
	w.until("who may read them does", func() error {
		if status, err := ask(metrics, reader); err != nil || status != http.StatusOK {
			return fmt.Errorf("HTTP %d: %w", status, err)
		}
		return nil
	})
	for who, tc := range map[string]struct {
		url, token string
		want       int
	}{
		"no token":                      {metrics, "", http.StatusUnauthorized},
		"an invalid token":              {metrics, "made.up.token", http.StatusUnauthorized},
		"a token without authorization": {metrics, other, http.StatusForbidden},
		"no token, without TLS":         {strings.Replace(metrics, "https", "http", 1), "", http.StatusBadRequest},
	} {
		if got, err := ask(tc.url, tc.token); err != nil || got != tc.want {
			t.Errorf("%s is told HTTP %d, %v; want %d", who, got, err, tc.want)
		}
	}
}
