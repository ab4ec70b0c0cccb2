# Steps that demo and e2e share. Sourced from the root of the tree.

began=$SECONDS
step() { printf '\n== %s  (%d:%02d elapsed)\n' "$*" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)); }

# own_images prints name and tarball of each image made from this tree.
own_images() {
  bin/cluster images add --name assay.dev/assay-operator:0.1.0 --file /manager=bin/manager --file /assay=bin/assay --entrypoint /manager --user 65532
  bin/cluster images add --name assay.dev/assay-runner:0.1.0 --file /assay-runner=bin/assay-runner --entrypoint /assay-runner --user 65532
  bin/cluster images add --name assay.dev/assay-scan:0.1.0 --file /scan-pir=bin/scan-pir --entrypoint /scan-pir --user 65532
}

# install_assay brings up a cluster with Assay on it and leaves KUBECONFIG and PATH pointing at it.
install_assay() {
  step "Building the cluster tool"
  make --no-print-directory bin/cluster
  CLUSTER=$(bin/cluster choose)
  export CLUSTER
  if [ "$CLUSTER" = embedded ]; then
    bin/cluster preflight
  fi

  step "Building Assay"
  make --no-print-directory build

  step "Building the cluster's components and images (cached after the first time)"
  bin/cluster build
  bin/cluster images
  PATH=$(bin/cluster build --print-dir kubectl helm):$PATH
  export PATH

  step "Starting the cluster ($CLUSTER)"
  bin/cluster up --mode "$CLUSTER"
  KUBECONFIG=$(bin/cluster kubeconfig --mode "$CLUSTER")
  export KUBECONFIG

  step "Loading images"
  local tars
  tars=$(own_images)
  bin/cluster load --mode "$CLUSTER" $tars

  step "Installing charts/assay"
  helm upgrade --install assay charts/assay --namespace assay-system --create-namespace --wait --timeout 5m
}
