package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fault is one injected failure. Heal undoes effects that do not recover by themselves; it is always called after Inject.
type Fault interface {
	Inject(ctx context.Context) error
	Heal(ctx context.Context) error
}

// monitorGrace is how long Kubernetes takes to call a node not ready that says nothing (kube-controller-manager's
// --node-monitor-grace-period), and nodeGrace how long the operator then waits for it (--node-grace).
const (
	monitorGrace = 50 * time.Second
	nodeGrace    = 40 * time.Second
)

// makes are the faults by name. There is no fault of the clock, because all processes share this machine's, and a time namespace leaves
// CLOCK_REALTIME alone, so that a step cannot be kept to the cluster.
var makes = []struct {
	Kind
	make func(*world, uint64) Fault
}{
	{Kind{Name: "operator-killed"}, killed(component("operator"))},
	{Kind{Name: "operator-frozen", Least: 5 * time.Second, Most: 20 * time.Second}, frozen(component("operator"))},
	{Kind{Name: "operators-two", Least: 5 * time.Second, Most: 10 * time.Second},
		func(w *world, draw uint64) Fault { return &twoOperators{w, draw} }},
	{Kind{Name: "leader-thawed", Least: time.Second, Most: 5 * time.Second, Long: true},
		func(w *world, draw uint64) Fault { return &staleLeader{twoOperators: twoOperators{w, draw}} }},
	{Kind{Name: "argo-killed"}, killed(component("argo-controller"))},
	{Kind{Name: "kubelet-killed", Least: time.Second, Most: 5 * time.Second}, killedAndStarted(program("kubelet"))},
	{Kind{Name: "containerd-killed", Least: time.Second, Most: 5 * time.Second}, killedAndStarted(program("containerd"))},
	{Kind{Name: "shim-killed"}, killed(shim)},
	{Kind{Name: "runner-killed"}, killed(inBlock("main"))},
	{Kind{Name: "keeper-killed"}, killed(inBlock("keeper"))},
	{Kind{Name: "store-killed"}, killed(component("minio"))},
	{Kind{Name: "store-frozen", Least: 5 * time.Second, Most: 15 * time.Second}, frozen(component("minio"))},
	{Kind{Name: "store-slow", Least: 5 * time.Second, Most: 15 * time.Second},
		func(w *world, draw uint64) Fault { return &slow{w: w, draw: draw} }},
	{Kind{Name: "store-full", Least: 5 * time.Second, Most: 15 * time.Second, OwnStore: true},
		func(w *world, _ uint64) Fault { return &full{w: w} }},
	{Kind{Name: "store-away", Least: 5 * time.Second, Most: 25 * time.Second},
		func(w *world, draw uint64) Fault { return &away{w: w, draw: draw} }},
	{Kind{Name: "api-server-frozen", Least: 5 * time.Second, Most: 15 * time.Second}, frozen(program("kube-apiserver"))},
	{Kind{Name: "pod-deleted"}, toBlock(deletePod)},
	{Kind{Name: "pod-evicted"}, toBlock(evictPod)},
	{Kind{Name: "workflow-deleted"}, toBlock(deleteWorkflow)},
	{Kind{Name: "trial-out-of-memory", Least: 2 * time.Second, Most: 5 * time.Second},
		func(w *world, draw uint64) Fault { return &outOfMemory{w: w, draw: draw} }},
	{Kind{Name: "node-not-ready", Least: monitorGrace + 5*time.Second, Most: monitorGrace + 30*time.Second, Long: true},
		frozen(program("kubelet"))},
	{Kind{Name: "node-lost", Least: monitorGrace + nodeGrace + 10*time.Second, Most: monitorGrace + nodeGrace + time.Minute, Long: true},
		frozen(program("kubelet"))},
	{Kind{Name: "node-rebooted", Least: time.Second, Most: 5 * time.Second, Long: true}, func(w *world, draw uint64) Fault {
		return &reboot{killing{w, draw, everything, true}}
	}},
}

// victim finds the processes of a fault.
type victim func(ctx context.Context, w *world, draw uint64) ([]process, error)

func component(name string) victim {
	return func(ctx context.Context, w *world, draw uint64) ([]process, error) {
		pod, err := w.pod(ctx, system, name, draw)
		if err != nil {
			return nil, err
		}
		return w.node.container(container(pod, ""))
	}
}

func program(name string) victim {
	return func(_ context.Context, w *world, _ uint64) ([]process, error) { return w.node.component(name) }
}

// inBlock is a container of a block that runs. It is waited for, as a pod outlives its containers for a moment.
func inBlock(name string) victim {
	return func(ctx context.Context, w *world, draw uint64) (processes []process, err error) {
		err = wait(ctx, time.Minute, "the container "+name+" of a block runs", func(ctx context.Context) error {
			pod, err := w.block(ctx, draw)
			if err == nil {
				processes, err = w.node.container(container(pod, name))
			}
			return err
		})
		return processes, err
	}
}

func shim(ctx context.Context, w *world, draw uint64) (processes []process, err error) {
	err = wait(ctx, time.Minute, "the shim of a block runs", func(ctx context.Context) error {
		inside, err := inBlock("main")(ctx, w, draw)
		if err == nil {
			processes, err = w.node.shimOf(inside)
		}
		return err
	})
	return processes, err
}

func everything(_ context.Context, w *world, _ uint64) ([]process, error) {
	return w.node.members(func(int, string) bool { return true })
}

// killing sends SIGKILL to processes. The cluster's command restarts those that Kubernetes does not.
type killing struct {
	w      *world
	draw   uint64
	find   victim
	repair bool
}

func killed(find victim) func(*world, uint64) Fault {
	return func(w *world, draw uint64) Fault { return &killing{w, draw, find, false} }
}

func killedAndStarted(find victim) func(*world, uint64) Fault {
	return func(w *world, draw uint64) Fault { return &killing{w, draw, find, true} }
}

func (f *killing) Inject(ctx context.Context) error {
	processes, err := f.find(ctx, f.w, f.draw)
	if err != nil {
		return err
	}
	return signalAll(processes, syscall.SIGKILL)
}

func (f *killing) Heal(ctx context.Context) error {
	if !f.repair {
		return nil
	}
	return f.w.repair(ctx)
}

// reboot ends all processes of the node.
type reboot struct{ killing }

// Inject searches again for processes that started while the others died.
func (f *reboot) Inject(ctx context.Context) error {
	for range 3 {
		if err := f.killing.Inject(ctx); err != nil {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

func (f *reboot) Heal(ctx context.Context) error {
	// A kubelet that was killed while it wrote this file fails to start until the file is removed. The kubelet is not under test here.
	if err := os.Remove(filepath.Join(f.w.node.state, "kubelet", "cpu_manager_state")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return f.killing.Heal(ctx)
}

// freezing stops processes with SIGSTOP, so that they answer no request.
type freezing struct {
	w         *world
	draw      uint64
	find      victim
	processes []process
}

func frozen(find victim) func(*world, uint64) Fault {
	return func(w *world, draw uint64) Fault { return &freezing{w: w, draw: draw, find: find} }
}

func (f *freezing) Inject(ctx context.Context) (err error) {
	if f.processes, err = f.find(ctx, f.w, f.draw); err != nil {
		return err
	}
	return signalAll(f.processes, syscall.SIGSTOP)
}

func (f *freezing) Heal(context.Context) error { return signalAll(f.processes, syscall.SIGCONT) }

// slow lets the store run for a tenth of the time.
type slow struct {
	w     *world
	draw  uint64
	stop  context.CancelFunc
	ended sync.WaitGroup
	err   error
}

func (f *slow) Inject(ctx context.Context) error {
	processes, err := component("minio")(ctx, f.w, f.draw)
	if err != nil {
		return err
	}
	var running context.Context
	running, f.stop = context.WithCancel(ctx)
	f.ended.Go(func() {
		for signal, pause := syscall.SIGSTOP, 450*time.Millisecond; ; signal, pause = other(signal, pause) {
			if f.err = signalAll(processes, signal); f.err != nil {
				return
			}
			select {
			case <-running.Done():
				f.err = signalAll(processes, syscall.SIGCONT)
				return
			case <-time.After(pause):
			}
		}
	})
	return nil
}

func other(signal syscall.Signal, pause time.Duration) (syscall.Signal, time.Duration) {
	if signal == syscall.SIGSTOP {
		return syscall.SIGCONT, pause / 9
	}
	return syscall.SIGSTOP, pause * 9
}

func (f *slow) Heal(context.Context) error {
	if f.stop == nil {
		return nil
	}
	f.stop()
	f.ended.Wait()
	return f.err
}

// full fills the store's volume to the last byte.
type full struct {
	w    *world
	file string
}

// largestVolume that is filled: a larger one is the machine's own disk.
const largestVolume = 1 << 30

func (f *full) Inject(ctx context.Context) error {
	processes, err := component("minio")(ctx, f.w, 0)
	if err != nil {
		return err
	}
	data := fmt.Sprintf("/proc/%d/root/data", processes[0].pid)
	var volume syscall.Statfs_t
	if err := syscall.Statfs(data, &volume); err != nil {
		return err
	}
	if size := volume.Blocks * uint64(volume.Bsize); size > largestVolume {
		return fmt.Errorf("the store's volume has %d bytes, so it is not a dedicated one and is not filled", size)
	}
	f.file = filepath.Join(data, "chaos-filler")
	filler, err := os.Create(f.file)
	if err != nil {
		return err
	}
	defer filler.Close()
	for block := make([]byte, 1<<20); ; {
		_, err := filler.Write(block)
		switch {
		case errors.Is(err, syscall.ENOSPC) && len(block) > 1:
			block = block[:len(block)/2]
		case errors.Is(err, syscall.ENOSPC):
			return nil
		case err != nil:
			return err
		}
	}
}

func (f *full) Heal(ctx context.Context) error {
	if f.file == "" {
		return nil
	}
	return wait(ctx, time.Minute, "the store's volume has room", func(ctx context.Context) error {
		processes, err := component("minio")(ctx, f.w, 0)
		if err != nil {
			return err
		}
		err = os.Remove(fmt.Sprintf("/proc/%d/root/data/%s", processes[0].pid, filepath.Base(f.file)))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
}

// away removes the store's Service while a block runs and uploads its attempts.
type away struct {
	w    *world
	draw uint64
	took bool
}

func (f *away) Inject(ctx context.Context) error {
	if _, err := f.w.block(ctx, f.draw); err != nil {
		return err
	}
	f.took = true
	return f.selector(ctx, `{"spec":{"selector":{"chaos":"away"}}}`)
}

func (f *away) Heal(ctx context.Context) error {
	if !f.took {
		return nil
	}
	return wait(ctx, time.Minute, "the store's Service is back", func(ctx context.Context) error {
		return f.selector(ctx, `{"spec":{"selector":{"chaos":null}}}`)
	})
}

func (f *away) selector(ctx context.Context, patch string) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "assay-minio"}}
	return f.w.kube.Patch(ctx, service, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// twoOperators runs a second one and kills one of them: the other takes over.
type twoOperators struct {
	w    *world
	draw uint64
}

func (f *twoOperators) Inject(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	processes, err := component("operator")(ctx, f.w, f.draw)
	if err != nil {
		return err
	}
	return signalAll(processes, syscall.SIGKILL)
}

// begin runs the second one.
func (f *twoOperators) begin(ctx context.Context) error {
	if err := f.scale(ctx, 2); err != nil {
		return err
	}
	return wait(ctx, time.Minute, "two operators are ready", func(ctx context.Context) error {
		deployment, err := f.deployment(ctx)
		if err == nil && deployment.Status.ReadyReplicas < 2 {
			err = fmt.Errorf("%d are", deployment.Status.ReadyReplicas)
		}
		return err
	})
}

func (f *twoOperators) Heal(ctx context.Context) error {
	return wait(ctx, time.Minute, "one operator is asked for", func(ctx context.Context) error { return f.scale(ctx, 1) })
}

func (f *twoOperators) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	var deployment appsv1.Deployment
	return &deployment, f.w.kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "assay-operator"}, &deployment)
}

func (f *twoOperators) scale(ctx context.Context, replicas int32) error {
	deployment, err := f.deployment(ctx)
	if err != nil {
		return err
	}
	deployment.Spec.Replicas = ptr.To(replicas)
	return f.w.kube.Update(ctx, deployment)
}

// staleLeader stops the operator that leads until the other one does, and lets it go on: it believes that it leads, and may be in the
// middle of a decision.
type staleLeader struct {
	twoOperators
	processes []process
	// replaced means that the other one leads.
	replaced bool
}

func (f *staleLeader) Inject(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	var before *corev1.Pod
	if err := wait(ctx, time.Minute, "an operator leads", func(ctx context.Context) (err error) {
		if before, err = f.leader(ctx); err == nil {
			f.processes, err = f.w.node.container(container(before, ""))
		}
		return err
	}); err != nil {
		return err
	}
	if err := signalAll(f.processes, syscall.SIGSTOP); err != nil {
		return err
	}
	err := wait(ctx, time.Minute, "the other operator leads", func(ctx context.Context) error {
		now, err := f.leader(ctx)
		if err == nil && now.Name == before.Name {
			err = fmt.Errorf("%s does", now.Name)
		}
		return err
	})
	f.replaced = err == nil
	return err
}

func (f *staleLeader) Heal(ctx context.Context) error {
	thawed := signalAll(f.processes, syscall.SIGCONT)
	if f.replaced {
		// It completes pending writes until it notices.
		thawed = errors.Join(thawed, wait(ctx, time.Minute, "the operator that led before has ended", func(context.Context) error {
			return stillThere(f.processes)
		}))
	}
	return errors.Join(thawed, f.twoOperators.Heal(ctx))
}

// leader is the pod of the operator that leads.
func (f *staleLeader) leader(ctx context.Context) (*corev1.Pod, error) {
	var lease coordinationv1.Lease
	if err := f.w.kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "assay-operator.assay.dev"}, &lease); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	operators := client.MatchingLabels{"app.kubernetes.io/component": "operator"}
	if err := f.w.kube.List(ctx, &pods, client.InNamespace(system), operators); err != nil {
		return nil, err
	}
	return leaderOf(&lease, pods.Items)
}

// leaderOf finds the pod that holds a lease: the holder is a host's name, and something random after an underscore. The process that took
// the lease may be gone, and the one that the pod has since does not lead.
func leaderOf(lease *coordinationv1.Lease, pods []corev1.Pod) (*corev1.Pod, error) {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || lease.Spec.AcquireTime == nil {
		return nil, fmt.Errorf("no leader: %w", errNoVictim)
	}
	name, _, _ := strings.Cut(holder, "_")
	for i := range pods {
		if pods[i].Name != name {
			continue
		}
		for _, status := range pods[i].Status.ContainerStatuses {
			if running := status.State.Running; running == nil || !running.StartedAt.Time.Before(lease.Spec.AcquireTime.Time) {
				return nil, fmt.Errorf("the process of %s that led is gone: %w", holder, errNoVictim)
			}
		}
		return &pods[i], nil
	}
	return nil, fmt.Errorf("the leader %s is not one of %d pods: %w", holder, len(pods), errNoVictim)
}

// outOfMemory leaves the container of a block no more than it has, until the kernel kills in it.
type outOfMemory struct {
	w           *world
	draw        uint64
	file, limit string
}

func (f *outOfMemory) Inject(ctx context.Context) error {
	processes, err := inBlock("main")(ctx, f.w, f.draw)
	if err != nil {
		return err
	}
	file, usage, err := memoryLimit(processes[0].pid)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	used, err := os.ReadFile(usage)
	if err != nil {
		return err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(used)), 10, 64)
	if err != nil {
		return err
	}
	f.file, f.limit = file, string(before)
	return os.WriteFile(file, []byte(strconv.FormatInt(bytes+64<<10, 10)), 0)
}

func (f *outOfMemory) Heal(context.Context) error {
	if f.file == "" {
		return nil
	}
	err := os.WriteFile(f.file, []byte(f.limit), 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

// atOnce is a fault that is over when it has happened, and that the platform mends itself.
type atOnce func(ctx context.Context) error

func (f atOnce) Inject(ctx context.Context) error { return f(ctx) }

func (f atOnce) Heal(context.Context) error { return nil }

// toBlock does something to the pod of a block that runs.
func toBlock(do func(context.Context, client.Client, *corev1.Pod) error) func(*world, uint64) Fault {
	return func(w *world, draw uint64) Fault {
		return atOnce(func(ctx context.Context) error {
			pod, err := w.block(ctx, draw)
			if err != nil {
				return err
			}
			return do(ctx, w.kube, pod)
		})
	}
}

func deletePod(ctx context.Context, kube client.Client, pod *corev1.Pod) error {
	return kube.Delete(ctx, pod, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

func evictPod(ctx context.Context, kube client.Client, pod *corev1.Pod) error {
	return kube.SubResource("eviction").Create(ctx, pod,
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}

func deleteWorkflow(ctx context.Context, kube client.Client, pod *corev1.Pod) error {
	workflow := &unstructured.Unstructured{}
	workflow.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"})
	workflow.SetNamespace(pod.Namespace)
	workflow.SetName(pod.Labels["workflows.argoproj.io/workflow"])
	return kube.Delete(ctx, workflow)
}
