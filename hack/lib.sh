# shellcheck shell=bash
# Steps that demo and e2e share. Sourced from the root of the tree.

began=$SECONDS
step() { printf '\n== %s  (%d:%02d elapsed)\n' "$*" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)); }

# show_cluster prints the state of the cluster after a failure.
show_cluster() {
  step "It failed; this is what the cluster looks like"
  kubectl get nodes,pods,benchmarkruns,workflows -A -o wide || true
  kubectl get events -A --sort-by=.lastTimestamp | tail -n 40 || true
  bin/cluster status || true
}

# take_down is the end of a script that starts the embedded cluster. E2E_KEEP=1 keeps the cluster to poke at.
take_down() {
  status=$?
  if [ "$status" != 0 ] && [ -n "${KUBECONFIG:-}" ]; then show_cluster; fi
  if [ "${E2E_KEEP:-}" != 1 ]; then
    step "Taking the cluster down"
    bin/cluster down || status=1
  fi
  exit "$status"
}

# install_assay brings up a cluster with Assay on it and leaves KUBECONFIG and PATH pointing at it. NODES is the number of its nodes; of
# several, the first has Assay's own pods, and the others measure.
install_assay() {
  local nodes=${NODES:-1}
  step "Building the cluster tool"
  make --no-print-directory bin/cluster
  local mode
  mode=$(bin/cluster choose)
  if [ "$mode" = embedded ]; then
    bin/cluster preflight
  elif [ "$nodes" != 1 ]; then
    echo "NODES=$nodes: only CLUSTER=embedded makes nodes, and this one is $mode" >&2
    return 1
  fi

  step "Building Assay"
  make --no-print-directory build

  step "Building the tools (cached after the first time)"
  local tools
  tools=$(bin/cluster build --print-dir kubectl helm)
  PATH=$tools:$PATH
  export PATH

  local archives=()
  if [ "$mode" != existing ]; then
    step "Building the cluster's components and images (cached after the first time)"
    if [ "$mode" = embedded ]; then
      bin/cluster build
    fi
    mapfile -t archives < <(bin/cluster images --bin bin)
  fi

  step "Starting the cluster ($mode)"
  bin/cluster up --mode "$mode"
  KUBECONFIG=$(bin/cluster kubeconfig --mode "$mode")
  export KUBECONFIG

  if [ "$mode" != existing ]; then
    step "Loading images"
    bin/cluster load --mode "$mode" "${archives[@]}"
  fi
  if [ "$nodes" != 1 ]; then
    step "Adding nodes, with copies of the first one's images"
    bin/cluster up --nodes "$nodes"
    HELM_ARGS="--set policy.nodeLabel=assay.dev/measure --set-string scheduling.nodeSelector.assay\\.dev/platform=true ${HELM_ARGS:-}"
  fi

  step "Installing charts/assay"
  if [ "$mode" = embedded ]; then
    echo "Grafana is left out: its image is in a registry that this cluster does not reach. Its dashboards are there."
    echo "The ledger and Prometheus' samples are in emptyDirs: this cluster has no StorageClass."
    HELM_ARGS="--set grafana.mode=external,objectStore.persistence.enabled=false,prometheus.persistence.enabled=false ${HELM_ARGS:-}"
  fi
  install_chart
}

# install_chart installs the chart as HELM_ARGS say.
install_chart() {
  # Its ledgers are in an emptyDir, which goes with the pod that an upgrade to TLS would replace.
  local command
  command=$(kubectl -n assay-system get statefulset assay-minio --ignore-not-found \
    -o jsonpath='{.spec.template.spec.containers[0].command}')
  if [ -n "$command" ] && [[ $command != *--certs-dir* ]]; then
    HELM_ARGS="--set objectStore.tls.enabled=false ${HELM_ARGS:-}"
  fi
  # shellcheck disable=SC2086 # HELM_ARGS is a list of arguments.
  helm upgrade --install assay charts/assay --namespace assay-system --create-namespace --wait --timeout 5m ${HELM_ARGS:-}
}

# installed PROGRAM PACKAGE... makes sure that a program is on PATH, from Debian's packages if root may install them.
installed() {
  local program=$1
  shift
  if command -v "$program" >/dev/null; then return; fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "$program is not on PATH: install it, on Debian with apt-get install $*" >&2
    return 1
  fi
  echo "installing $*" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

need_chromium() {
  if command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then return; fi
  installed chromium chromium fonts-dejavu-core
}
