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

	"assay.dev/assay/operator/internal/certificates"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/dependencies"
	"assay.dev/assay/operator/internal/executor/argo"
)

// question requests the state of its dependencies from the operator.
type question func(context.Context) (*dependencies.Report, error)

// askTimeout exceeds the timeout of the operator for its store.
const askTimeout = 20 * time.Second

// maxReport is the maximum size of the answer in bytes.
const maxReport = 1 << 20

// askOperator queries the operator through a port-forward, because it listens inside its pod only.
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
		return nil, fmt.Errorf("HTTP status %d; the operator may be older than this assay", response.StatusCode)
	}
	var report dependencies.Report
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReport)).Decode(&report); err != nil {
		return nil, fmt.Errorf("invalid response: %w", err)
	}
	return &report, nil
}

// operatorLabels select the objects of the operator.
var operatorLabels = client.MatchingLabels{"app.kubernetes.io/part-of": "assay", "app.kubernetes.io/component": "operator"}

func operatorPod(ctx context.Context, reader client.Reader, system string) (*corev1.Pod, error) {
	var list corev1.PodList
	if err := reader.List(ctx, &list, client.InNamespace(system), operatorLabels); err != nil {
		return nil, err
	}
	if pod := cli.FirstReadyPod(list.Items); pod != nil {
		return pod, nil
	}
	return nil, fmt.Errorf("no ready operator pod in namespace %s", system)
}

// platform returns the state of the dependencies as the operator reports it, or the reason that it cannot be queried.
func platform(report *dependencies.Report, err error) []finding {
	if err != nil {
		return []finding{{Check: "ledger and Argo", Found: "query the operator: " + err.Error(),
			Remedy: "doctor needs permission to port-forward to the operator's pod; otherwise see the conditions of a run: assay get NAME"}}
	}
	return []finding{
		fromOperator("ledger", report.Ledger, "see the operator's logs"),
		fromOperator(report.Engine.Name, report.Engine, "see the finding"),
		// Prometheus is optional.
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

// setup holds the arguments of the operator. The zero value has the defaults of charts/assay.
type setup struct {
	flags          map[string]string
	present, ready bool
}

func findInstallation(ctx context.Context, reader client.Reader, system string) (setup, error) {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list, client.InNamespace(system), operatorLabels); err != nil {
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

// namespace checks whether the operator watches the namespace.
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

// secrets checks the Secrets with which pods of the namespace reach the object store.
func (i setup) secrets(ctx context.Context, reader client.Reader, namespace string) []finding {
	var out []finding
	if name := i.flag("ledger-secret", "assay-ledger"); name != "" {
		out = append(out, secret(ctx, reader, namespace, name, i.flag("ledger-secret-access-key", "accessKey"),
			i.flag("ledger-secret-secret-key", "secretKey")))
	}
	if name := i.flag("ledger-ca-secret", ""); name != "" {
		out = append(out, authority(ctx, reader, namespace, name, i.flag("ledger-ca-key", "ca.crt"), time.Now()))
	}
	if i.present && strings.Contains(i.flag("ledger", ""), "endpoint=http://") {
		out = append(out, finding{Check: "TLS of the object store", OK: true, Found: "off: the network can read results",
			Remedy: "set objectStore.tls.enabled=true of charts/assay, or objectStore.external.secure=true"})
	}
	return out
}

// soonExpired is the remaining validity of an authority at which it should have been renewed: the job of the chart does so 120 days before.
const soonExpired = 60 * 24 * time.Hour

// authority checks a Secret with the authorities of the object store, and that the last of them is still valid for some time.
func authority(ctx context.Context, reader client.Reader, namespace, name, key string, now time.Time) finding {
	f := secret(ctx, reader, namespace, name, key)
	if !f.OK {
		return f
	}
	var object corev1.Secret
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object); err != nil {
		return f
	}
	end, err := certificates.LastEnd(object.Data[key])
	switch {
	case err != nil:
		f.OK, f.Found, f.Remedy = false, fmt.Sprintf("%s holds no certificate: %v", key, err), "give it certificates in PEM form"
	case !now.Before(end):
		f.OK, f.Found = false, "expired on "+end.Format(time.DateOnly)
	case end.Sub(now) < soonExpired:
		f.Found = "expires on " + end.Format(time.DateOnly)
	default:
		f.Found = "valid until " + end.Format(time.DateOnly)
	}
	if err == nil && end.Sub(now) < soonExpired {
		f.Remedy = "renew it; for a certificate that the chart made, look for failed Jobs of the CronJob assay-certificates"
	}
	return f
}

func secret(ctx context.Context, reader client.Reader, namespace, name string, keys ...string) finding {
	f := finding{Check: "Secret " + namespace + "/" + name}
	var object corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object)
	empty := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return len(object.Data[key]) > 0 })
	switch {
	case apierrors.IsNotFound(err):
		f.Found, f.Remedy = "missing", "add "+namespace+" to runNamespaces of charts/assay, or create the Secret if you manage it yourself"
	case err != nil:
		f.Found, f.Remedy = err.Error(), "doctor needs to read this Secret"
	case len(empty) > 0:
		f.Found, f.Remedy = strings.Join(empty, " and ")+" is empty", "add the keys "+strings.Join(keys, " and ")
	default:
		f.OK, f.Found = true, "has "+strings.Join(keys, " and ")
	}
	return f
}

// argoControllers checks the versions of all workflow controllers, as found in their images.
func argoControllers(ctx context.Context, reader client.Reader) []finding {
	var list appsv1.DeploymentList
	if err := reader.List(ctx, &list); err != nil {
		return nil // Without permission to list all namespaces, the report of the operator has to suffice.
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

// controllerImage matches the version in the image of a workflow controller. Images pinned by digest alone do not match.
var controllerImage = regexp.MustCompile(`(?:^|/)workflow-controller:(v?[0-9][^@]*)`)

var digits = regexp.MustCompile(`[0-9]+`)

// numbers returns the major and the minor version.
func numbers(version string) []int {
	var out []int
	for _, text := range digits.FindAllString(version, 2) {
		number, _ := strconv.Atoi(text) // The text has only digits; on overflow Atoi returns the largest int.
		out = append(out, number)
	}
	return out
}
