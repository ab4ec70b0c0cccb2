package platform

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/dependencies"
	"assay.dev/assay/operator/internal/executor/argo"
)

// question asks the operator how what it needs stands.
type question func(context.Context) (*dependencies.Report, error)

// askTimeout is above what the operator itself waits for its store.
const askTimeout = 20 * time.Second

// mostReport is more than the states of what the operator needs take.
const mostReport = 1 << 20

// askOperator reaches the operator through a port-forward, which works wherever kubectl does. It answers within its pod only.
func askOperator(ctx context.Context, cluster *cli.Cluster, system string) (*dependencies.Report, error) {
	pod, err := operatorPod(ctx, cluster, system)
	if err != nil {
		return nil, err
	}
	port, err := cli.ForwardPod(ctx, cluster, pod, dependencies.Port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port)+dependencies.Path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers HTTP %d: it may be older than this assay", response.StatusCode)
	}
	var report dependencies.Report
	if err := json.NewDecoder(io.LimitReader(response.Body, mostReport)).Decode(&report); err != nil {
		return nil, fmt.Errorf("invalid answer: %w", err)
	}
	return &report, nil
}

// bundledKinds selects the operator's own objects.
var bundledKinds = client.MatchingLabels{"app.kubernetes.io/part-of": "assay", "app.kubernetes.io/component": "operator"}

func operatorPod(ctx context.Context, reader client.Reader, system string) (*corev1.Pod, error) {
	var list corev1.PodList
	if err := reader.List(ctx, &list, client.InNamespace(system), bundledKinds); err != nil {
		return nil, err
	}
	if pod := cli.FirstReadyPod(list.Items); pod != nil {
		return pod, nil
	}
	return nil, fmt.Errorf("namespace %s has no pod of an operator that is ready", system)
}

// platform is what the operator says of what it needs, or why it cannot be asked.
func platform(report *dependencies.Report, err error) []finding {
	if err != nil {
		return []finding{{Check: "ledger and Argo", Found: "the operator cannot be asked: " + err.Error(),
			Remedy: "doctor needs to port-forward to the operator's pod; the conditions of a run say the same: assay get NAME"}}
	}
	return []finding{
		fromOperator("ledger", report.Ledger, "see the operator's logs"),
		fromOperator(report.Engine.Name, report.Engine, "see what was found"),
		// Runs work without.
		{Check: "Prometheus", OK: true, Found: report.Prometheus.Found, Remedy: report.Prometheus.Remedy},
	}
}

func fromOperator(check string, state dependencies.Finding, remedy string) finding {
	out := finding{Check: check, OK: state.OK, Found: state.Found, Remedy: state.Remedy}
	if !state.OK {
		out.Found, out.Remedy = state.Reason+": "+state.Found, cmp.Or(state.Remedy, remedy)
	}
	return out
}

// setup is what the operator was started with; the zero value is what charts/assay starts it with.
type setup struct {
	flags          map[string]string
	present, ready bool
}

func findInstallation(ctx context.Context, reader client.Reader, system string) (setup, error) {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list, client.InNamespace(system), bundledKinds); err != nil {
		return setup{}, err
	}
	out := setup{flags: map[string]string{}, present: len(list.Items) > 0}
	for _, deployment := range list.Items {
		out.ready = out.ready || deployment.Status.ReadyReplicas > 0
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, arg := range container.Args {
				if name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "="); ok {
					out.flags[name] = value
				}
			}
		}
	}
	return out, nil
}

func (i setup) flag(name, otherwise string) string {
	if value, ok := i.flags[name]; ok {
		return value
	}
	return otherwise
}

// namespace reports whether the operator watches the namespace at all.
func (i setup) namespace(namespace, system string) []finding {
	all := i.flag("namespaces", "")
	if all == "" || slices.Contains(strings.Split(all, ","), namespace) {
		return nil
	}
	return []finding{{
		Check: "namespace " + namespace, Found: "the operator watches " + all + " only",
		Remedy: "create runs there, or add " + namespace + " to runNamespaces of charts/assay in " + system,
	}}
}

// secrets looks for what pods of the namespace read to reach the object store.
func (i setup) secrets(ctx context.Context, reader client.Reader, namespace string) []finding {
	var out []finding
	if name := i.flag("ledger-secret", "assay-ledger"); name != "" {
		out = append(out, secret(ctx, reader, namespace, name, i.flag("ledger-secret-access-key", "accessKey"),
			i.flag("ledger-secret-secret-key", "secretKey")))
	}
	if name := i.flag("ledger-ca-secret", ""); name != "" {
		out = append(out, secret(ctx, reader, namespace, name, i.flag("ledger-ca-key", "ca.crt")))
	}
	return out
}

func secret(ctx context.Context, reader client.Reader, namespace, name string, keys ...string) finding {
	f := finding{Check: "Secret " + namespace + "/" + name}
	var object corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object)
	empty := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return len(object.Data[key]) > 0 })
	switch {
	case apierrors.IsNotFound(err):
		f.Found, f.Remedy = "missing", "add "+namespace+" to runNamespaces of charts/assay, or create the Secret if it is your own"
	case err != nil:
		f.Found, f.Remedy = err.Error(), "doctor needs to read this Secret"
	case len(empty) > 0:
		f.Found, f.Remedy = strings.Join(empty, " and ")+" is empty", "give it the keys "+strings.Join(keys, " and ")
	default:
		f.OK, f.Found = true, "has "+strings.Join(keys, " and ")
	}
	return f
}

// argoControllers looks at the versions of all workflow controllers: only their images show them.
func argoControllers(ctx context.Context, reader client.Reader) []finding {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list); err != nil {
		return nil // The operator reports whether Argo can be used to those who may not list every namespace.
	}
	var out []finding
	for _, deployment := range list.Items {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			match := controllerImage.FindStringSubmatch(container.Image)
			if match == nil {
				continue
			}
			version := match[1]
			f := finding{Check: fmt.Sprintf("Argo controller %s/%s", deployment.Namespace, deployment.Name), OK: true, Found: version}
			if slices.Compare(numbers(version), numbers(argo.Needed)) < 0 {
				f.OK, f.Remedy = false, "upgrade Argo Workflows to "+argo.Needed+" or later"
			}
			out = append(out, f)
		}
	}
	return out
}

// controllerImage finds the version in the image of a workflow controller. One that is pinned by digest alone has none.
var controllerImage = regexp.MustCompile(`(?:^|/)workflow-controller:(v?[0-9][^@]*)`)

var digits = regexp.MustCompile(`[0-9]+`)

// numbers are the major and the minor version.
func numbers(version string) []int {
	var out []int
	for _, text := range digits.FindAllString(version, 2) {
		number, _ := strconv.Atoi(text) // Digits only; one too long for an int is new enough.
		out = append(out, number)
	}
	return out
}
