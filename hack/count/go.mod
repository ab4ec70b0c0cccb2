module assay.dev/assay/hack/count

go 1.26.0
